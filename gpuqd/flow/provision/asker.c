#include "gpuqd/flow/provision/asker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/failpoint.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/carry_out.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/provision/keeper.h"
#include "gpuqd/flow/provision/outcome.h"
#include "gpuqd/flow/provision/placeholders.h"
#include "gpuqd/flow/provision/verdict.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/model.h"
#include "libgpuq/units.h"

#define TICK_US GPUQ_US_PER_S
#define SOON_US (20 * INT64_C(1000))
/* A request that was used is removed when no pod has been on its nodes for so long: a rider may follow. */
#define IDLE_US (5 * GPUQ_US_PER_S)
/* A node may tell its labels one after the other: so long it may differ from its machine. */
#define DIFFERS_US (5 * GPUQ_US_PER_S)
#define MESSAGE_MAX 320

/* The steps done for an ask in this run of the daemon. */
struct live {
	UT_hash_handle hh;
	uint32_t number, attempt;
	uint64_t seq; /* of the batch that must be durable first */
	bool asked, dropped, seen;
	int64_t idle_us; /* since when no pod is on its nodes; monotonic; 0 = some is */
	int64_t differs_us; /* since when some node differs from its machine; monotonic; 0 = none does */
};

struct asker {
	struct journal *j;
	struct loop *l;
	struct cluster *cluster;
	struct live *live;
	struct placeholders *placeholders;
	struct keeper *keeper;
	struct loop_timer *tick, *soon;
	bool watching;
};

static const struct model *model_of(const struct asker *k)
{
	return journal_model(k->j);
}

static struct live *live_of(struct asker *k, const struct ask *a)
{
	struct live *l;

	HASH_FIND(hh, k->live, &a->number, sizeof(a->number), l);
	if (!l) {
		l = calloc(1, sizeof(*l));
		if (!l)
			abort();
		l->number = a->number;
		HASH_ADD(hh, k->live, number, sizeof(l->number), l);
	}
	if (l->attempt != a->attempt) {
		l->attempt = a->attempt;
		l->asked = l->dropped = l->seen = false;
		l->differs_us = 0;
	}
	return l;
}

static void forget_live(struct asker *k)
{
	struct live *l, *next;

	HASH_ITER(hh, k->live, l, next) {
		HASH_DEL(k->live, l);
		free(l);
	}
}

static bool may_act(const struct asker *k)
{
	return k->cluster && k->cluster->ops->capacity_ask && !recovery_waits(model_of(k)) &&
	       !model_is_fenced(model_of(k)) && !journal_read_only(k->j);
}

/* ---- what is asked ---- */

static void ask_cluster(struct asker *k, const struct ask *a, const struct site_pool *pool)
{
	const struct model *m = model_of(k);
	const struct provision *how = pool->provisioning;
	char name[ASK_NAME_ROOM], job[32];
	struct capacity_order o = { .name = name,
				    .token = a->token,
				    .namespace_ = a->namespace_,
				    .cluster_id = m->cluster_id,
				    .job = job,
				    .attempt = a->attempt,
				    .class_ = a->class_,
				    .parameters = &how->parameters,
				    .run_s = a->given_us / GPUQ_US_PER_S,
				    .n_nodes = a->n_nodes,
				    .machine = how->machine,
				    .selector = &pool->selector,
				    .resource = GPUQ_RESOURCE_GPU };

	ask_name(m, a, name);
	if (a->first.index >= 0)
		snprintf(job, sizeof(job), "%" PRIu32 "-%" PRId32, a->first.id, a->first.index);
	else
		snprintf(job, sizeof(job), "%" PRIu32, a->first.id);
	site_each(site_flavor, m->site->flavors, f)
		if (strcmp(f->name, pool->flavor) == 0 && f->resource)
			o.resource = f->resource;
	log_info("ask.make", "name=%s pool=%s nodes=%" PRIu32, name, a->pool, a->n_nodes);
	k->cluster->ops->capacity_ask(k->cluster, &o);
}

