#include "gpuqd/sched/timeline/timeline_extras.h"

#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/util/amount.h"

#include <string.h>

/* The timeline of MIG instances and other countable resources. The units of one on one node are
 * equal, so that they are counted as whole devices are; but a node has several, and only holds of a
 * resource lower what is free of it. So a start reservation holds them by resource, one hold for
 * each pod and resource. Jobs that request none of them skip all this. */

bool timeline_extras_asked(const struct snap_request *r)
{
	for (uint32_t g = 0; g < r->n_groups; g++)
		if (r->groups[g].n_takes)
			return true;
	return false;
}

/* Return the index of a resource on a node in the tables. */
static size_t slot(const struct cycle *c, uint32_t node, uint32_t extra)
{
	return (size_t)node * c->s->n_extras + extra;
}

/* True if the job requests some. */
static bool job_asks(const struct cycle *c, uint32_t job)
{
	return job != SNAP_NONE && timeline_extras_asked(cycle_request(c, job));
}

void timeline_extras_end(struct cycle *c, uint32_t node, const struct need *one, int sign,
			 int64_t end_us)
{
	for (uint32_t i = 0; i < one->n_takes; i++)
		timeline_extras_end_at(c, slot(c, node, one->takes[i].extra),
				       sign * one->takes[i].n, end_us);
}

void timeline_extras_end_at(struct cycle *c, size_t at, int64_t n, int64_t end_us)
{
	struct future *f = c->timeline->future;
	struct extra_end *e;

	if (!f->by_extra || n == 0 || end_us == GPUQ_UNLIMITED)
		return;
	e = cycle_push(c, &f->extra_ends, &f->n_extra_ends, &f->room_extra_ends, sizeof(*e), 1);
	if (e)
		*e = (struct extra_end){ end_us, at, n };
}

/* True if the hold is in the way of the job: its own is not, and none is while it tries to displace
 * some. */
static bool is_others(const struct cycle *c, const struct extra_hold *h, uint32_t job)
{
	return h->job != job && !c->timeline->future->over_planned;
}

void timeline_extras_free_at(const struct cycle *c, uint32_t job, int64_t t, struct amounts *out)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct future *f = c->timeline->future;

	if (!f->by_extra || !job_asks(c, job))
		return;
	memcpy(out->extra_free, avail->extra_free,
	       (size_t)c->s->n_nodes * c->s->n_extras * sizeof(*out->extra_free));
	for (uint32_t i = 0; i < f->n_extra_ends; i++)
		if (f->extra_ends[i].end_us <= t)
			out->extra_free[f->extra_ends[i].slot] += f->extra_ends[i].n;
	for (uint32_t i = 0; i < f->n_extra_holds; i++) {
		const struct extra_hold *h = &f->extra_holds[i];

		if (h->start_us <= t && h->end_us > t && is_others(c, h, job))
			out->extra_free[h->slot] -= h->n;
	}
}

void timeline_extras_least(const struct cycle *c, uint32_t job, int64_t t, int64_t end,
			   struct amounts *least)
{
	const struct future *f = c->timeline->future;

	for (uint32_t i = 0; job_asks(c, job) && i < f->n_extra_holds; i++) {
		const struct extra_hold *h = &f->extra_holds[i];

		/* Holds that have begun by t are subtracted already. */
		if (h->start_us > t && h->start_us < end && is_others(c, h, job) &&
		    least->extra_free[h->slot] > h->left)
			least->extra_free[h->slot] = h->left;
	}
}

void timeline_extras_hold(struct cycle *c, uint32_t job, uint32_t node, const struct need *one,
			  int64_t start, int64_t end)
{
	struct future *f = c->timeline->future;
	struct extra_hold *h;

	for (uint32_t i = 0; f->by_extra && i < one->n_takes; i++) {
		const size_t at = slot(c, node, one->takes[i].extra);

		h = cycle_push(c, &f->extra_holds, &f->n_extra_holds, &f->room_extra_holds,
			       sizeof(*h), 1);
		if (h)
			*h = (struct extra_hold){ .job = job,
						  .slot = at,
						  .start_us = start,
						  .end_us = end,
						  .n = one->takes[i].n,
						  .left = f->at.extra_free[at] };
	}
}

