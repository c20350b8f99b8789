#include "gpuqd/flow/admit/apply.h"
#include "gpuqd/flow/admit/apply_access.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/base/worker.h"
#include "gpuqd/site/quotas.h"
#include "gpuqd/site/site_merge.h"
#include "gpuqd/flow/audit.h"
#include "gpuqd/flow/admit/calendar_check.h"
#include "gpuqd/flow/admit/zones.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/advise/whatif.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"
#include "libgpuq/yaml.h"

#define US_PER_HOUR (3600 * GPUQ_US_PER_S)
#define TRIES_MAX 20 /* while others change the site as well */

struct apply {
	struct journal *j;
	struct worker *worker;
};

/* A request in progress. */
struct pending {
	struct apply *ap;
	struct apply_ask ask;
	apply_fn fn;
	void *arg;
	struct gpuq_val *changes;
	struct gpuq_val *evictable; /* jobs that lose their quota: `default` */
	struct gpuq_val *boundless; /* warnings of unlimited quotas */
	struct gpuq_buf bytes; /* encoded tree of the new site */
	uint32_t generation; /* of the site it was merged with */
	struct whatif *whatif; /* NULL = the change can evict no job */
	int tries;
};

int apply_new(struct journal *j, struct apply **out, struct gpuq_err *err)
{
	struct apply *ap = calloc(1, sizeof(*ap));
	int rc;

	if (!ap)
		return gpuq_no_memory(err);
	ap->j = j;
	rc = worker_new(journal_loop(j), &ap->worker, err);
	if (rc < 0) {
		free(ap);
		return rc;
	}
	*out = ap;
	return 0;
}

static void pending_free(struct pending *p)
{
	whatif_free(p->whatif);
	gpuq_buf_done(&p->bytes);
	free(p);
}

static void dropped(void *arg)
{
	pending_free(arg);
}

void apply_free(struct apply *ap)
{
	if (!ap)
		return;
	worker_free(ap->worker, dropped);
	free(ap);
}

/* ---- reading and merging ---- */

static int read_tree(const struct apply_ask *ask, const struct gpuq_val **out, struct gpuq_err *err)
{
	const char *file = ask->file ? ask->file : "site";
	struct gpuq_val **docs, *v;
	size_t n_docs;
	int rc;

	if (ask->text) {
		rc = gpuq_yaml_parse(ask->arena, file, ask->text, strlen(ask->text), &docs, &n_docs,
				     err);
		if (rc < 0)
			return rc;
		if (n_docs != 1)
			return gpuq_fail(err, GPUQ_EINVAL, "%s:1:1: expected one document", file);
		*out = docs[0];
		return 0;
	}
	if (ask->tree) {
		*out = ask->tree;
		return 0;
	}
	v = gpuq_map(ask->arena);
	gpuq_put(ask->arena, v, "version", gpuq_int(ask->arena, 1));
	*out = v;
	return v ? 0 : gpuq_no_memory(err);
}

/* Check that no change is of a kind that the request excludes. */
static int check_actions(const struct apply_ask *ask, const struct gpuq_val *old,
			 const struct gpuq_val *changes, struct gpuq_err *err)
{
	for (uint32_t i = 0; i < changes->n; i++) {
		const struct gpuq_val *c = changes->items[i];
		const char *object = gpuq_get_str(c, "object", "");
		const char *action = gpuq_get_str(c, "action", "");
		const int kind = (int)strcspn(object, "/");

		if (ask->existing && strcmp(action, "added") == 0)
			return site_no_such(old, object, err);
		if (ask->fresh && strcmp(action, "changed") == 0)
			return gpuq_fail(err, GPUQ_EEXIST, "%.*s %s exists already", kind, object,
					 object + kind + 1);
	}
	return 0;
}

/* A request that removes a queue must say what becomes of the queues below it. */
static int check_removed(const struct gpuq_val *merged, const struct gpuq_strlist *removed,
			 struct gpuq_err *err)
{
	const struct gpuq_val *queues = gpuq_get(merged, "queues");