/* Do what is decided of one ask, once that is on disk. */
static void sync(struct asker *k, const struct ask *a)
{
	const struct model *m = model_of(k);
	struct live *l = live_of(k, a);
	const struct site_pool *pool;
	char name[ASK_NAME_ROOM];

	if (!may_act(k) || l->seq > journal_durable(k->j))
		return;
	if (ask_stands(a)) {
		placeholders_sync(k->placeholders, a);
		return;
	}
	if (a->state == ASK_STATE_NEW && !l->asked && m->asks_known == ASKS_KNOWN) {
		pool = site_pool_growing(m->site, a->pool);
		if (!pool)
			return;
		l->asked = true;
		(void)FAILPOINT("ask.make");
		ask_cluster(k, a, pool);
	} else if (a->state >= ASK_STATE_PAUSED && !a->cleared && !l->dropped) {
		l->dropped = true;
		(void)FAILPOINT("ask.drop");
		ask_name(m, a, name);
		k->cluster->ops->capacity_drop(k->cluster, a->namespace_, name, a->token);
	}
}

static void sync_all(void *arg)
{
	struct asker *k = arg;
	const struct ask *a, *next;

	for (a = model_of(k)->asks; a; a = next) {
		next = a->hh.next;
		sync(k, a);
	}
}

/* ---- limits ---- */

static bool waits(const struct model *m, struct job_key key)
{
	const struct job *j = model_find_job(m, key);

	if (!j && key.index >= 0)
		j = model_find_job(m, (struct job_key){ key.id, -1 });
	return j && j->state == GPUQ_JOB_PENDING;
}

static bool differs(const struct model *m, const struct ask *a, const struct provision *how,
		    char *out, size_t room)
{
	for (uint32_t i = 0; i < a->n_came; i++) {
		const struct node *n =
			a->nodes[i].stale ? NULL : model_find_node(m, a->nodes[i].name);

		if (n && ask_node_differs(n, how->machine, out, room))
			return true;
	}
	return false;
}

/* True if the attempt is over since some of its nodes have not become what they should be. */
static bool check_differs(struct asker *k, const struct ask *a, const struct provision *how)
{
	struct live *l = live_of(k, a);
	const int64_t mono = loop_mono_us(k->l);
	char why[MESSAGE_MAX / 2];

	if (!differs(model_of(k), a, how, why, sizeof(why))) {
		l->differs_us = 0;
		return false;
	}
	if (!l->differs_us)
		l->differs_us = mono;
	if (mono - l->differs_us < DIFFERS_US)
		return false;
	outcome_fail_as(k->j, a, VERDICT_NEXT, why);
	return true;
}

static void check_served(struct asker *k, const struct ask *a, const struct provision *how,
			 int64_t now)
{
	struct live *l = live_of(k, a);
	const int64_t mono = loop_mono_us(k->l);

	if (!a->used && now >= a->provisioned_us + how->booking_us) {
		if (waits(model_of(k), a->owner))
			outcome_fail_as(k->j, a, VERDICT_RETRY, "its nodes were not used in time");
		else
			outcome_end(k->j, a, "no job needs it any more");
		return;
	}
	if (a->used ? ask_has_pods(model_of(k), a) : waits(model_of(k), a->owner)) {
		l->idle_us = 0;
		return;
	}
	/* Another job that could use its nodes starts on them meanwhile. */
	if (!l->idle_us)
		l->idle_us = mono;
	if (mono - l->idle_us >= IDLE_US || a->n_came == 0)
		outcome_end(k->j, a, a->used ? "its jobs are done" : "no job needs it any more");
}