/* Take n units of a slot from the spare ones of all holds that begin in [start, end). */
static void spend(struct cycle *c, size_t at, int64_t start, int64_t end, int64_t n)
{
	struct future *f = c->timeline->future;

	for (uint32_t i = 0; i < f->n_extra_holds; i++) {
		struct extra_hold *h = &f->extra_holds[i];

		if (h->slot == at && h->start_us >= start && h->start_us < end)
			h->left -= n;
	}
}

void timeline_extras_spend(struct cycle *c, uint32_t node, int64_t start, int64_t end,
			   const struct need *n, int sign)
{
	for (uint32_t i = 0; i < n->n_takes; i++)
		spend(c, slot(c, node, n->takes[i].extra), start, end, sign * n->takes[i].n);
}

void timeline_extras_own(struct cycle *c, uint32_t job, int sign)
{
	const struct future *f = c->timeline->future;

	for (uint32_t i = 0; i < f->n_extra_holds; i++) {
		const struct extra_hold h = f->extra_holds[i];

		if (h.job == job)
			spend(c, h.slot, h.start_us, h.end_us, sign * h.n);
	}
}

void timeline_extras_unplan(struct cycle *c, uint32_t job)
{
	struct future *f = c->timeline->future;
	uint32_t kept = 0;

	/* Return to all holds what these took, then remove these. */
	timeline_extras_own(c, job, -1);
	for (uint32_t i = 0; i < f->n_extra_holds; i++)
		if (f->extra_holds[i].job != job)
			f->extra_holds[kept++] = f->extra_holds[i];
	f->n_extra_holds = kept;
}

int64_t *timeline_extras_withhold(struct cycle *c, uint32_t job, int64_t end)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct future *f = c->timeline->future;
	int64_t *kept = f->n_extra_holds && job_asks(c, job)
				? cycle_scratch(c, f->n_extra_holds, sizeof(*kept))
				: NULL;

	for (uint32_t i = 0; kept && i < f->n_extra_holds; i++) {
		const struct extra_hold *h = &f->extra_holds[i];
		int64_t *free_now = &avail->extra_free[h->slot];

		if (h->start_us >= end || !is_others(c, h, job) || *free_now <= h->left)
			continue;
		/* Several holds may concern one slot: each notes only what it took in addition. */
		kept[i] = *free_now - h->left;
		*free_now = h->left;
	}
	return kept;
}

void timeline_extras_release(struct cycle *c, const int64_t *kept)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct future *f = c->timeline->future;

	for (uint32_t i = 0; kept && i < f->n_extra_holds; i++)
		avail->extra_free[f->extra_holds[i].slot] += kept[i];
}

/* Return what the current places, or the pods of a job, take of a slot. */
static int64_t taken_of(const struct cycle *c, uint32_t job, bool runs, size_t at)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct snap_request *r = cycle_request(c, job);
	int64_t sum = 0;

	for (uint32_t i = 0; !runs && i < c->places.n_pods; i++) {
		const struct snap_group *g = &r->groups[c->places.pods[i].group];

		for (uint32_t k = 0; k < g->n_takes; k++)
			if (slot(c, c->places.pods[i].node, g->takes[k].extra) == at)
				sum += g->takes[k].n;
	}
	for (uint32_t i = j->alloc_first; runs && i < j->alloc_first + j->n_allocs; i++) {
		const struct snap_group *g = snap_group_of(c->s, &c->s->allocs[i]);

		for (uint32_t k = 0; k < g->n_takes; k++)
			if (slot(c, c->s->allocs[i].node, g->takes[k].extra) == at)
				sum += g->takes[k].n;
	}
	return sum;
}

bool timeline_extras_bars(const struct cycle *c, const struct extra_hold *h, uint32_t job,
			  bool runs)
{
	int64_t taken;

	if (!is_others(c, h, job))
		return false;
	taken = taken_of(c, job, runs, h->slot);
	return taken > 0 && taken > h->left;
}

const struct extra_hold *timeline_extras_clash(const struct cycle *c, uint32_t job, bool runs,
					       int64_t end)
{
	const struct future *f = c->timeline->future;
	const struct extra_hold *first = NULL;

	for (uint32_t i = 0; job_asks(c, job) && i < f->n_extra_holds; i++) {
		const struct extra_hold *h = &f->extra_holds[i];

		if (h->start_us < (first ? first->start_us : end) &&
		    timeline_extras_bars(c, h, job, runs))
			first = h;
	}
	return first;
}
