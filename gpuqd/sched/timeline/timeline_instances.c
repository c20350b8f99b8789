#include "gpuqd/sched/timeline/timeline_instances.h"

#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/util/amount.h"

#include <string.h>

/* The timeline of MIG instances. Instances of one profile on one node are equal, so that they are
 * counted as whole devices are; but a node has several profiles, and only holds of a profile lower
 * what is free of it. So a start reservation holds them by profile, one hold for each pod. */

bool timeline_instances_asked(const struct snap_request *r)
{
	for (uint32_t g = 0; g < r->n_groups; g++)
		if (r->groups[g].mig)
			return true;
	return false;
}

/* Return the index of a profile on a node in the tables of instances. */
static uint32_t slot(const struct cycle *c, uint32_t node, uint32_t profile)
{
	return node * c->s->n_profiles + profile;
}

void timeline_instances_end(struct cycle *c, uint32_t node, uint32_t profile, int64_t n,
			    int64_t end_us)
{
	struct future *f = c->timeline->future;
	struct instance_end *e;

	if (!f->by_profile || n == 0 || end_us == GPUQ_UNLIMITED)
		return;
	e = cycle_push(c, &f->instance_ends, &f->n_instance_ends, &f->room_instance_ends,
		       sizeof(*e), 1);
	if (e)
		*e = (struct instance_end){ end_us, slot(c, node, profile), (int32_t)n };
}

/* True if the hold is in the way of the job: its own is not, and none is while it tries to displace
 * some. */
static bool is_others(const struct cycle *c, const struct instance_hold *h, uint32_t job)
{
	return h->job != job && !c->timeline->future->over_planned;
}

void timeline_instances_free_at(const struct cycle *c, uint32_t job, int64_t t, struct amounts *out)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct future *f = c->timeline->future;

	if (!f->by_profile)
		return;
	memcpy(out->mig_free, avail->mig_free,
	       (size_t)c->s->n_nodes * c->s->n_profiles * sizeof(*out->mig_free));
	for (uint32_t i = 0; i < f->n_instance_ends; i++)
		if (f->instance_ends[i].end_us <= t)
			out->mig_free[f->instance_ends[i].slot] += f->instance_ends[i].n;
	for (uint32_t i = 0; i < f->n_instances; i++) {
		const struct instance_hold *h = &f->instances[i];

		if (h->start_us <= t && h->end_us > t && is_others(c, h, job))
			out->mig_free[h->slot] -= h->n;
	}
}

void timeline_instances_least(const struct cycle *c, uint32_t job, int64_t t, int64_t end,
			      struct amounts *least)
{
	const struct future *f = c->timeline->future;

	for (uint32_t i = 0; i < f->n_instances; i++) {
		const struct instance_hold *h = &f->instances[i];

		/* Holds that have begun by t are subtracted already. */
		if (h->start_us > t && h->start_us < end && is_others(c, h, job) &&
		    least->mig_free[h->slot] > h->left)
			least->mig_free[h->slot] = h->left;
	}
}

void timeline_instances_hold(struct cycle *c, uint32_t job, uint32_t node, const struct need *one,
			     int64_t start, int64_t end)
{
	struct future *f = c->timeline->future;
	struct instance_hold *h;

	if (!f->by_profile || one->migs == 0)
		return;
	h = cycle_push(c, &f->instances, &f->n_instances, &f->room_instances, sizeof(*h), 1);
	if (h)
		*h = (struct instance_hold){ .job = job,
					     .slot = slot(c, node, one->profile),
					     .start_us = start,
					     .end_us = end,
					     .n = (int32_t)one->migs,
					     .left = f->at.mig_free[slot(c, node, one->profile)] };
}

