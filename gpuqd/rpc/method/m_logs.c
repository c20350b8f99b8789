#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/cluster/cluster.h"
#include "gpuqd/state/model.h"
#include "gpuqd/flow/admit/access.h"
#include "gpuqd/flow/history.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/logs/kept.h"
#include "gpuqd/flow/order.h"
#include "gpuqd/rpc/method/m_int.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

/* job.logs: items {pod, attempt, offset, bytes}. With follow it lasts as long as the
 * job: pods that start later join, a new attempt's pods, too, unless one attempt is asked for.
 * offset is where in that pod's log the bytes begin, so that a client whose connection broke asks
 * to go on. */

struct logs_params {
	int64_t id, index, pod, tail_lines;
	int64_t attempt; /* -1 = the present one, and those that follow */
	int64_t since_us;
	bool follow, timestamps;
	struct gpuq_val *offsets; /* {"0": 1234}: by pod index, of that attempt */
};

static void logs_defaults(void *obj)
{
	struct logs_params *p = obj;

	p->index = p->pod = p->tail_lines = p->attempt = -1;
}

static const struct gpuq_field logs_fields[] = {
	P(logs_params, "id", GPUQ_K_INT, id, .flags = GPUQ_F_REQUIRED, .min = 1, .max = UINT32_MAX),
	P(logs_params, "index", GPUQ_K_INT, index, .min = -1, .max = INT32_MAX),
	P(logs_params, "pod", GPUQ_K_INT, pod, .min = -1, .max = INT32_MAX),
	P(logs_params, "tail_lines", GPUQ_K_INT, tail_lines, .min = -1, .max = INT32_MAX),
	P(logs_params, "follow", GPUQ_K_BOOL, follow),
	P(logs_params, "attempt", GPUQ_K_INT, attempt, .min = -1, .max = INT32_MAX),
	P(logs_params, "since_us", GPUQ_K_INT, since_us, .min = 0, .max = INT64_MAX),
	P(logs_params, "timestamps", GPUQ_K_BOOL, timestamps),
	P(logs_params, "offsets", GPUQ_K_VAL, offsets),
	P_END,
};
const struct gpuq_schema p_job_logs = { .name = "params",
					.size = sizeof(struct logs_params),
					.fields = logs_fields,
					.defaults = logs_defaults };

struct pod_log {
	struct pod_log *prev, *next;
	struct logs *owner;
	struct cluster_log *log; /* NULL = ended, or it is */
	struct kept_read *kept; /* of a pod that is gone */
	uint32_t attempt, index;
	int64_t at, skip; /* bytes seen of it; bytes the client has */
	char *held; /* not sent for want of credit */
	size_t n_held;
	bool paused, ended;
};

struct logs {
	struct logs *prev, *next;
	struct methods *m;
	struct rpc_call *c;
	const struct logs_params *p;
	struct job_key key;
	struct pod_log *pods;
	uint32_t first_attempt; /* that offsets speak of */
	bool job_over; /* or the attempt that was asked for is */
	bool looked;
	char *error;
};

static void pod_log_free(struct pod_log *pl)
{
	DL_DELETE(pl->owner->pods, pl);
	if (pl->log && pl->owner->m->cluster)
		pl->owner->m->cluster->ops->log_close(pl->log);
	kept_read_close(pl->kept);
	free(pl->held);
	free(pl);
}

static void logs_unlink(struct logs *l)
{
	struct pod_log *pl, *next;

	DL_FOREACH_SAFE(l->pods, pl, next)
		pod_log_free(pl);
	DL_DELETE(l->m->logs, l);
	free(l->error);
	free(l);
}

bool logs_attend(const struct methods *m, const struct job *j)
{
	const struct logs *l;

	DL_FOREACH(m->logs, l)
		if (l->key.id == j->key.id && strcmp(rpc_call_peer(l->c)->user, j->user) == 0)
			return true;
	return false;
}

static bool send_bytes(struct pod_log *pl, const char *bytes, size_t n)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = gpuq_map(&mem);
	bool ok;

	gpuq_put(&mem, v, "pod", gpuq_int(&mem, pl->index));
	gpuq_put(&mem, v, "attempt", gpuq_int(&mem, pl->attempt));
	gpuq_put(&mem, v, "offset", gpuq_int(&mem, pl->at - (int64_t)n));
	gpuq_put(&mem, v, "bytes", gpuq_bin(&mem, bytes, n));
	ok = rpc_item(pl->owner->c, v);
	gpuq_arena_done(&mem);
	return ok;
}

/* Bytes passed on count as taken, even if a pause is requested afterwards: they are held here
 * until there is credit. */
