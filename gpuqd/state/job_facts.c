/* Facts that follow from the present state of a job, without changing it: its grace period, the
 * victims that have not ended yet, and the verdict on an attempt that is over. */
#include "gpuqd/state/model_int.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/units.h"

#define EXIT_KILLED 137 /* 128 + SIGKILL */

bool job_ranges_has(const struct gpuq_range *r, size_t n, int64_t index)
{
	for (size_t i = 0; i < n; i++)
		if (index >= r[i].first && index <= r[i].last &&
		    (index - r[i].first) % r[i].step == 0)
			return true;
	return false;
}

/* Maximum grace period of an evicted job, whatever its job file says; a qos may set another
 * bound. */
#define GRACE_MOST_US (300 * GPUQ_US_PER_S)

bool job_cause_is_eviction(enum gpuq_cause c)
{
	return c == GPUQ_CAUSE_RECLAIM || c == GPUQ_CAUSE_PREEMPT || c == GPUQ_CAUSE_CONSOLIDATE ||
	       c == GPUQ_CAUSE_SHRINK || c == GPUQ_CAUSE_DRAIN;
}

int64_t job_grace_most_us(const struct model *m, const struct job *j)
{
	const struct site_qos *q = site_qos_find(m->site, j->qos);

	return q && q->grace_us ? q->grace_us : GRACE_MOST_US;
}

int64_t job_evicted_us(const struct model *m, const struct job *j)
{
	const int64_t own = j->wish->grace_us ? j->wish->grace_us : JOB_GRACE_DEFAULT_US;
	const int64_t most = job_grace_most_us(m, j);

	return own < most ? own : most;
}

bool job_is_elastic(const struct job *j)
{
	const struct request_spec *spec = &j->request->spec;

	for (size_t i = 0; i < spec->n_groups; i++)
		if (spec->groups[i].pods_max > spec->groups[i].pods_min)
			return true;
	return false;
}

/* ---- nominated placements ---- */

int64_t job_promise_milli(const struct promise *p)
{
	int64_t sum = 0;

	for (uint32_t i = 0; p && i < p->n_pods; i++)
		sum += p->pods[i].gpus_milli;
	return sum;
}

/* True if the victim still holds devices and is to release them: it was signalled, or a pod of it
 * was dropped or belongs to an earlier attempt. */
static bool is_leaving(const struct model *m, struct job_key victim)
{
	const struct job *v = model_find_job(m, victim);
	const struct pod *p;

	if (!v)
		return false;
	DL_FOREACH2(v->pods, p, job_next)
		if (model_pod_takes(p) &&
		    (v->life->leave_us || p->dropped || p->attempt != v->attempt))
			return true;
	return false;
}

uint32_t job_victims_left(const struct model *m, const struct job *j)
{
	uint32_t n = 0;

	for (uint32_t i = 0; j->life->promise && i < j->life->promise->n_victims; i++)
		n += is_leaving(m, j->life->promise->victims[i]);
	return n;
}

bool job_victim_left(const struct model *m, const struct job *j, struct job_key *first)
{
	for (uint32_t i = 0; j->life->promise && i < j->life->promise->n_victims; i++) {
		*first = j->life->promise->victims[i];
		if (is_leaving(m, *first))
			return true;
	}
	return false;
}

/* ---- how an attempt ends ---- */

/* True if it was to be evicted, but all of its pods had succeeded well before. A pod that exits
 * with 0 after the signal may only have saved its state. */
static bool was_done_anyway(const struct job *j)
{
	const struct pod *p;
	bool any = false;

	if (j->life->outcome != GPUQ_JOB_PREEMPTED)
		return false;
	DL_FOREACH2(j->pods, p, job_next) {
		if (p->attempt != j->attempt || p->dropped)
			continue;
		if (p->exit_code != 0 || p->fault != POD_FAULT_NONE || !p->untold ||
		    p->end_us >= j->life->leave_us)
			return false;
		any = true;
	}
	return any;
}

bool job_is_withdrawn(const struct job *j)
{
	const struct life *l = j->life;

	return l->leave_us && l->leave_cause == GPUQ_CAUSE_REQUEUE && l->trouble &&
	       l->trouble->whose == TROUBLE_ROOM;
}

