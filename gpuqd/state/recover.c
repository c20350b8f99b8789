/* Unfinished restores from an older copy: pods that the copy did not know become pods of jobs
 * again, and jobs whose pods are gone are held for a decision. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/state/cuts/shared_claim.h"
#include "gpuqd/state/model_int.h"

void recover_count(const struct model *m, uint32_t *n_unknown, uint32_t *n_recovered)
{
	*n_unknown = *n_recovered = 0;
	for (uint32_t i = 0; i < m->n_queues; i++) {
		*n_unknown += m->queues[i]->n_unknown;
		*n_recovered += m->queues[i]->n_recovered;
	}
}

/* Continue job ids well above the highest known one: jobs that the copy does not know may have been
 * given the next ones. */
static void pass_over(struct model *m, uint32_t highest)
{
	const uint32_t next =
		highest > UINT32_MAX - RECOVERY_SKIP ? UINT32_MAX : highest + RECOVERY_SKIP;

	if (next > m->next_job_id)
		m->next_job_id = next;
	m->meta_dirty = true;
}

/* Begin the recovery: the store is a copy of an earlier state, and the cluster must be listed
 * before anything starts. */
static void begin(struct model *m, int64_t at_us)
{
	m->recovery = (struct recovery){ .since_us = at_us,
					 .copied_us = m->newest_us < at_us ? m->newest_us : at_us,
					 .floor = m->recovery.floor };
	pass_over(m, m->next_job_id);
	/* Another cluster may list lower numbers than this copy has. */
	if (m->recovery.floor < m->next_job_id)
		m->recovery.floor = m->next_job_id;
}

/* ---- unknown pods ---- */

/* Return its node, which may be reported later or never: until then it is a node that is gone. */
static struct node *node_of(struct model *m, const char *name)
{
	static const struct node_fact bare = { .note = "not seen since the store was restored" };
	struct node *n = model_find_node(m, name);
	struct node_fact f = bare;

	if (n)
		return n;
	f.name = name;
	n = node_get(m, CLUSTER_DEFAULT, name);
	node_set_fact(m, n, &f);
	n->gone = true;
	return n;
}

/* Add a pod that the cluster reports, as if it had been placed just now. */
static void add_pod(struct model *m, struct job *j, const struct recovered_pod *rp, int64_t at_us)
{
	struct life *l = job_life(j);
	struct pod *p = pod_add(m, j, node_of(m, rp->place.node), rp->place.n_devices);

	p->attempt = j->attempt;
	p->index = rp->index;
	p->group = rp->place.group;
	p->group_index = rp->place.group_index;
	p->state = GPUQ_POD_CREATED;
	p->recovered = true;
	p->placed_us = at_us;
	p->cpu_milli = rp->cpu_milli;
	p->memory_bytes = rp->memory_bytes;
	p->gpus_milli = rp->place.gpus_milli;
	p->rides = shared_claim_guess(j, p->group, p->n_devices);
	snprintf(p->uid, sizeof(p->uid), "%s", rp->uid);
	if (rp->place.n_devices)
		memcpy(p->devices, rp->place.devices, rp->place.n_devices * sizeof(*p->devices));
	if (rp->index >= l->n_indexes)
		l->n_indexes = rp->index + 1;
	j->queue->allocated_milli += p->gpus_milli;
	accounting_charge_strand(m, p->node);
	p->strand_from_us = p->node->strand_us;
}

/* True if the job has a pod of that attempt and index. */
static bool has_pod(const struct job *j, uint32_t attempt, uint32_t index)
{
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == attempt && p->index == index)
			return true;
	return false;
}

/* Check that these can be pods of the known job. */
static int fits(const struct job *j, const struct event *ev, struct gpuq_err *err)
{
	const uint32_t attempt = ev->recovered.attempt;

	if (j->ended)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has ended", j->key.id);
	if (j->array)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u is an array", j->key.id);
	if (j->started_once && attempt < j->attempt)
		return gpuq_fail(err, GPUQ_EINVAL, "job %u is at a later attempt", j->key.id);
	for (uint32_t i = 0; i < ev->recovered.n_pods; i++) {
		const struct recovered_pod *p = &ev->recovered.pods[i];

		if (p->place.group >= j->request->spec.n_groups)
			return gpuq_fail(err, GPUQ_EINVAL, "job %u has no such group", j->key.id);
		if (has_pod(j, attempt, p->index))
			return gpuq_fail(err, GPUQ_EINVAL, "job %u has such a pod", j->key.id);
	}
	return 0;
}