static bool on_bytes(void *arg, const char *bytes, size_t n, const struct gpuq_err *err)
{
	struct pod_log *pl = arg;
	int64_t skip;

	if (n == 0) {
		pl->ended = true;
		if (err && !pl->owner->error)
			pl->owner->error = strdup(err->text);
		methods_look_again(pl->owner->m);
		return false;
	}
	pl->at += (int64_t)n;
	skip = pl->skip - (pl->at - (int64_t)n);
	if (skip >= (int64_t)n)
		return true;
	if (skip > 0) {
		bytes += skip;
		n -= (size_t)skip;
	}
	if (send_bytes(pl, bytes, n))
		return true;
	pl->held = malloc(n);
	if (!pl->held)
		abort();
	memcpy(pl->held, bytes, n);
	pl->n_held = n;
	pl->paused = true;
	return false;
}

static void on_resume(void *arg)
{
	struct logs *l = arg;
	struct pod_log *pl;

	DL_FOREACH(l->pods, pl) {
		if (!pl->paused)
			continue;
		if (!send_bytes(pl, pl->held, pl->n_held))
			return;
		free(pl->held);
		pl->held = NULL;
		pl->paused = false;
		if (pl->log && !pl->ended && l->m->cluster)
			l->m->cluster->ops->log_resume(pl->log);
		if (pl->kept && !pl->ended)
			kept_read_resume(pl->kept);
	}
	methods_look_again(l->m);
}

static void on_closed(void *arg, int why)
{
	struct logs *l = arg;
	struct gpuq_err err;

	gpuq_fail(&err, why, "cancelled");
	rpc_fail(l->c, &err);
	logs_unlink(l);
}

static struct pod_log *find(struct logs *l, uint32_t attempt, uint32_t index)
{
	struct pod_log *pl;

	DL_FOREACH(l->pods, pl)
		if (pl->attempt == attempt && pl->index == index)
			return pl;
	return NULL;
}

static void cannot_read(struct pod_log *pl, const struct gpuq_err *err)
{
	pl->ended = true;
	if (!pl->owner->error)
		pl->owner->error = strdup(err->text);
}

/* gone: the pod is in no list any more, only its output may be kept. */
static void open_log(struct logs *l, const struct pod_ref *ref, bool gone, uint32_t uid,
		     uint32_t gid, uint32_t attempt, uint32_t index)
{
	const struct log_opts o = { .follow = l->p->follow && !gone,
				    .tail_lines = l->p->tail_lines,
				    .since_us = l->p->since_us,
				    .timestamps = l->p->timestamps,
				    .uid = uid,
				    .gid = gid };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct pod_log *pl;
	char text[16];

	if ((l->p->pod >= 0 && index != l->p->pod) || find(l, attempt, index) || !l->m->cluster)
		return;
	pl = calloc(1, sizeof(*pl));
	if (!pl)
		abort();
	pl->owner = l;
	pl->attempt = attempt;
	pl->index = index;
	snprintf(text, sizeof(text), "%" PRIu32, index);
	if (attempt == l->first_attempt)
		pl->skip = gpuq_get_int(l->p->offsets, text, 0);
	DL_APPEND(l->pods, pl);
	if (l->m->kept && (gone || kept_has(l->m->kept, ref->name)))
		pl->kept = kept_read_new(l->m->kept, ref->name, &o, on_bytes, pl, &err);
	else
		pl->log = l->m->cluster->ops->log_open(l->m->cluster, ref, &o, on_bytes, pl, &err);
	if (!pl->kept && !pl->log)
		cannot_read(pl, &err);
}

/* Open the output of an attempt whose pods the ledger knows by their names alone. */
static void open_earlier(struct logs *l, const char *namespace_, uint32_t uid, uint32_t gid,
			 int64_t n_pods)
{
	const struct model *m = journal_model(l->m->j);
	const uint32_t attempt = (uint32_t)l->p->attempt;

	for (uint32_t i = 0; i < n_pods; i++) {
		const struct pod_key key = { l->key, attempt, i };
		const struct pod *p = model_find_pod(m, key);
		char name[64];
		const struct pod_ref ref = { .name = name,
					     .namespace_ = namespace_,
					     .uid = p ? p->uid : "",
					     .node = p ? p->node->name : "",
					     .token = "" };

		model_pod_key_name(m->cluster_id, key, name);
		open_log(l, &ref, !p, uid, gid, attempt, i);
	}
}

static int64_t pods_max(const struct job *j)
{
	const struct request_spec *spec = &j->request->spec;
	int64_t n = 0;

	for (uint32_t i = 0; i < spec->n_groups; i++)
		n += spec->groups[i].pods_max;
	return n;
}