void job_verdict(const struct job *j, struct event *out)
{
	const struct pod *p, *first = NULL;
	enum gpuq_job_state state = j->life->outcome;
	int exit_code = j->life->outcome_exit;
	bool again = false, counts = true;
	enum gpuq_cause cause = GPUQ_CAUSE_REQUEUE;
	const char *late = NULL;

	memset(out, 0, sizeof(*out));
	out->job = j->key;
	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && p->message && !first)
			first = p;
	/* Pods that never ran have no message of their own. */
	if (job_is_withdrawn(j))
		late = j->life->trouble->words;
	else if (j->life->leave_cause == GPUQ_CAUSE_INFRA && j->life->n_evictions)
		late = j->life->evictions[j->life->n_evictions - 1].why;
	if (state == GPUQ_JOB_PENDING || was_done_anyway(j))
		state = GPUQ_JOB_COMPLETED;
	if (j->life->leave_cause != GPUQ_CAUSE_NONE && state == GPUQ_JOB_PREEMPTED) {
		/* An explicit requeue does not depend on the job's own setting. */
		again = j->wish->requeue || j->life->leave_cause == GPUQ_CAUSE_REQUEUE;
		counts = false;
		cause = j->life->leave_cause;
	} else if (state == GPUQ_JOB_NODE_FAIL) {
		/* Infrastructure failures are not the owner's fault: always retried, unless the
		 * owner forbade requeueing. */
		again = j->wish->requeue && !j->cancel_asked;
		counts = false;
		cause = GPUQ_CAUSE_INFRA;
	} else if ((state == GPUQ_JOB_FAILED || state == GPUQ_JOB_OUT_OF_MEMORY) &&
		   exit_code == JOB_EXIT_SAVED && j->wish->saves && !j->cancel_asked) {
		again = true; /* not a failure: it saved itself, to be started again */
		counts = false;
	} else if (j->wish->retry_limit > j->life->n_retries && !j->cancel_asked &&
		   exit_code >= 0) {
		again = (state == GPUQ_JOB_FAILED && (job_wish_has_exit(j->wish, exit_code) ||
						      (j->wish->retry_on & GPUQ_RETRY_FAILURE))) ||
			/* A code of its own: a process of it was killed, and it went on. */
			(state == GPUQ_JOB_OUT_OF_MEMORY &&
			 ((j->wish->retry_on & GPUQ_RETRY_OOM) ||
			  (exit_code != EXIT_KILLED && job_wish_has_exit(j->wish, exit_code)))) ||
			(state == GPUQ_JOB_TIMEOUT && j->life->leave_cause != GPUQ_CAUSE_IDLE &&
			 (j->wish->retry_on & GPUQ_RETRY_TIMEOUT));
	}
	if (again) {
		out->type = EV_JOB_REQUEUED;
		out->requeued.cause = cause;
		out->requeued.counts = counts;
		out->requeued.message = first ? first->message : late ? late : "";
		return;
	}
	out->type = EV_JOB_ENDED;
	out->ended.state = state;
	out->ended.exit_code = state == GPUQ_JOB_COMPLETED ? 0 : exit_code;
	out->ended.message = j->life->message ? j->life->message
			     : first          ? first->message
			     : late           ? late
					      : "";
}

/* True if the job itself restricts its nodes: the devices of other nodes do not show whether these
 * would do. The node is then avoided only briefly. */
static bool is_narrow(const struct job *j)
{
	for (size_t i = 0; j->request && i < j->request->spec.n_groups; i++) {
		const struct gpuq_group *g = j->request->spec.groups[i].where;

		if (!g)
			continue;
		if (g->n_required || g->nodes.n || g->exclude.n || g->topology_required ||
		    g->n_slices)
			return true;
	}
	return false;
}

int64_t job_avoids_until(const struct job *j, const struct avoided *a)
{
	return a->until_us - (is_narrow(j) ? JOB_AVOID_US - JOB_AVOID_NARROW_US : 0);
}
