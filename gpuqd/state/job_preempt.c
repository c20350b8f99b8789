/* Preemption: evictions, nominated placements, and pods that leave or join a running attempt. */
#include "gpuqd/state/cuts/shared_claim.h"
#include "gpuqd/state/model_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/units.h"

/* Return the number of the group's pods that stay in the attempt. */
static uint32_t n_staying(const struct job *j, uint32_t group)
{
	const struct pod *p;
	uint32_t n = 0;

	DL_FOREACH2(j->pods, p, job_next)
		n += p->attempt == j->attempt && p->group == group && model_pod_takes(p) &&
		     !p->dropped;
	return n;
}

/* True if some group has fewer pods than it must have. */
static bool is_short(const struct job *j)
{
	const struct request_spec *spec = &j->request->spec;

	for (uint32_t g = 0; g < spec->n_groups; g++)
		if (n_staying(j, g) < (uint64_t)spec->groups[g].pods_min)
			return true;
	return false;
}

/* ---- evictions ---- */

void job_leave(struct model *m, struct job *j, enum gpuq_cause cause, enum gpuq_job_state outcome,
	       int64_t at_us, int64_t grace_us)
{
	struct life *l = job_life(j);

	/* The first cause decides how the attempt ends. */
	if (l->outcome == GPUQ_JOB_PENDING)
		l->outcome = outcome;
	l->leave_cause = cause;
	l->leave_us = at_us;
	l->leave_grace_us = grace_us;
	if (model_job_is_live(j))
		job_set_state(m, j, GPUQ_JOB_COMPLETING);
	model_job_dirty(m, j);
}

static char *text_or_none(const char *text)
{
	return text && *text ? must(strdup(text)) : NULL;
}

void job_note_eviction(struct model *m, struct job *j, enum gpuq_cause cause,
		       const struct event *ev)
{
	struct life *l = job_life(j);

	if (ev->at_us > m->evicted_us)
		m->evicted_us = ev->at_us;
	l->evictions = must(realloc(l->evictions, (l->n_evictions + 1) * sizeof(*l->evictions)));
	l->evictions[l->n_evictions++] =
		(struct eviction){ .at_us = ev->at_us,
				   .cause = cause,
				   .rule = model_intern(m, ev->evict.rule),
				   .by = model_intern(m, ev->evict.by),
				   .by_queue = model_intern(m, ev->evict.by_queue),
				   .why = text_or_none(ev->evict.why) };
}

/* Return the state in which the attempt of an evicted job ends. */
static enum gpuq_job_state outcome_of(const struct event *ev)
{
	switch (ev->evict.cause) {
	case GPUQ_CAUSE_LIMIT:
		return strcmp(ev->evict.rule, RULE_DEADLINE) == 0       ? GPUQ_JOB_DEADLINE
		       : strcmp(ev->evict.rule, RULE_CANNOT_START) == 0 ? GPUQ_JOB_FAILED
									: GPUQ_JOB_TIMEOUT;
	case GPUQ_CAUSE_IDLE:
		return GPUQ_JOB_TIMEOUT;
	case GPUQ_CAUSE_INFRA:
		return GPUQ_JOB_NODE_FAIL;
	default:
		return GPUQ_JOB_PREEMPTED;
	}
}