	for (size_t i = 0; i < removed->n; i++)
		for (uint32_t k = 0; queues && k < queues->n; k++) {
			const char *parent = gpuq_get_str(queues->items[k], "parent", "");

			if (strncmp(removed->items[i], "queue/", 6) == 0 &&
			    strcmp(removed->items[i] + 6, parent) == 0)
				return gpuq_fail(err, GPUQ_ECONFLICT,
						 "queue %s has queues below it and cannot be "
						 "removed without them (%s is one)",
						 parent,
						 gpuq_get_str(queues->items[k], "name", ""));
		}
	return 0;
}

/* List the running jobs of `default` that the change takes its unlimited quota from: any queue that is
 * owed devices may preempt them from then on. */
static struct gpuq_val *list_evictable(struct gpuq_arena *a, const struct model *m,
				       const struct site *new_)
{
	const struct queue *q = model_find_queue(m, QUOTAS_DEFAULT);
	const struct site_queue *is = site_queue_find(new_, QUOTAS_DEFAULT);
	struct gpuq_val *list = gpuq_list(a);

	if (!q || !is || !(quotas_unlimited(q->site) || queue_is_free(m, q)) ||
	    quotas_unlimited(is) || m->default_spared ||
	    (quotas_is_bare_default(is) && quotas_default_is_free(new_)))
		return list;
	job_each(m, j) {
		const struct site_qos *qos = site_qos_find(new_, j->qos);
		struct gpuq_val *v;

		if (j->queue != q || !model_job_is_live(j) || (qos && !qos->preemptible))
			continue;
		v = gpuq_map(a);
		gpuq_put(a, v, "id", gpuq_int(a, j->key.id));
		gpuq_put(a, v, "array_index",
			 j->key.index < 0 ? gpuq_null(a) : gpuq_int(a, j->key.index));
		gpuq_put(a, v, "name", gpuq_str(a, j->name));
		gpuq_put(a, v, "user", gpuq_str(a, j->user));
		gpuq_put(a, v, "queue", gpuq_str(a, j->queue->name));
		gpuq_add(a, list, v);
	}
	return list;
}

/* Warn of each queue whose unlimited quota stands beside quotas that end: it is owed all that they
 * are owed. */
static struct gpuq_val *list_boundless(struct gpuq_arena *a, const struct site *s)
{
	struct gpuq_val *list = gpuq_list(a);

	if (quotas_some_end(s))
		site_each(site_queue, s->queues, q)
			if (quotas_unlimited(q))
				gpuq_add(a, list,
					 gpuq_str(a, gpuq_arena_printf(
							     a,
							     "queue %s has an unlimited quota "
							     "beside limited ones: no queue can "
							     "reclaim devices from it",
							     q->name)));
	return list;
}

static int merge(struct pending *p, struct gpuq_err *err)
{
	const struct model *m = journal_model(p->ap->j);
	const struct apply_ask *ask = &p->ask;
	const int64_t now = loop_wall_us(journal_loop(p->ap->j));
	const struct gpuq_val *file;
	struct gpuq_val *merged;
	struct site *s = NULL;
	int rc = read_tree(ask, &file, err);

	if (rc == 0)
		rc = site_merge(ask->arena, m->site->tree, file, ask->prune, &merged, err);
	for (size_t i = 0; rc == 0 && i < ask->remove.n; i++)
		rc = site_remove(merged, ask->remove.items[i], err);
	if (rc == 0)
		rc = check_removed(merged, &ask->remove, err);
	if (rc == 0)
		zones_settle(ask->arena, merged, now);
	if (rc == 0)
		rc = site_read(merged, ask->text ? ask->file : NULL, now, &s, err);
	if (rc == 0)
		rc = site_check_names(s, merged, ask->text ? ask->file : NULL, err);
	if (rc == 0) {
		p->changes = site_diff(ask->arena, m->site->tree, s->tree);
		p->evictable = list_evictable(ask->arena, m, s);
		p->boundless = list_boundless(ask->arena, s);
		gpuq_buf_clear(&p->bytes);
		gpuq_mp_write(&p->bytes, s->tree);
		if (!p->changes || p->bytes.failed)
			rc = gpuq_no_memory(err);
	}
	if (rc == 0)
		rc = check_actions(ask, m->site->tree, p->changes, err);
	if (rc == 0 && !ask->operator_)
		rc = apply_allowed(m, s, p->changes, ask->who, now, err);
	if (rc == 0)
		rc = queue_site_allowed(m, s, err);
	if (rc == 0)
		rc = calendar_check(m, s, p->changes, now, err);
	p->generation = m->site_generation;
	site_free(s);
	return rc;
}