/* Check the limits of one ask that depend on time, or on its nodes. */
static void check(struct asker *k, const struct ask *a, int64_t now)
{
	const struct model *m = model_of(k);
	const struct site_pool *pool = site_pool_growing(m->site, a->pool);
	const struct provision *how = pool ? pool->provisioning : NULL;
	struct event ev = { .type = EV_ASK_TRIED };
	char why[MESSAGE_MAX / 2], time[32], token[33];

	if (a->state == ASK_STATE_ENDED) {
		/* Its nodes have not gone: others may have found a use for them. */
		ev.type = EV_ASK_CLEARED;
		if (a->cleared && (!how || now >= a->since_us + how->booking_us))
			outcome_apply(k->j, &ev, a);
		return;
	}
	if (!how || strcmp(provision_class(how), a->class_) != 0) {
		if (!a->used || !ask_has_pods(m, a))
			outcome_end(k->j, a, "its pool was changed");
		return;
	}
	switch (a->state) {
	case ASK_STATE_NEW:
	case ASK_STATE_SENT:
	case ASK_STATE_ACCEPTED:
		if (ask_stands(a) && check_differs(k, a, how))
			break;
		if (now - a->since_us < how->timeout_us)
			break;
		gpuq_duration_print(how->timeout_us, time, sizeof(time));
		snprintf(why, sizeof(why), "it was not served within %s", time);
		outcome_fail_as(k->j, a, ask_stands(a) ? VERDICT_RETRY : VERDICT_NEXT, why);
		break;
	case ASK_STATE_PROVISIONED:
		if (check_differs(k, a, how))
			break;
		if (now < a->provisioned_us + how->booking_us)
			break;
		gpuq_duration_print(how->booking_us, time, sizeof(time));
		snprintf(why, sizeof(why),
			 "%" PRIu32 " of its %" PRIu32 " nodes had not come %s after they were "
			 "provisioned",
			 ask_lacks(a), a->n_nodes, time);
		outcome_fail_as(k->j, a, VERDICT_RETRY, why);
		break;
	case ASK_STATE_SERVED:
		if (ask_stands(a))
			outcome_end(k->j, a, "its nodes are there");
		else
			check_served(k, a, how, now);
		break;
	case ASK_STATE_PAUSED:
		if (!a->cleared || now < a->retry_us)
			break;
		carry_out_token(token);
		ev.ask.token = token;
		(void)FAILPOINT("ask.retry");
		outcome_apply(k->j, &ev, a);
		break;
	default:
		break;
	}
}

/* Return how many nodes the pool has and is to get. Stale ones go, and their request is for others in their place. */
static int64_t n_nodes(const struct model *m, const struct site_pool *p)
{
	int64_t n = model_pool_nodes(m, p->name);

	for (const struct ask *a = m->asks; a; a = a->hh.next) {
		if (strcmp(a->pool, p->name) != 0)
			continue;
		n += ask_lacks(a);
		for (uint32_t i = 0; i < a->n_came; i++) {
			const struct node *stale =
				a->nodes[i].stale ? model_find_node(m, a->nodes[i].name) : NULL;

			n -= stale && !stale->gone && strcmp(stale->pool, p->name) == 0;
		}
	}
	return n;
}

/* Return the newest ask of the pool that the cloud has given nothing for; NULL = none. */
static const struct ask *newest_open(const struct model *m, const char *pool)
{
	const struct ask *found = NULL;

	for (const struct ask *a = m->asks; a; a = a->hh.next)
		if (strcmp(a->pool, pool) == 0 && ask_lacks(a) > 0 &&
		    a->state != ASK_STATE_PROVISIONED)
			found = a;
	return found;
}

/* Take back what goes beyond the maximum of its pool, as when that is lowered. */
static void check_most(struct asker *k, const struct site_pool *p)
{
	const struct model *m = model_of(k);
	const struct ask *a = newest_open(m, p->name);
	char why[64];

	while (a && n_nodes(m, p) > p->provisioning->max_nodes) {
		const uint32_t last = a->number;

		snprintf(why, sizeof(why), "max_nodes of its pool is %" PRId64,
			 p->provisioning->max_nodes);
		outcome_end(k->j, a, why);
		a = newest_open(m, p->name);
		if (a && a->number == last)
			return; /* it could not be noted */
	}
}

