#include "gpuqd/state/audit/model_audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/model.h"

/* Figures of a queue that follow from its jobs. */
struct counted {
	int64_t pending, running, unknown, recovered, allocated_milli, held_milli;
};

struct sums {
	struct counted *queues; /* by ix */
	uint32_t by_state[N_GPUQ_JOB_STATES];
	uint32_t n_jobs, n_promises, n_apart, n_avoiding;
};

/* Fail: a figure that is kept up to date is not what a count yields. */
static int differs(struct gpuq_err *err, const char *what, const char *name, const char *figure,
		   int64_t kept, int64_t counted)
{
	return gpuq_fail(err, GPUQ_ECORRUPT, "%s %s: %s is %" PRId64 ", counted %" PRId64, what,
			 name, figure, kept, counted);
}

/* Print "17" or "17_3". */
static const char *key_text(struct job_key key, char out[32])
{
	if (key.index < 0)
		snprintf(out, 32, "%" PRIu32, key.id);
	else
		snprintf(out, 32, "%" PRIu32 "_%" PRId32, key.id, key.index);
	return out;
}

/* Report a job in which a count or list is wrong. */
static int job_fails(struct gpuq_err *err, const struct job *j, const char *what)
{
	char name[32];

	return gpuq_fail(err, GPUQ_ECORRUPT, "job %s: %s", key_text(j->key, name), what);
}

/* ---- one job ---- */

/* Check the pending elements of an array, and its count of those that have not ended. */
static int audit_array(const struct model *m, const struct job *j, struct gpuq_err *err)
{
	const struct array *a = j->array;
	int64_t n = 0, live = 0;
	char name[32];

	for (size_t i = 0; i < a->n_waiting_ranges; i++) {
		const struct gpuq_range *r = &a->waiting[i];

		if (r->step <= 0 || r->last < r->first)
			return job_fails(err, j, "its pending elements are no ranges");
		n += (r->last - r->first) / r->step + 1;
	}
	if (n != a->n_waiting)
		return differs(err, "job", key_text(j->key, name), "pending elements", a->n_waiting,
			       n);
	for (const struct job *e = index_elements(m, j->key.id); e; e = e->life->kin_next)
		live += !e->ended;
	if (live != a->n_live)
		return differs(err, "job", key_text(j->key, name), "live elements", a->n_live,
			       live);
	return 0;
}

/* Check that each pod belongs to its job and is listed by its node. */
static int audit_pods(const struct model *m, const struct job *j, struct counted *q,
		      struct gpuq_err *err)
{
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next) {
		const struct pod *on;

		if (p->job != j || p->attempt > j->attempt)
			return job_fails(err, j, "it has a pod that is not of its attempts");
		if (!p->node || model_find_node(m, p->node->name) != p->node)
			return job_fails(err, j, "it has a pod on a node that is not there");
		DL_FOREACH2(p->node->pods, on, node_next)
			if (on == p)
				break;
		if (!on)
			return job_fails(err, j, "its node does not know a pod of it");
		q->allocated_milli += model_pod_takes(p) ? p->gpus_milli : 0;
	}
	return 0;
}

/* Check one job, and add it to the figures of its queue and of the whole. */
static int audit_job(const struct model *m, const struct job *j, struct sums *s,
		     struct gpuq_err *err)
{
	struct counted *q;
	int rc = 0;

	if (j->key.id == 0 || j->key.id >= m->next_job_id)
		return job_fails(err, j, "its number has not been given yet");
	if (model_find_job(m, j->key) != j)
		return job_fails(err, j, "it is not found by its number");
	if (j->life->element_id && (j->key.index < 0 || j->life->element_id >= m->next_job_id ||
				    model_find_element(m, j->life->element_id) != j))
		return job_fails(err, j, "its element is not found by its own number");
	if (!j->queue || j->queue->ix >= m->n_queues || m->queues[j->queue->ix] != j->queue)
		return job_fails(err, j, "its queue is not there");
	if (!j->request)
		return job_fails(err, j, "it has no request");
	q = &s->queues[j->queue->ix];
	s->n_jobs++;
	s->by_state[j->state]++;
	s->n_promises += j->life->promise != NULL;
	s->n_apart += j->life->apart != NULL;
	s->n_avoiding += j->life->avoids != NULL;
	q->held_milli += job_promise_milli(j->life->promise);
	if (!j->ended) {
		q->unknown += j->held_restore;
		q->recovered += j->recovered;
		if (model_job_is_live(j))
			q->running++;
		else
			q->pending += j->array ? j->array->n_waiting : 1;
	}
	if (j->array && !j->ended)
		rc = audit_array(m, j, err);
	return rc == 0 ? audit_pods(m, j, q, err) : rc;
}

/* ---- figures of the whole ---- */

/* Compare the counters of a queue with those found. */
static int audit_queue(const struct queue *q, const struct counted *c, struct gpuq_err *err)
{
	const struct {
		const char *figure;
		int64_t kept, counted;
	} rows[] = {
		{ "pending jobs", q->n_pending, c->pending },
		{ "running jobs", q->n_running, c->running },
		{ "jobs of unknown fate", q->n_unknown, c->unknown },
		{ "recovered jobs", q->n_recovered, c->recovered },
		{ "allocated thousandths of devices", q->allocated_milli, c->allocated_milli },
		{ "held thousandths of devices", q->held_milli, c->held_milli },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].kept != rows[i].counted)
			return differs(err, "queue", q->name, rows[i].figure, rows[i].kept,
				       rows[i].counted);
	return 0;
}