static int check_generation(const struct pending *p, struct gpuq_err *err)
{
	const struct model *m = journal_model(p->ap->j);
	const int64_t asked = p->ask.generation;

	if (asked >= 0 && asked != m->site_generation)
		return gpuq_fail(err, GPUQ_ECONFLICT,
				 "the site is at generation %" PRIu32 ", not %" PRId64
				 ": it was changed meanwhile; run --dry-run again",
				 m->site_generation, asked);
	if (p->generation != m->site_generation)
		return gpuq_fail(err, GPUQ_ECONFLICT, "the site was changed meanwhile: try again");
	return 0;
}

/* ---- the reply ---- */

static struct gpuq_val *seconds(struct gpuq_arena *a, int64_t us)
{
	return gpuq_real(a, (double)(us / 1000) / 1000);
}

static struct gpuq_val *view_victim(struct gpuq_arena *a, const struct whatif_victim *v)
{
	struct gpuq_val *out = gpuq_map(a);
	char gpus[32];

	gpuq_milli_print(v->gpus_milli, gpus, sizeof(gpus));
	gpuq_put(a, out, "id", gpuq_int(a, v->key.id));
	gpuq_put(a, out, "array_index",
		 v->key.index < 0 ? gpuq_null(a) : gpuq_int(a, v->key.index));
	gpuq_put(a, out, "name", gpuq_str(a, v->name));
	gpuq_put(a, out, "user", gpuq_str(a, v->user));
	gpuq_put(a, out, "queue", gpuq_str(a, v->queue));
	gpuq_put(a, out, "flavor", gpuq_str(a, v->flavor));
	gpuq_put(a, out, "cause", gpuq_str(a, gpuq_cause_word(v->cause)));
	gpuq_put(a, out, "rule", gpuq_str(a, v->rule));
	gpuq_put(a, out, "by", gpuq_str(a, v->by));
	gpuq_put(a, out, "by_queue", gpuq_str(a, v->by_queue));
	gpuq_put(a, out, "gpus",
		 v->gpus_milli % 1000 ? gpuq_real(a, (double)v->gpus_milli / 1000)
				      : gpuq_int(a, v->gpus_milli / 1000));
	gpuq_put(a, out, "ran_s", seconds(a, v->ran_us));
	gpuq_put(a, out, "lost_gpu_seconds", seconds(a, v->lost_us));
	gpuq_put(a, out, "shrinks", gpuq_bool(a, v->shrinks));
	gpuq_put(a, out, "restarts", gpuq_bool(a, v->again));
	return out;
}

/* Warn of nodes in reservations that do not exist: they may still be added, but most such names are
 * mistakes. */
static void warn_nodes(const struct pending *p, struct gpuq_val *warnings)
{
	struct gpuq_arena *a = p->ask.arena;

	for (uint32_t i = 0; i < p->changes->n; i++) {
		const struct gpuq_val *nodes =
			gpuq_path(p->changes->items[i], "new", "nodes", NULL);
		const char *object = gpuq_get_str(p->changes->items[i], "object", "");

		if (strncmp(object, "reservation/", 12) != 0 || !nodes || nodes->type != GPUQ_LIST)
			continue;
		for (uint32_t k = 0; k < nodes->n; k++)
			if (!model_find_node(journal_model(p->ap->j), nodes->items[k]->s))
				gpuq_add(
					a, warnings,
					gpuq_str(a, gpuq_arena_printf(a, "%s: no node is named %s",
								      object, nodes->items[k]->s)));
	}
}