/* Take n instances of a slot from the spare ones of all holds that begin in [start, end). */
static void spend(struct cycle *c, uint32_t at, int64_t start, int64_t end, int32_t n)
{
	struct future *f = c->timeline->future;

	for (uint32_t i = 0; i < f->n_instances; i++) {
		struct instance_hold *h = &f->instances[i];

		if (h->slot == at && h->start_us >= start && h->start_us < end)
			h->left -= n;
	}
}

void timeline_instances_spend(struct cycle *c, uint32_t node, int64_t start, int64_t end,
			      const struct need *n, int sign)
{
	if (n->migs)
		spend(c, slot(c, node, n->profile), start, end, sign * (int32_t)n->migs);
}

void timeline_instances_own(struct cycle *c, uint32_t job, int sign)
{
	const struct future *f = c->timeline->future;

	for (uint32_t i = 0; i < f->n_instances; i++) {
		const struct instance_hold h = f->instances[i];

		if (h.job == job)
			spend(c, h.slot, h.start_us, h.end_us, sign * h.n);
	}
}

void timeline_instances_unplan(struct cycle *c, uint32_t job)
{
	struct future *f = c->timeline->future;
	uint32_t kept = 0;

	/* Return to all holds what these took, then remove these. */
	timeline_instances_own(c, job, -1);
	for (uint32_t i = 0; i < f->n_instances; i++)
		if (f->instances[i].job != job)
			f->instances[kept++] = f->instances[i];
	f->n_instances = kept;
}

int32_t *timeline_instances_withhold(struct cycle *c, uint32_t job, int64_t end)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct future *f = c->timeline->future;
	int32_t *kept = f->n_instances ? cycle_scratch(c, f->n_instances, sizeof(*kept)) : NULL;

	for (uint32_t i = 0; kept && i < f->n_instances; i++) {
		const struct instance_hold *h = &f->instances[i];
		int32_t *free_now = &avail->mig_free[h->slot];

		if (h->start_us >= end || !is_others(c, h, job) || *free_now <= h->left)
			continue;
		/* Several holds may concern one slot: each notes only what it took in addition. */
		kept[i] = *free_now - h->left;
		*free_now = h->left;
	}
	return kept;
}

void timeline_instances_release(struct cycle *c, const int32_t *kept)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct future *f = c->timeline->future;

	for (uint32_t i = 0; kept && i < f->n_instances; i++)
		avail->mig_free[f->instances[i].slot] += kept[i];
}

/* Return what the current places, or the pods of a job, take of a slot. */
static int64_t taken_of(const struct cycle *c, uint32_t job, bool runs, uint32_t at)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct snap_request *r = &c->s->requests[j->request];
	int64_t sum = 0;

	for (uint32_t i = 0; !runs && i < c->places.n_pods; i++) {
		const struct need one = nodes_need(&r->groups[c->places.pods[i].group]);

		if (one.migs && slot(c, c->places.pods[i].node, one.profile) == at)
			sum += one.migs;
	}
	for (uint32_t i = j->alloc_first; runs && i < j->alloc_first + j->n_allocs; i++) {
		const struct need one = nodes_need(snap_group_of(c->s, &c->s->allocs[i]));

		if (one.migs && slot(c, c->s->allocs[i].node, one.profile) == at)
			sum += one.migs;
	}
	return sum;
}

bool timeline_instances_bars(const struct cycle *c, const struct instance_hold *h, uint32_t job,
			     bool runs)
{
	int64_t taken;

	if (!is_others(c, h, job))
		return false;
	taken = taken_of(c, job, runs, h->slot);
	return taken > 0 && taken > h->left;
}

const struct instance_hold *timeline_instances_clash(const struct cycle *c, uint32_t job, bool runs,
						     int64_t end)
{
	const struct future *f = c->timeline->future;
	const struct instance_hold *first = NULL;

	for (uint32_t i = 0; i < f->n_instances; i++) {
		const struct instance_hold *h = &f->instances[i];

		if (h->start_us < (first ? first->start_us : end) &&
		    timeline_instances_bars(c, h, job, runs))
			first = h;
	}
	return first;
}