int job_preempt_apply_evict(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);
	enum gpuq_cause cause = ev->evict.cause;
	const struct pod *p;

	if (!j)
		return GPUQ_ENOENT;
	if (!model_job_is_live(j) || j->life->leave_us)
		return gpuq_fail(err, GPUQ_EINVAL, "job %" PRIu32 " does not run", j->key.id);
	if (cause == GPUQ_CAUSE_IDLE)
		job_set_message(j, ev->evict.why);
	else if (cause != GPUQ_CAUSE_LIMIT && cause != GPUQ_CAUSE_REQUEUE)
		job_note_eviction(m, j, cause, ev);
	/* Nodes on which its pods did not come to run are avoided for a while; one whose plugin confused
	 * pods gets a second chance. */
	if (cause == GPUQ_CAUSE_INFRA && strcmp(ev->evict.rule, RULE_PLUGIN) != 0) {
		DL_FOREACH2(j->pods, p, job_next)
			if (p->attempt == j->attempt && p->state < GPUQ_POD_RUNNING)
				pod_avoid(m, j, p->node->name, ev->at_us + JOB_AVOID_US);
	}
	job_leave(m, j, cause, outcome_of(ev), ev->at_us, ev->evict.grace_us);
	if (cause == GPUQ_CAUSE_LIMIT && strcmp(ev->evict.rule, RULE_CANNOT_START) == 0) {
		job_set_message(j, ev->evict.why);
		job_life(j)->outcome_exit = 1; /* as of a program that fails at once */
	}
	return 0;
}

/* ---- elastic jobs ---- */

/* Return the pod of the current attempt with that index; NULL if it has ended or was dropped. */
static struct pod *staying_pod(const struct job *j, uint32_t index)
{
	struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && p->index == index)
			return model_pod_takes(p) && !p->dropped ? p : NULL;
	return NULL;
}

void job_start_if_all_run(struct model *m, struct job *j, int64_t at_us)
{
	const struct pod *p;

	if (j->state != GPUQ_JOB_STARTING)
		return;
	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && p->state < GPUQ_POD_RUNNING && !p->dropped)
			return;
	job_note_started(m, j, at_us);
}

int job_preempt_apply_shrink(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);
	uint32_t n_left = 0;

	if (!j)
		return GPUQ_ENOENT;
	if (!model_job_is_live(j) || j->life->leave_us)
		return gpuq_fail(err, GPUQ_EINVAL, "job %" PRIu32 " does not run", j->key.id);
	for (uint32_t g = 0; g < j->request->spec.n_groups; g++)
		n_left += n_staying(j, g);
	if (ev->evict.n_pods == 0 || ev->evict.n_pods >= n_left)
		return gpuq_fail(err, GPUQ_EINVAL, "job %" PRIu32 " has %" PRIu32 " pods to keep",
				 j->key.id, n_left);
	/* All pods are checked before any is dropped. */
	for (uint32_t i = 0; i < ev->evict.n_pods; i++)
		if (!staying_pod(j, ev->evict.pods[i]))
			return gpuq_fail(err, GPUQ_ENOENT, "job %" PRIu32 " has no pod %" PRIu32,
					 j->key.id, ev->evict.pods[i]);
	for (uint32_t i = 0; i < ev->evict.n_pods; i++) {
		struct pod *p = staying_pod(j, ev->evict.pods[i]);

		if (!p)
			continue; /* named twice */
		p->dropped = true;
		p->dirty = true;
	}
	job_note_eviction(m, j, GPUQ_CAUSE_SHRINK, ev);
	job_life(j)->shrunk_us = ev->at_us;
	model_job_dirty(m, j);
	/* The pods still to start may have been the ones dropped. */
	job_start_if_all_run(m, j, ev->at_us);
	return 0;
}

/* True if other pods may take the places of those that it loses. The pods of a gang of one size
 * are numbered once and for all: one that joined later would be rank 4 of 4, and the others keep
 * waiting for the one that is gone. So gpuqd requeues it at once. Tasks of a scenario are all
 * alike, and its gangs are kept for as long as it specifies. */
static bool is_repaired(const struct model *m, const struct job *j)
{
	return job_is_elastic(j) || (j->request->as_written && m->policy.sched.gang_repair_us > 0);
}