static void check_all(struct asker *k)
{
	const int64_t now = loop_now_us(k->l);
	const struct ask *a, *next;

	if (!may_act(k))
		return;
	if (model_of(k)->asks)
		site_each(site_pool, model_of(k)->site->pools, p)
			if (site_pool_grows(p))
				check_most(k, p);
	for (a = model_of(k)->asks; a; a = next) {
		next = a->hh.next;
		check(k, a, now);
	}
	sync_all(k);
	placeholders_clean(k->placeholders);
}

static void on_tick(void *arg)
{
	struct asker *k = arg;

	k->tick = loop_after(k->l, TICK_US, on_tick, k);
	if (may_act(k))
		keeper_tick(k->keeper);
	check_all(k);
}

static void on_soon(void *arg)
{
	struct asker *k = arg;

	k->soon = NULL;
	/* Before the placeholders of a node go, which keep the autoscaler from taking it. */
	if (may_act(k))
		keeper_came(k->keeper);
	check_all(k);
}

/* ---- what is heard ---- */

/* Return the ask whose present attempt has that name. */
static const struct ask *ask_named(const struct model *m, const char *name, const char *token)
{
	const char *at = strstr(name, "-ask");
	const struct ask *a = at ? ask_find(m, (uint32_t)strtoul(at + 4, NULL, 10)) : NULL;
	char own[ASK_NAME_ROOM];

	if (!a)
		return NULL;
	ask_name(m, a, own);
	return strcmp(own, name) == 0 && (!token || strcmp(token, a->token) == 0) ? a : NULL;
}

static void heard(struct asker *k, const struct ask *a, const struct verdict_of *v,
		  const struct gpuq_strmap *labels)
{
	struct event ev = { .type = EV_ASK_HEARD };

	ev.ask.state = v->state;
	ev.ask.condition = v->condition;
	ev.ask.reason = v->reason;
	ev.ask.message = v->message;
	ev.ask.until_us = v->provisioned_us;
	ev.ask.labels = labels;
	outcome_apply(k->j, &ev, a);
}

static void on_asked(void *arg, const char *name, enum capacity_outcome o, const char *message)
{
	struct asker *k = arg;
	const struct ask *a = ask_named(model_of(k), name, NULL);
	struct verdict_of v = { VERDICT_HEARD, ASK_STATE_SENT, "", "", message, 0 };

	if (placeholders_asked(k->placeholders, name, o, message))
		return;
	if (!a || a->state >= ASK_STATE_PAUSED)
		return;
	(void)FAILPOINT("ask.asked");
	if (o == CAPACITY_REFUSED) {
		v.what = VERDICT_NEXT;
		outcome_fail(k->j, a, &v);
		return;
	}
	if (o == CAPACITY_MADE)
		live_of(k, a)->seen = true;
	if (o == CAPACITY_DELAYED)
		v.state = ASK_STATE_NEW;
	if (v.state > a->state || (a->state == ASK_STATE_NEW && strcmp(message, a->message) != 0))
		heard(k, a, &v, NULL);
}

/* Return the labels by which nodes of the request are known. */
static void labels_of(const struct model *m, const struct ask *a, const struct capacity_fact *f,
		      struct gpuq_arena *mem, struct gpuq_strmap *out)
{
	const struct site_pool *pool = site_pool_growing(m->site, a->pool);
	const struct gpuq_strmap *from = pool ? &pool->provisioning->node_selector_from : NULL;

	if (!from || from->n == 0)
		return;
	out->keys = gpuq_arena_calloc(mem, from->n, sizeof(char *));
	out->vals = gpuq_arena_calloc(mem, from->n, sizeof(char *));
	for (size_t i = 0; out->keys && out->vals && i < from->n; i++) {
		const char *v = gpuq_strmap_get(&f->details, from->vals[i]);

		if (!v)
			continue;
		out->keys[out->n] = from->keys[i];
		out->vals[out->n++] = v;
	}
}

/* True if its booking ended, as is heard now, before any pod was created on its nodes; jobs that were placed there
 * are withdrawn. */