/* Find the known job, or make one of its pods' records. */
static int find_job(struct model *m, const struct event *ev, struct job **out, struct gpuq_err *err)
{
	const struct event *as = ev->recovered.as;
	struct job *master, *j = model_find_job(m, ev->job);
	int rc;

	if (j) {
		*out = j;
		return fits(j, ev, err);
	}
	master = ev->job.index < 0 ? NULL : model_find_job(m, (struct job_key){ ev->job.id, -1 });
	if (master) {
		if (!master->array || !model_element_waits(master->array, ev->job.index))
			return gpuq_fail(err, GPUQ_EINVAL, "element %d of job %u has ended",
					 ev->job.index, ev->job.id);
		for (uint32_t i = 0; i < ev->recovered.n_pods; i++)
			if (ev->recovered.pods[i].place.group >= master->request->spec.n_groups)
				return gpuq_fail(err, GPUQ_EINVAL, "job %u has no such group",
						 ev->job.id);
		*out = job_array_split(m, master, ev->job.index);
		return 0;
	}
	if (!as)
		return gpuq_fail(err, GPUQ_ENOENT, "no such job: %u", ev->job.id);
	rc = job_submit(m, as, &j, err);
	if (rc < 0)
		return rc;
	job_count(j, -1);
	j->recovered = true;
	job_count(j, 1);
	*out = j;
	return 0;
}

int recover_apply_job(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = NULL;
	int rc;

	if (ev->recovered.n_pods == 0)
		return gpuq_fail(err, GPUQ_EINTERNAL, "a job without pods is not recovered");
	rc = find_job(m, ev, &j, err);
	if (rc < 0)
		return rc;
	if (!model_job_is_live(j) || ev->recovered.attempt != j->attempt) {
		m->recovery.n_adopted++;
		m->recovery_dirty = true;
		j->attempt = ev->recovered.attempt;
		j->started_once = true;
		job_attempt_begin(m, j, ev->recovered.token, ev->recovered.flavor, ev->at_us);
		job_drop_gone_pods(m, j);
		job_set_reasons(m, j, NULL, 0, ev->at_us);
		job_set_state(m, j, GPUQ_JOB_STARTING);
	}
	/* A record that was edited may name the number of another job. */
	if (j->key.index >= 0 && ev->recovered.element_id < m->next_job_id &&
	    ev->recovered.element_id &&
	    !model_find_job(m, (struct job_key){ ev->recovered.element_id, -1 }) &&
	    !model_find_element(m, ev->recovered.element_id))
		job_set_number(m, j, ev->recovered.element_id);
	for (uint32_t i = 0; i < ev->recovered.n_pods; i++)
		add_pod(m, j, &ev->recovered.pods[i], ev->at_us);
	model_job_dirty(m, j);
	return 0;
}

/* ---- jobs whose pods are gone ---- */

int recover_apply_unknown(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = model_find_job(m, ev->job);
	struct life *l;

	if (!j)
		return gpuq_fail(err, GPUQ_ENOENT, "no such job: %u", ev->job.id);
	if (!model_job_is_live(j) || !model_job_attempt_over(j))
		return gpuq_fail(err, GPUQ_EINVAL, "job %u has no attempt that is over", j->key.id);
	job_set_promise(m, j, NULL);
	if (j->wish->time_asked_us)
		j->time_limit_us = j->wish->time_asked_us;
	l = job_life(j);
	l->outcome = GPUQ_JOB_PENDING;
	l->outcome_exit = -1;
	l->leave_cause = GPUQ_CAUSE_NONE;
	l->leave_us = l->start_us = l->not_before_us = 0;
	job_set_message(j, "it ran when the store was copied, and its pods are gone");
	job_drop_gone_pods(m, j);
	job_set_reasons(m, j, NULL, 0, ev->at_us);
	job_set_state(m, j, GPUQ_JOB_PENDING);
	job_count(j, -1);
	j->held_restore = true;
	job_count(j, 1);
	model_job_dirty(m, j);
	return 0;
}

/* ---- beginning and end ---- */

int recover_apply_begun(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)err;
	begin(m, ev->at_us);
	m->recovery_dirty = true;
	return 0;
}

int recover_apply_listed(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	if (!recovery_waits(m))
		return gpuq_fail(err, GPUQ_EINVAL, "the cluster was listed before");
	pass_over(m, ev->listed.highest);
	m->recovery.listed = true;
	m->recovery.listed_us = ev->at_us;
	m->recovery.floor = m->next_job_id;
	m->recovery_dirty = true;
	return 0;
}

int recover_apply_ended(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	(void)ev;
	if (!m->recovery.since_us)
		return gpuq_fail(err, GPUQ_EINVAL, "nothing is being recovered");
	if (!m->recovery.listed)
		return gpuq_fail(err, GPUQ_EINVAL, "the cluster has not been listed yet");
	m->recovery.since_us = 0;
	m->recovery_dirty = true;
	return 0;
}