bool job_goes_on_without(struct model *m, struct job *j, struct pod *lost, int64_t at_us)
{
	uint32_t n_left = 0;
	bool is_below;

	if (!is_repaired(m, j) || j->life->outcome != GPUQ_JOB_PENDING || j->life->leave_us ||
	    (lost->fault != POD_FAULT_INFRA && lost->fault != POD_FAULT_REJECTED))
		return false;
	for (uint32_t g = 0; g < j->request->spec.n_groups; g++)
		n_left += n_staying(j, g);
	n_left -= model_pod_takes(lost) && !lost->dropped;
	if (n_left == 0)
		return false;
	lost->dropped = true;
	is_below = is_short(j);
	/* Pods with exclusive nodes are not placed one by one. */
	if (is_below && j->request->spec.exclusive) {
		lost->dropped = false;
		return false;
	}
	lost->dirty = true;
	if (is_below && !j->life->short_us)
		job_life(j)->short_us = at_us;
	model_job_dirty(m, j);
	return true;
}

/* Return the lowest index in the group that no pod has: replacements take the numbers of lost pods. */
static uint32_t free_group_index(const struct job *j, uint32_t group)
{
	const struct pod *p;
	uint32_t ix = 0;
	bool taken = true;

	for (; taken; ix += taken) {
		taken = false;
		DL_FOREACH2(j->pods, p, job_next)
			taken |= p->attempt == j->attempt && p->group == group &&
				 p->group_index == ix && model_pod_takes(p);
	}
	return ix;
}

int job_preempt_apply_grown(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);
	const struct request_spec *spec;
	int rc;

	if (!j)
		return GPUQ_ENOENT;
	spec = &j->request->spec;
	if ((j->state != GPUQ_JOB_STARTING && j->state != GPUQ_JOB_RUNNING) || j->life->leave_us ||
	    j->life->outcome != GPUQ_JOB_PENDING)
		return gpuq_fail(err, GPUQ_EINVAL, "job %" PRIu32 " does not run", j->key.id);
	rc = job_placed_check(m, j, ev->grown.pods, ev->grown.n_pods, err);
	if (rc == 0)
		rc = shared_claim_check(m, j, ev->grown.pods, ev->grown.n_pods, err);
	if (rc < 0)
		return rc;
	for (uint32_t g = 0; g < spec->n_groups; g++) {
		uint64_t n = n_staying(j, g);

		for (uint32_t i = 0; i < ev->grown.n_pods; i++)
			n += ev->grown.pods[i].group == g;
		if (n > (uint64_t)spec->groups[g].pods_max)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "job %" PRIu32 " has as many pods as it may", j->key.id);
	}
	for (uint32_t i = 0; i < ev->grown.n_pods; i++) {
		uint32_t ix = free_group_index(j, ev->grown.pods[i].group);

		job_placed_add(m, j, &ev->grown.pods[i], ev->at_us)->group_index = ix;
	}
	if (j->life->short_us && !is_short(j))
		job_life(j)->short_us = 0;
	model_job_dirty(m, j);
	return 0;
}

/* ---- nominated placements ---- */

struct promise *job_promise_new(uint32_t n_pods, uint32_t n_victims)
{
	struct promise *p = must(calloc(1, sizeof(*p)));

	p->flavor = p->rule = "";
	p->n_pods = n_pods;
	p->n_victims = n_victims;
	p->pods = must(calloc(n_pods + 1, sizeof(*p->pods)));
	p->victims = must(calloc(n_victims + 1, sizeof(*p->victims)));
	return p;
}

void job_promise_count(struct model *m, const struct job *j)
{
	if (!j->life->promise)
		return;
	m->n_promises++;
	j->queue->held_milli += job_promise_milli(j->life->promise);
}

/* Replace the nominated placement, or withdraw it (NULL). Devices kept free for the old one are
 * charged as held until now. */
void job_set_promise(struct model *m, struct job *j, struct promise *p)
{
	struct promise *old = j->life->promise;

	if (old == p)
		return;
	if (old) {
		accounting_charge_promise(m, j);
		m->n_promises--;
		j->queue->held_milli -= job_promise_milli(old);
		for (uint32_t i = 0; i < old->n_pods; i++)
			free(old->pods[i].devices);
		free(old->pods);
		free(old->victims);
		free(old->why);
		free(old);
	}
	job_life(j)->promise = p;
	job_promise_count(m, j);
	model_job_dirty(m, j);
}

