#include "gpuqd/flow/recover_job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/model.h"
#include "gpuqd/state/record/request.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"
#include "libgpuq/limits.h"
#include "libgpuq/wire/mp.h"
#include "libgpuq/units.h"

struct making {
	struct journal *j;
	const struct model *m;
	struct stray *const *pods;
	size_t n;
	struct gpuq_arena mem;
	struct gpuq_buf spec_bytes, request_bytes;
	struct gpuq_spec spec;
	struct event as; /* JOB_SUBMITTED of an unknown job */
	struct recovered_pod *out;
	uint32_t groups[GPUQ_GROUPS_MAX]; /* group of the records, by group of the spec made here */
};

/* ---- a job in the ledger ---- */

/* Check that the pods are of this job, and not of another that once had its number. A pod without a
 * record passes. */
static int same_job(const struct making *k, const struct job *j, struct gpuq_err *err)
{
	for (size_t i = 0; i < k->n; i++) {
		const struct podrecord *r = &k->pods[i]->record;

		if (k->pods[i]->has_record &&
		    (strcmp(r->user, j->user) != 0 || r->submit_us != j->submit_us))
			return gpuq_fail(err, GPUQ_ECONFLICT,
					 "its record belongs to another job, %" PRIu32 ", of %s",
					 j->key.id, r->user);
	}
	return 0;
}

/* ---- a job known from records only ---- */

static int need_records(const struct making *k, struct gpuq_err *err)
{
	const struct podrecord *first = &k->pods[0]->record;

	for (size_t i = 0; i < k->n; i++) {
		const struct stray *s = k->pods[i];

		if (!s->has_record)
			return gpuq_fail(err, GPUQ_EINVAL, "%s",
					 *s->fact.record ? s->record_err.text
							 : "no annotation gpuq.io/record");
		if (strcmp(s->record.user, first->user) != 0 ||
		    strcmp(s->record.queue, first->queue) != 0 ||
		    s->record.submit_us != first->submit_us)
			return gpuq_fail(err, GPUQ_ECONFLICT,
					 "its record differs from that of pod %s",
					 k->pods[0]->name);
	}
	return 0;
}

static int check_queue(const struct making *k, const char *name, struct gpuq_err *err)
{
	const struct queue *q = model_find_queue(k->m, name);

	if (!q)
		return gpuq_fail(err, GPUQ_ENOENT,
				 "its record names queue %s, which does not exist", name);
	if (q->n_children)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "its record names queue %s, which has queues below it", name);
	return 0;
}

/* Return the group of the spec made here for group g of the records; numbered as they come,
 * ascending. */
static uint32_t group_of(struct making *k, int64_t g, uint32_t *n)
{
	for (uint32_t i = 0; i < *n; i++)
		if (k->groups[i] == g)
			return i;
	if (*n == GPUQ_GROUPS_MAX)
		return *n - 1;
	k->groups[*n] = (uint32_t)g;
	return (*n)++;
}

/* Make the request from the pods' devices; what they run is not known. */
static int make_groups(struct making *k, struct gpuq_err *err)
{
	struct gpuq_group *groups = gpuq_arena_calloc(&k->mem, GPUQ_GROUPS_MAX, sizeof(*groups));
	uint32_t n = 0;

	if (!groups)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < k->n; i++) {
		const struct podrecord *r = &k->pods[i]->record;
		const uint32_t before = n, at = group_of(k, r->group, &n);
		struct gpuq_group *g = &groups[at];

		if (n > before) {
			*g = k->spec.groups[0];
			g->name = gpuq_arena_printf(&k->mem, "group%" PRId64, r->group);
			g->pods_min = 0;
			g->gpus_milli = k->pods[i]->fact.gpus_milli;
			g->cpu_milli = r->cpu_milli;
			g->memory_bytes = r->memory_bytes;
		}
		g->pods_max = ++g->pods_min;
		k->out[i].place.group = at;
	}
	if (n == 1)
		groups[0].name = "main";
	k->spec.groups = groups;
	k->spec.n_groups = n;
	return 0;
}

static int read_spec(struct making *k, const struct gpuq_val *v, struct gpuq_err *err)
{
	struct gpuq_reader r = { .arena = &k->mem, .lenient = true, .err = err };

	return gpuq_spec_read(&r, v, &k->spec);
}

static int make_spec(struct making *k, bool named, struct gpuq_err *err)
{
	const struct podrecord *r = &k->pods[0]->record;
	struct gpuq_arena *a = &k->mem;
	struct gpuq_val *v = gpuq_map(a), *command = gpuq_list(a);
	int rc;

	gpuq_put(a, v, "name", gpuq_str(a, named && *r->name ? r->name : "recovered"));
	gpuq_put(a, v, "queue", gpuq_str(a, r->queue));
	if (named && *r->account)
		gpuq_put(a, v, "account", gpuq_str(a, r->account));
	gpuq_add(a, command, gpuq_str(a, "recovered"));
	gpuq_put(a, v, "command", command);
	gpuq_put(a, v, "requeue", gpuq_bool(a, false));
	if (!gpuq_val_ok(v))
		return gpuq_no_memory(err);
	rc = read_spec(k, v, err);
	if (rc == 0)
		rc = make_groups(k, err);
	v = rc == 0 ? gpuq_spec_write(a, &k->spec) : NULL;
	if (rc == 0 && !v)
		rc = gpuq_no_memory(err);
	/* The stored bytes are parsed again at each use. */
	if (rc == 0)
		rc = read_spec(k, v, err);
	if (rc == 0)
		gpuq_mp_write(&k->spec_bytes, v);
	if (rc == 0)
		rc = request_encode(&k->spec, &k->request_bytes, err);
	return rc;
}