static bool moves_quota(const struct gpuq_val *change)
{
	static const char *const keys[] = { "quota", "limit", "lend", "parent" };
	bool any = false;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		any |= gpuq_path(change, "old", keys[i], NULL) ||
		       gpuq_path(change, "new", keys[i], NULL);
	return any;
}

/* True if the change concerns quotas or what they divide: only then is a warning about
 * overcommitted quotas of interest. */
static bool is_about_quotas(const struct pending *p)
{
	for (uint32_t i = 0; i < p->changes->n; i++) {
		const struct gpuq_val *c = p->changes->items[i];
		const char *object = gpuq_get_str(c, "object", "");

		if ((strncmp(object, "queue/", 6) == 0 && moves_quota(c)) ||
		    strncmp(object, "flavor/", 7) == 0 || strncmp(object, "pool/", 5) == 0)
			return true;
	}
	return false;
}

/* Warn of queues that may keep borrowed devices indefinitely although others are entitled to
 * them. */
static void warn_kept(const struct pending *p, struct gpuq_val *warnings)
{
	struct gpuq_arena *a = p->ask.arena;

	for (uint32_t i = 0; i < p->changes->n; i++) {
		const struct gpuq_val *change = p->changes->items[i];

		if (!gpuq_get_bool(gpuq_get(change, "new"), "reclaimable", true))
			gpuq_add(a, warnings,
				 gpuq_str(a, gpuq_arena_printf(
						     a,
						     "%s: reclaimable is false: the owners of "
						     "borrowed devices wait until its jobs end",
						     gpuq_get_str(change, "object", ""))));
	}
}

static struct gpuq_val *view(const struct pending *p, const struct whatif_result *r, bool applied)
{
	struct gpuq_arena *a = p->ask.arena;
	struct gpuq_val *v = gpuq_map(a), *warnings = gpuq_list(a), *evictions = gpuq_list(a);

	for (size_t i = 0; i < r->n_warnings && is_about_quotas(p); i++)
		gpuq_add(a, warnings, gpuq_str(a, r->warnings[i]));
	warn_nodes(p, warnings);
	warn_kept(p, warnings);
	for (uint32_t i = 0; i < p->boundless->n && p->changes->n; i++)
		gpuq_add(a, warnings, p->boundless->items[i]);
	for (size_t i = 0; i < r->n_victims; i++)
		gpuq_add(a, evictions, view_victim(a, &r->victims[i]));
	gpuq_put(a, v, "applied", gpuq_bool(a, applied));
	gpuq_put(a, v, "generation", gpuq_int(a, journal_model(p->ap->j)->site_generation));
	gpuq_put(a, v, "changes", p->changes);
	gpuq_put(a, v, "warnings", warnings);
	gpuq_put(a, v, "evicts", gpuq_int(a, (int64_t)r->n_victims));
	gpuq_put(a, v, "evictions", evictions);
	gpuq_put(a, v, "evictable", p->evictable);
	gpuq_put(a, v, "lost_gpu_seconds", seconds(a, r->lost_us));
	gpuq_put(a, v, "cut_short", gpuq_bool(a, r->cut_short));
	return v;
}

/* ---- applying ---- */

/* Apply the change and record it in one step of the loop: one transaction. */
static int apply_it(const struct pending *p, struct gpuq_err *err)
{
	struct event ev = { .type = EV_SITE_APPLIED };
	int rc;

	ev.site.bytes = p->bytes.data;
	ev.site.len = p->bytes.len;
	ev.site.who = p->ask.who;
	rc = journal_apply(p->ap->j, &ev, err);
	for (uint32_t i = 0; rc == 0 && i < p->changes->n; i++) {
		const struct gpuq_val *c = p->changes->items[i];
		const char *object = gpuq_get_str(c, "object", "/");
		const char *name = strchr(object, '/') + 1;
		const char *action =
			gpuq_arena_printf(p->ask.arena, "site.%s", gpuq_get_str(c, "action", ""));
		const char *kind =
			gpuq_arena_strndup(p->ask.arena, object, (size_t)(name - object - 1));
		const struct audit_note note = { .who = p->ask.who,
						 .action = action,
						 .kind = kind ? kind : "",
						 .name = name,
						 .queue = strncmp(object, "queue/", 6) == 0 ? name
											    : NULL,
						 .before = gpuq_get(c, "old"),
						 .after = gpuq_get(c, "new") };

		rc = audit_add(p->ap->j, &note, err);
	}
	if (rc == 0)
		log_notice("site.applied", "by=%s changes=%u generation=%" PRIu32, LOGS(p->ask.who),
			   p->changes->n, journal_model(p->ap->j)->site_generation);
	(void)FAILPOINT("site.applied");
	return rc;
}