/* Check the lists of users' jobs: each job is in its owner's, and their sum is the stored one. */
static int audit_owners(const struct model *m, struct gpuq_err *err)
{
	job_each(m, j) {
		struct stored kept, sum = { 0, 0 };

		if (index_of_user(m, j->user) != j)
			continue; /* each user once, at the first job of the list */
		for (const struct job *k = j; k; k = k->user_next) {
			if (k->user != j->user)
				return job_fails(err, k, "it is listed as another user's");
			sum.n_jobs += k->key.index < 0 && !k->ended;
			sum.bytes += k->key.index < 0 && !k->ended ? k->spec_bytes : 0;
		}
		kept = index_stored_of(m, j->user);
		if (kept.n_jobs != sum.n_jobs)
			return differs(err, "user", j->user, "jobs", kept.n_jobs, sum.n_jobs);
		if (kept.bytes != sum.bytes)
			return differs(err, "user", j->user, "bytes of specs", kept.bytes,
				       sum.bytes);
	}
	return 0;
}

/* Check the lists of jobs by state, and their counters. */
static int audit_states(const struct model *m, const struct sums *s, struct gpuq_err *err)
{
	for (int i = 0; i < N_GPUQ_JOB_STATES; i++) {
		const char *name = gpuq_job_state_word((enum gpuq_job_state)i);
		uint32_t listed = 0;

		for (const struct job *j = m->jobs_by_state[i]; j; j = j->state_next)
			listed++;
		if (listed != s->by_state[i])
			return differs(err, "state", name, "listed jobs", listed, s->by_state[i]);
		if (m->n_jobs_by_state[i] != s->by_state[i])
			return differs(err, "state", name, "jobs", m->n_jobs_by_state[i],
				       s->by_state[i]);
	}
	return 0;
}

/* Check that each request is counted for each job that has it. */
static int audit_requests(const struct model *m, struct gpuq_err *err)
{
	int64_t users = 0, kept = 0;

	job_each(m, j)
		users++;
	for (const struct request *r = m->requests.list; r; r = r->next)
		kept += r->n_jobs;
	return kept == users ? 0 : differs(err, "all", "requests", "users", kept, users);
}

/* Compare the figures of the whole with those found. */
static int audit_sums(const struct model *m, const struct sums *s, struct gpuq_err *err)
{
	const struct {
		const char *figure;
		int64_t kept, counted;
	} rows[] = {
		{ "jobs", m->n_jobs, s->n_jobs },
		{ "nominated placements", m->n_promises, s->n_promises },
		{ "fragmented jobs", m->n_apart, s->n_apart },
		{ "jobs that avoid nodes", m->n_avoiding, s->n_avoiding },
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].kept != rows[i].counted)
			return differs(err, "all", "jobs", rows[i].figure, rows[i].kept,
				       rows[i].counted);
	for (uint32_t i = 0; i < m->n_queues && rc == 0; i++)
		rc = audit_queue(m->queues[i], &s->queues[i], err);
	return rc;
}

/* Report a request for nodes in which something is wrong. */
static int ask_fails(struct gpuq_err *err, const struct ask *a, const char *what)
{
	return gpuq_fail(err, GPUQ_ECORRUPT, "request %" PRIu32 " for nodes: %s", a->number, what);
}

/* Check one request: its state, and that no node of it is one of another as well. */
static int audit_ask(const struct model *m, const struct ask *a, struct gpuq_err *err)
{
	uint32_t n_fresh = 0;

	if (a->number == 0 || a->number > m->last_ask)
		return ask_fails(err, a, "its number has not been given yet");
	if (ask_find(m, a->number) != a)
		return ask_fails(err, a, "it is not found by its number");
	if (a->state >= N_ASK_STATES || a->n_nodes == 0 || a->attempt == 0 || !*a->token)
		return ask_fails(err, a, "it has no state, no node, no attempt or no token");
	if (a->owner.id == 0 || a->owner.id >= m->next_job_id || a->first.id == 0 ||
	    a->first.id >= m->next_job_id)
		return ask_fails(err, a, "the number of its job has not been given yet");
	if (a->state < ASK_STATE_PROVISIONED && a->provisioned_us)
		return ask_fails(err, a, "its nodes were given before it was accepted");
	if (a->state == ASK_STATE_PROVISIONED && !a->provisioned_us)
		return ask_fails(err, a, "it is not known when its nodes were given");
	if (a->state < ASK_STATE_PAUSED && a->cleared)
		return ask_fails(err, a, "it is under way, and removed");
	for (uint32_t i = 0; i < a->n_came; i++) {
		bool stale;

		n_fresh += !a->nodes[i].stale;
		if (ask_of_node(m, a->nodes[i].name, &stale) != a)
			return ask_fails(err, a, "one of its nodes came for another as well");
	}
	if (a->state == ASK_STATE_PAUSED && n_fresh)
		return ask_fails(err, a, "nodes of an attempt that is over may be used");
	return n_fresh <= a->n_nodes ? 0 : ask_fails(err, a, "more nodes than it has may be used");
}

int model_audit(const struct model *m, struct gpuq_err *err)
{
	struct sums s = { .queues = calloc(m->n_queues + 1, sizeof(*s.queues)) };
	int rc = s.queues ? 0 : gpuq_no_memory(err);

	job_each(m, j)
		if (rc == 0)
			rc = audit_job(m, j, &s, err);
	if (rc == 0)
		rc = audit_sums(m, &s, err);
	if (rc == 0)
		rc = audit_states(m, &s, err);
	if (rc == 0)
		rc = audit_owners(m, err);
	if (rc == 0)
		rc = audit_requests(m, err);
	for (const struct ask *a = m->asks; a && rc == 0; a = a->hh.next)
		rc = audit_ask(m, a, err);
	free(s.queues);
	return rc;
}