static int make_job(struct making *k, struct gpuq_err *err)
{
	const struct podrecord *r = &k->pods[0]->record;
	enum gpuq_job_state ended;
	int rc = need_records(k, err);

	if (rc == 0 && history_state(journal_store(k->j), k->pods[0]->key.job, &ended) == 0)
		rc = gpuq_fail(err, GPUQ_ECONFLICT, "job %" PRIu32 " has ended (%s)",
			       k->pods[0]->key.job.id, gpuq_job_state_word(ended));
	if (rc == 0)
		rc = check_queue(k, r->queue, err);
	if (rc == 0 && make_spec(k, true, err) < 0)
		rc = make_spec(k, false, err); /* the name, or the account, was edited */
	if (rc < 0)
		return rc;
	k->as = (struct event){ .type = EV_JOB_SUBMITTED,
				.at_us = r->submit_us,
				.job = k->pods[0]->key.job };
	k->as.submitted.spec = &k->spec;
	k->as.submitted.spec_bytes = k->spec_bytes.data;
	k->as.submitted.spec_len = k->spec_bytes.len;
	k->as.submitted.request_bytes = k->request_bytes.data;
	k->as.submitted.request_len = k->request_bytes.len;
	k->as.submitted.user = r->user;
	k->as.submitted.queue = r->queue;
	k->as.submitted.qos = site_qos_find(k->m->site, r->qos) ? r->qos : "normal";
	k->as.submitted.uid = (uint32_t)r->uid;
	k->as.submitted.gid = (uint32_t)r->gid;
	k->as.submitted.time_limit_us = r->limit_us;
	return 0;
}

/* ---- the pods ---- */

static int take_pod(struct making *k, const struct stray *s, struct recovered_pod *out,
		    struct gpuq_err *err)
{
	const struct node *n = model_find_node(k->m, s->fact.node);
	uint16_t *devices = gpuq_arena_calloc(&k->mem, s->fact.n_devices + 1, sizeof(*devices));

	if (!devices)
		return gpuq_no_memory(err);
	if (!*s->fact.node || !*s->fact.token)
		return gpuq_fail(err, GPUQ_EINVAL, "no node or no token");
	for (size_t i = 0; i < s->fact.n_devices; i++) {
		const int d = s->fact.devices[i];

		if (d < 0 || d > UINT16_MAX || (n && !n->gone && (uint32_t)d >= n->n_devices) ||
		    (i > 0 && d <= s->fact.devices[i - 1]))
			return gpuq_fail(err, GPUQ_EINVAL, "node %s has no device %d", s->fact.node,
					 d);
		devices[i] = (uint16_t)d;
	}
	out->place.group = s->has_record ? (uint32_t)s->record.group : 0;
	out->place.group_index = s->has_record ? (uint32_t)s->record.group_index : s->key.index;
	out->place.node = s->fact.node;
	out->place.devices = devices;
	out->place.n_devices = (uint32_t)s->fact.n_devices;
	out->place.gpus_milli = s->fact.gpus_milli;
	out->index = s->key.index;
	out->uid = s->fact.uid;
	out->cpu_milli = s->has_record ? s->record.cpu_milli : s->fact.cpu_milli;
	out->memory_bytes = s->has_record ? s->record.memory_bytes : s->fact.memory_bytes;
	return 0;
}

static const char *flavor_of(const struct making *k)
{
	const struct stray *s = k->pods[0];
	const struct node *n = model_find_node(k->m, s->fact.node);

	return s->has_record && *s->record.flavor ? s->record.flavor : n ? n->flavor : "default";
}

int recover_job(struct journal *j, struct stray *const *pods, size_t n, struct gpuq_err *err)
{
	struct making k = { .j = j,
			    .m = journal_model(j),
			    .pods = pods,
			    .n = n,
			    .mem = GPUQ_ARENA_INIT(0),
			    .spec_bytes = GPUQ_BUF_INIT,
			    .request_bytes = GPUQ_BUF_INIT };
	struct event ev = { .type = EV_JOB_RECOVERED, .job = pods[0]->key.job };
	const struct job *known = model_find_job(k.m, ev.job);
	int rc = 0;

	if (!known && ev.job.index >= 0)
		known = model_find_job(k.m, (struct job_key){ ev.job.id, -1 });
	k.out = gpuq_arena_calloc(&k.mem, n, sizeof(*k.out));
	if (!k.out)
		rc = gpuq_no_memory(err);
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = take_pod(&k, pods[i], &k.out[i], err);
	if (rc == 0)
		rc = known ? same_job(&k, known, err) : make_job(&k, err);
	if (rc == 0) {
		ev.recovered.as = known ? NULL : &k.as;
		ev.recovered.token = pods[0]->fact.token;
		ev.recovered.flavor = flavor_of(&k);
		ev.recovered.attempt = pods[0]->key.attempt;
		ev.recovered.element_id =
			pods[0]->has_record ? (uint32_t)pods[0]->record.element_id : 0;
		ev.recovered.pods = k.out;
		ev.recovered.n_pods = (uint32_t)n;
		rc = journal_apply(j, &ev, err);
	}
	gpuq_buf_done(&k.spec_bytes);
	gpuq_buf_done(&k.request_bytes);
	gpuq_arena_done(&k.mem);
	return rc;
}