static bool lapses(struct asker *k, const struct ask *a, const struct verdict_of *v)
{
	char why[80];

	if (v->what != VERDICT_HEARD || !a->used || strcmp(a->condition, v->condition) == 0 ||
	    (strcmp(v->condition, capacity_word(CAPACITY_EXPIRED)) != 0 &&
	     strcmp(v->condition, capacity_word(CAPACITY_REVOKED)) != 0) ||
	    ask_was_taken(model_of(k), a))
		return false;
	snprintf(why, sizeof(why), "the request for its nodes has the condition %s", v->condition);
	outcome_withdraw(k->j, a, why);
	return true;
}

static void on_seen(void *arg, const struct capacity_fact *f)
{
	struct asker *k = arg;
	const struct ask *a = ask_named(model_of(k), f->name, f->token);
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_strmap labels = { 0 };
	struct verdict_of v;

	if (!a) {
		/* It is of an attempt that is over, and whose removal was cut short. */
		if (!f->leaving && may_act(k)) {
			log_notice("ask.orphan", "name=%s", LOGS(f->name));
			k->cluster->ops->capacity_drop(k->cluster, f->namespace_, f->name,
						       f->token);
		}
		return;
	}
	live_of(k, a)->seen = true;
	v = verdict_judge(a, f, loop_now_us(k->l));
	(void)FAILPOINT("ask.seen");
	if (lapses(k, a, &v))
		v.what = VERDICT_RETRY;
	if (v.what == VERDICT_HEARD) {
		labels_of(model_of(k), a, f, &mem, &labels);
		heard(k, a, &v, &labels);
	} else if (v.what != VERDICT_NONE) {
		outcome_fail(k->j, a, &v);
	}
	gpuq_arena_done(&mem);
}

static void on_gone(void *arg, const char *name, const char *token)
{
	struct asker *k = arg;
	const struct ask *a = ask_named(model_of(k), name, token);

	if (a)
		outcome_lost(k->j, a);
}

static void on_dropped(void *arg, const char *name)
{
	struct asker *k = arg;
	const struct ask *a = ask_named(model_of(k), name, NULL);
	struct event ev = { .type = EV_ASK_CLEARED };

	if (placeholders_dropped(k->placeholders, name))
		return;
	if (!a || a->state < ASK_STATE_PAUSED || a->cleared)
		return;
	(void)FAILPOINT("ask.dropped");
	outcome_apply(k->j, &ev, a);
}

static void on_placeholder(void *arg, const char *name, const char *namespace_, const char *token,
			   bool gone)
{
	struct asker *k = arg;

	placeholders_seen(k->placeholders, name, namespace_, token, gone);
}

static void set_known(struct asker *k, enum asks_known known, const char *why)
{
	struct event ev = { .type = EV_ASKS_KNOWN };

	ev.asks.known = known;
	ev.asks.why = why;
	ev.asks.stand = k->cluster && k->cluster->ops->placeholder_make;
	journal_apply(k->j, &ev, NULL);
}

static void on_known(void *arg, bool known, const char *why)
{
	struct asker *k = arg;
	const struct ask *a, *next;

	for (a = model_of(k)->asks; known && a; a = next) {
		next = a->hh.next;
		if (!ask_stands(a) && !live_of(k, a)->seen)
			outcome_lost(k->j, a);
	}
	if (!known && model_of(k)->asks_known != ASKS_OFF)
		log_warn("ask.off", "error=%s: no nodes can be requested (see gpuq doctor)",
			 LOGS(why));
	if (!known && model_of(k)->asks_known == ASKS_OFF &&
	    strcmp(model_of(k)->asks_why, why) == 0)
		return;
	if (known && model_of(k)->asks_known == ASKS_KNOWN)
		return;
	set_known(k, known ? ASKS_KNOWN : ASKS_OFF, why);
	sync_all(k);
}

/* ---- wiring ---- */