static void open_live(struct logs *l, const struct job *j)
{
	const struct model *m = journal_model(l->m->j);
	const bool asked = l->p->attempt >= 0;
	/* One that waits again has no pods, though its next attempt has not begun. */
	const bool earlier = asked && (j->attempt > l->p->attempt ||
				       (j->state == GPUQ_JOB_PENDING && j->started_once));
	const struct pod *p;

	if (!l->looked)
		l->first_attempt = asked ? (uint32_t)l->p->attempt : j->attempt;
	l->job_over = j->ended || earlier;
	if (earlier) {
		open_earlier(l, order_namespace(j->queue), j->wish->uid, j->wish->gid, pods_max(j));
		return;
	}
	DL_FOREACH2(j->pods, p, job_next) {
		struct pod_ref ref = { .namespace_ = order_namespace(j->queue),
				       .uid = p->uid,
				       .node = p->node->name,
				       .token = j->life->token };
		char name[64];

		if (p->attempt != j->attempt || p->state < GPUQ_POD_RUNNING)
			continue;
		model_pod_name(m, p, name);
		ref.name = name;
		open_log(l, &ref, false, j->wish->uid, j->wish->gid, p->attempt, p->index);
	}
}

static void open_old(struct logs *l, const struct gpuq_val *job)
{
	const struct gpuq_val *pods = gpuq_get(job, "pods");
	const struct queue *q =
		model_find_queue(journal_model(l->m->j), gpuq_get_str(job, "queue", ""));
	const uint32_t attempt = (uint32_t)gpuq_get_int(job, "attempt", 0);
	const uint32_t uid = (uint32_t)gpuq_get_int(job, "uid", UINT32_MAX);

	if (!l->looked)
		l->first_attempt = l->p->attempt >= 0 ? (uint32_t)l->p->attempt : attempt;
	if (l->p->attempt >= 0 && l->p->attempt < attempt) {
		open_earlier(l, q ? order_namespace(q) : "", uid, UINT32_MAX,
			     gpuq_get_int(job, "pod_count", 1));
		return;
	}
	for (uint32_t i = 0; pods && i < pods->n; i++) {
		struct pod_ref ref = { .name = gpuq_get_str(pods->items[i], "name", ""),
				       .namespace_ = q ? order_namespace(q) : "",
				       .uid = gpuq_get_str(pods->items[i], "uid", ""),
				       .node = gpuq_get_str(pods->items[i], "node", ""),
				       .token = "" };

		open_log(l, &ref, false, uid, UINT32_MAX, attempt,
			 (uint32_t)gpuq_get_int(pods->items[i], "index", 0));
	}
}

static bool all_read(const struct logs *l)
{
	const struct pod_log *pl;

	DL_FOREACH(l->pods, pl)
		if (!pl->ended || pl->paused)
			return false;
	return true;
}

static void finish(struct logs *l)
{
	struct gpuq_err err;
	bool got = false;
	struct pod_log *pl;

	DL_FOREACH(l->pods, pl)
		got |= pl->at > 0;
	if (l->error && !got) {
		gpuq_fail(&err, GPUQ_EGONE, "%s", l->error);
		rpc_fail(l->c, &err);
	} else {
		rpc_end(l->c, NULL);
	}
	logs_unlink(l);
}

static void look(struct logs *l)
{
	const struct model *m = journal_model(l->m->j);
	const struct job *j = model_find_job(m, l->key);
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_val *old;

	if (!l->m->cluster)
		return;
	if (j) {
		open_live(l, j);
	} else {
		old = history_job(journal_store(l->m->j), l->key, &mem);
		if (old)
			open_old(l, old);
		/* An element that still waits inside its array is not over. */
		j = model_find_job(m, (struct job_key){ l->key.id, -1 });
		l->job_over =
			old || !j || !j->array || !model_element_waits(j->array, l->key.index);
	}
	gpuq_arena_done(&mem);
	l->looked = true;
	if (all_read(l) && (l->job_over || !l->p->follow))
		finish(l);
}

void logs_flush(struct methods *m)
{
	struct logs *l, *next;

	DL_FOREACH_SAFE(m->logs, l, next)
		look(l);
}

void logs_on_event(struct methods *m, const struct event *ev)
{
	uint32_t id =
		ev->type == EV_POD_STARTED || ev->type == EV_POD_ENDED || ev->type == EV_POD_GONE
			? ev->pod.job.id
		: ev->type == EV_JOB_ENDED || ev->type == EV_JOB_REQUEUED ||
				ev->type == EV_JOB_CANCEL_ASKED
			? ev->job.id
			: 0;
	struct logs *l;

	if (!id)
		return;
	DL_FOREACH(m->logs, l)
		if (l->key.id == id) {
			methods_look_again(m);
			return;
		}
}