static int check_evictions(const struct pending *p, const struct whatif_result *r,
			   struct gpuq_err *err)
{
	const int64_t n = (int64_t)r->n_victims, tenths = r->lost_us / (US_PER_HOUR / 10);

	if (n <= p->ask.yes_evict)
		return 0;
	return gpuq_fail(err, GPUQ_ECONFLICT,
			 "this would evict %" PRId64 " job%s and lose %" PRId64 ".%" PRId64
			 " GPU-hours: list them with --dry-run, then use --yes-evict %" PRId64,
			 n, n == 1 ? "" : "s", tenths / 10, tenths % 10, n);
}

static void try_or_finish(struct pending *p);

/* The site was changed by others meanwhile: try again on the current one, unless the request was
 * made for one particular generation. */
static bool again(struct pending *p)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc;

	if (p->generation == journal_model(p->ap->j)->site_generation || p->ask.generation >= 0 ||
	    ++p->tries >= TRIES_MAX)
		return false;
	whatif_free(p->whatif);
	p->whatif = NULL;
	rc = merge(p, &err);
	if (rc == 0) {
		try_or_finish(p);
	} else {
		p->fn(p->arg, rc, &err, NULL);
		pending_free(p);
	}
	return true;
}

static void finish(struct pending *p)
{
	struct whatif_result r = { .victims = NULL };
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct gpuq_val *v = NULL;
	int rc = p->whatif ? whatif_result(p->whatif, &r, &err) : 0;

	if (rc == 0)
		rc = check_generation(p, &err);
	if (rc == 0 && !p->ask.dry_run)
		rc = check_evictions(p, &r, &err);
	if (rc == 0 && !p->ask.dry_run && p->changes->n)
		rc = apply_it(p, &err);
	if (rc == 0) {
		v = view(p, &r, !p->ask.dry_run);
		if (!gpuq_val_ok(v))
			rc = gpuq_no_memory(&err);
	}
	p->fn(p->arg, rc, &err, v);
	pending_free(p);
}

/* ---- trying it first ---- */

static void try_it(void *arg)
{
	const struct pending *p = arg;

	whatif_run(p->whatif);
}

static void tried(void *arg)
{
	if (!again(arg))
		finish(arg);
}

static void when_durable(void *arg, int rc, const struct gpuq_err *failed)
{
	struct pending *p = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (rc < 0)
		err = *failed;
	if (rc == 0)
		rc = whatif_new(p->ap->j, loop_now_us(journal_loop(p->ap->j)), p->bytes.data,
				p->bytes.len, &p->whatif, &err);
	if (rc == 0)
		rc = worker_run(p->ap->worker, try_it, tried, p, &err);
	if (rc < 0) {
		p->fn(p->arg, rc, &err, NULL);
		pending_free(p);
	}
}

static void try_or_finish(struct pending *p)
{
	if (apply_may_evict(p->changes))
		journal_after(p->ap->j, when_durable, p);
	else
		finish(p);
}

int apply_start(struct apply *ap, const struct apply_ask *ask, apply_fn fn, void *arg,
		struct gpuq_err *err)
{
	struct pending *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return gpuq_no_memory(err);
	*p = (struct pending){ .ap = ap, .ask = *ask, .fn = fn, .arg = arg };
	rc = merge(p, err);
	if (rc == 0)
		rc = check_generation(p, err);
	if (rc < 0) {
		pending_free(p);
		return rc;
	}
	try_or_finish(p);
	return 0;
}