static bool wanted(const struct model *m)
{
	for (const struct ask *a = m->asks; a; a = a->hh.next)
		if (!ask_stands(a))
			return true;
	site_each(site_pool, m->site->pools, p)
		if (site_pool_requests(p))
			return true;
	return false;
}

static void tell_cluster(struct asker *k)
{
	const struct capacity_sink sink = { .arg = k,
					    .asked = on_asked,
					    .seen = on_seen,
					    .gone = on_gone,
					    .dropped = on_dropped,
					    .stands = on_placeholder,
					    .known = on_known };

	if (k->cluster && k->cluster->ops->capacity_watch)
		k->cluster->ops->capacity_watch(k->cluster, &sink, k->watching);
}

/* Watch requests as long as the site has a pool that grows by them, or some are left. */
static void watch(struct asker *k)
{
	const bool on = k->cluster && k->cluster->ops->capacity_watch && wanted(model_of(k));

	if (on == k->watching)
		return;
	k->watching = on;
	set_known(k, on ? ASKS_UNKNOWN : ASKS_OFF, NULL);
	tell_cluster(k);
}

static void look_soon(struct asker *k)
{
	if (!k->soon)
		k->soon = loop_after(k->l, SOON_US, on_soon, k);
}

static void on_event(void *arg, const struct event *ev)
{
	struct asker *k = arg;
	const struct ask *a;

	switch (ev->type) {
	case EV_ASK_MADE:
		log_notice(
			"ask.made",
			"ask=%" PRIu32 " pool=%s nodes=%" PRIu32 " job=%" PRIu32 " index=%" PRId32,
			ev->ask.number, ev->ask.pool, ev->ask.n_nodes, ev->job.id, ev->job.index);
		(void)FAILPOINT("ask.made");
		/* fall through */
	case EV_ASK_OWNED:
	case EV_ASK_HEARD:
	case EV_ASK_FAILED:
	case EV_ASK_LOST:
	case EV_ASK_TRIED:
	case EV_ASK_ENDED:
	case EV_ASK_CLEARED:
		a = ask_find(model_of(k), ev->ask.number);
		if (a)
			live_of(k, a)->seq = journal_seq(k->j);
		look_soon(k);
		break;
	case EV_NODE_SEEN:
	case EV_NODE_GONE:
		if (model_of(k)->asks)
			look_soon(k);
		break;
	case EV_SITE_APPLIED:
	case EV_RECOVERY_LISTED:
	case EV_FENCED:
		watch(k);
		look_soon(k);
		break;
	default:
		break;
	}
}

void asker_set_cluster(struct asker *k, struct cluster *c)
{
	/* The last one is about to be freed, with all that was asked of it. */
	if (k->cluster && k->cluster->ops->capacity_watch)
		k->cluster->ops->capacity_watch(k->cluster, NULL, false);
	k->watching = false;
	k->cluster = c;
	forget_live(k);
	placeholders_set_cluster(k->placeholders, c);
	keeper_set_cluster(k->keeper, c);
	set_known(k, ASKS_OFF, NULL);
	tell_cluster(k);
	if (c)
		watch(k);
}

int asker_new(struct journal *j, const struct schedule *s, struct asker **out, struct gpuq_err *err)
{
	struct asker *k = calloc(1, sizeof(*k));

	if (!k)
		return gpuq_no_memory(err);
	k->placeholders = placeholders_new(j);
	k->keeper = keeper_new(j, s);
	if (!k->placeholders || !k->keeper) {
		asker_free(k);
		return gpuq_no_memory(err);
	}
	k->j = j;
	k->l = journal_loop(j);
	journal_subscribe(j, on_event, k);
	journal_on_durable(j, sync_all, k);
	k->tick = loop_after(k->l, TICK_US, on_tick, k);
	*out = k;
	return 0;
}

void asker_free(struct asker *k)
{
	if (!k)
		return;
	forget_live(k);
	placeholders_free(k->placeholders);
	keeper_free(k->keeper);
	loop_cancel(k->tick);
	loop_cancel(k->soon);
	free(k);
}