void logs_drop_cluster(struct methods *m)
{
	struct logs *l;
	struct pod_log *pl;

	DL_FOREACH(m->logs, l) {
		DL_FOREACH(l->pods, pl) {
			if (pl->log && m->cluster)
				m->cluster->ops->log_close(pl->log);
			pl->log = NULL;
			pl->ended = true;
		}
	}
}

void logs_free(struct methods *m)
{
	struct logs *l, *next;

	DL_FOREACH_SAFE(m->logs, l, next)
		logs_unlink(l);
}

/* True if there was or is the attempt that is asked for; attempts is of the job or of its element. */
static int attempt_check(struct job_key key, int64_t asked, int64_t last, struct gpuq_err *err)
{
	char id[32];

	if (asked <= last)
		return 0;
	snprintf(id, sizeof(id), key.index < 0 ? "%" PRIu32 : "%" PRIu32 "_%" PRId32, key.id,
		 key.index);
	if (last == 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "job %s has no attempt %" PRId64 ": its only one is 0", id, asked);
	return gpuq_fail(err, GPUQ_EINVAL,
			 "job %s has no attempt %" PRId64 ": its attempts are 0 to %" PRId64, id,
			 asked, last);
}

static int may_see(struct methods *m, struct rpc_call *c, const struct logs_params *p,
		   struct gpuq_err *err)
{
	const struct model *model = journal_model(m->j);
	struct gpuq_arena *a = rpc_call_arena(c);
	struct job_key key = job_id_of_call(m, p->id, p->index);
	const struct job *j = model_find_job(model, key);
	const char *owner = NULL;
	const struct queue *q = NULL;
	const struct submit_who who = peer_who(m, c);
	int64_t last = j ? j->attempt : 0;

	if (!j && key.index >= 0)
		j = model_find_job(model, (struct job_key){ key.id, -1 });
	if (j) {
		owner = j->user;
		q = j->queue;
	} else {
		const struct gpuq_val *old = history_job(journal_store(m->j), key, a);

		if (!old)
			return no_such_job(key, err);
		owner = gpuq_get_str(old, "user", "");
		q = model_find_queue(model, gpuq_get_str(old, "queue", ""));
		last = gpuq_get_int(old, "attempt", 0);
	}
	if (!access_job(model, q, owner, &who))
		return gpuq_fail(err, GPUQ_EPERM, "job %" PRId64 " belongs to another user", p->id);
	if (j && j->array && p->index < 0)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "job %" PRId64 " is an array: name an element, such as %" PRId64
				 "_0",
				 p->id, p->id);
	return attempt_check(key, p->attempt, last, err);
}

/* Return how many outputs of pods the calls of a user read. */
static unsigned n_read(const struct methods *m, const char *user)
{
	const struct logs *l;
	const struct pod_log *pl;
	unsigned n = 0;

	DL_FOREACH(m->logs, l) {
		if (strcmp(rpc_call_peer(l->c)->user, user) != 0)
			continue;
		n++; /* it may begin to read at any time */
		DL_FOREACH(l->pods, pl)
			n += pl != l->pods && pl->log;
	}
	return n;
}

static int may_begin(const struct methods *m, const struct rpc_call *c, struct gpuq_err *err)
{
	const char *user = rpc_call_peer(c)->user;

	if (n_read(m, user) < GPUQ_LOGS_PER_USER)
		return 0;
	gpuq_fail(err, GPUQ_EBUSY, "user %s reads the output of %u pods already", user,
		  GPUQ_LOGS_PER_USER);
	err->retry_ms = 1000;
	return GPUQ_EBUSY;
}

/* A job that ends in this very turn is in history only once that is durable. */
struct opening {
	struct methods *m;
	struct rpc_call *c;
	const struct logs_params *p;
};

static void begin(void *arg, int rc, const struct gpuq_err *failed)
{
	struct opening *o = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct logs *l;

	if (rc < 0)
		err = *failed;
	if (rc == 0)
		rc = may_see(o->m, o->c, o->p, &err);
	if (rc == 0)
		rc = may_begin(o->m, o->c, &err);
	if (rc < 0) {
		rpc_fail(o->c, &err);
		return;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		abort();
	l->m = o->m;
	l->c = o->c;
	l->p = o->p;
	l->key = job_id_of_call(o->m, o->p->id, o->p->index);
	DL_APPEND(o->m->logs, l);
	rpc_call_watch(o->c, on_resume, on_closed, l);
	methods_look_again(o->m);
}

int m_job_logs(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct opening *o = gpuq_arena_alloc(rpc_call_arena(c), sizeof(*o));

	if (!o)
		return gpuq_no_memory(err);
	*o = (struct opening){ arg, c, params };
	journal_after(o->m->j, begin, o);
	return 0;
}