/* Set the reason of the job: it waits for its victims, the first of which is named. */
static void tell_who_is_waited_for(struct model *m, struct job *j, int64_t at_us)
{
	const struct promise *p = j->life->promise;
	char first[32] = "";
	struct reason_fact fact = { .code = GPUQ_R_VICTIMS,
				    .object = first,
				    .unit = GPUQ_UNIT_COUNT,
				    .need = p->n_victims };

	if (p->n_victims && p->victims[0].index >= 0)
		snprintf(first, sizeof(first), "%" PRIu32 "_%" PRId32, p->victims[0].id,
			 p->victims[0].index);
	else if (p->n_victims)
		snprintf(first, sizeof(first), "%" PRIu32, p->victims[0].id);
	job_set_reasons(m, j, &fact, 1, at_us);
}

/* An element of an array is split off here, once nothing can fail any more. */
int job_preempt_apply_nominated(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = model_find_job(m, ev->job);
	struct job *master = j ? j : model_find_job(m, (struct job_key){ ev->job.id, -1 });
	struct promise *p;
	int rc;

	if (!master)
		return gpuq_fail(err, GPUQ_ENOENT, "no such job: %" PRIu32, ev->job.id);
	rc = job_placed_check(m, master, ev->nominated.pods, ev->nominated.n_pods, err);
	if (rc < 0)
		return rc;
	if (!j || (j->array && ev->job.index < 0)) {
		j = ev->job.index < 0 ? NULL : job_array_split(m, master, ev->job.index);
		if (!j)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "element %" PRId32 " of job %" PRIu32 " is not pending",
					 ev->job.index, ev->job.id);
	}
	/* A running job is being moved, and was signalled just now. */
	if (j->ended || (model_job_is_live(j) &&
			 !(j->life->leave_us && job_cause_is_eviction(j->life->leave_cause))))
		return gpuq_fail(err, GPUQ_EINVAL, "job %" PRIu32 " is not pending", j->key.id);
	p = job_promise_new(ev->nominated.n_pods, ev->nominated.n_victims);
	p->at_us = ev->at_us;
	p->flavor = model_intern(m, ev->nominated.flavor);
	p->rule = model_intern(m, ev->nominated.rule);
	p->why = text_or_none(ev->nominated.why);
	for (uint32_t i = 0; i < p->n_pods; i++) {
		const struct placed_pod *from = &ev->nominated.pods[i];
		struct promised_pod *to = &p->pods[i];

		to->group = from->group;
		to->group_index = from->group_index;
		to->node = model_intern(m, from->node);
		to->gpus_milli = from->gpus_milli;
		to->mig = from->mig ? model_intern(m, from->mig) : NULL;
		to->choice = from->choice;
		to->n_devices = from->n_devices;
		to->devices = must(calloc(from->n_devices + 1, sizeof(*to->devices)));
		if (from->n_devices)
			memcpy(to->devices, from->devices, from->n_devices * sizeof(*to->devices));
	}
	if (p->n_victims)
		memcpy(p->victims, ev->nominated.victims, p->n_victims * sizeof(*p->victims));
	job_set_promise(m, j, p);
	if (!model_job_is_live(j))
		tell_who_is_waited_for(m, j, ev->at_us);
	return 0;
}

int job_preempt_apply_renounced(struct model *m, const struct event *ev, struct gpuq_err *err)
{
	struct job *j = job_of_event(m, ev, err);

	if (!j)
		return GPUQ_ENOENT;
	if (!j->life->promise)
		return gpuq_fail(err, GPUQ_EINVAL, "job %" PRIu32 " has no nominated placement",
				 j->key.id);
	job_set_promise(m, j, NULL);
	return 0;
}
