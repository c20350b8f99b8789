#include "gpuqd/sched/timeline/timeline_free.h"

#include "gpuqd/sched/timeline/reservations.h"
#include "gpuqd/sched/timeline/reservations_end.h"
#include "gpuqd/sched/timeline/timeline_int.h"

#include <string.h>

#include "gpuqd/sched/timeline/timeline_extras.h"
#include "gpuqd/sched/timeline/timeline_parts.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/util/sort.h"

/* Free capacity at a future moment: what is free now, plus what has been released until then, minus
 * what start reservations and reservations have taken by then. */

void timeline_sort(struct cycle *c)
{
	struct future *f = c->timeline->future;
	struct sort_pair *ends, *scratch;
	struct release *sorted;

	/* Releases are collected in any order, and sorted when they are first read. */
	if (f->sorted)
		return;
	ends = cycle_scratch(c, f->n_releases, sizeof(*ends));
	scratch = cycle_scratch(c, f->n_releases, sizeof(*scratch));
	sorted = cycle_alloc(c, f->n_releases, sizeof(*sorted));
	if (c->failed)
		return;
	/* The sort compares unsigned keys: flipping the sign bit keeps the order of signed times.
	 * It is stable, so equal ends keep the order in which they were added. */
	for (uint32_t i = 0; i < f->n_releases; i++)
		ends[i] = (struct sort_pair){ (uint64_t)f->releases[i].end_us ^ UINT64_C(1) << 63,
					      i };
	sort_pairs(ends, scratch, f->n_releases);
	for (uint32_t i = 0; i < f->n_releases; i++)
		sorted[i] = f->releases[ends[i].ix];
	f->releases = sorted;
	f->room_releases = f->n_releases;
	f->sorted = true;
}

void timeline_give_back(struct cycle *c, const struct release *r)
{
	struct future *f = c->timeline->future;
	uint32_t at = f->n_releases;

	timeline_sort(c);
	if (!cycle_push(c, &f->releases, &f->n_releases, &f->room_releases, sizeof(*r), 1))
		return;
	/* Insert behind equal ends, as the sort would have. */
	while (at > 0 && f->releases[at - 1].end_us > r->end_us)
		at--;
	memmove(&f->releases[at + 1], &f->releases[at],
		(f->n_releases - 1 - at) * sizeof(*f->releases));
	f->releases[at] = *r;
}

void timeline_keep(struct cycle *c, const struct release *r)
{
	struct future *f = c->timeline->future;

	/* Equal releases are interchangeable: the first one found is removed. */
	for (uint32_t i = 0; i < f->n_releases; i++)
		if (memcmp(&f->releases[i], r, sizeof(*r)) == 0) {
			memmove(&f->releases[i], &f->releases[i + 1],
				(f->n_releases - 1 - i) * sizeof(*f->releases));
			f->n_releases--;
			return;
		}
}

/* Change an amount, unless it is unlimited. */
static void give(int64_t *amount, int64_t more)
{
	if (*amount != GPUQ_UNLIMITED)
		*amount = amount_sum(*amount, more);
}

/* Reduce a number of devices, not below 0: holds may overlap. */
static void take_whole(uint16_t *have, int64_t n)
{
	*have = (uint16_t)(*have > n ? *have - n : 0);
}

/* Add everything that is released by t. Releases are in order of time, so the first later one ends
 * the walk. */
static void release_until(const struct cycle *c, int64_t t, struct amounts *out)
{
	const struct future *f = c->timeline->future;

	for (uint32_t i = 0; i < f->n_releases && f->releases[i].end_us <= t; i++) {
		const struct release *r = &f->releases[i];

		give(&out->cpu[r->node], r->cpu);
		give(&out->memory[r->node], r->memory);
		give(&out->pods[r->node], r->pods);
		out->whole[r->node] = (uint16_t)(out->whole[r->node] + r->whole);
		if (r->pods > 0)
			out->tenants[r->node] -= out->tenants[r->node] > 0;
	}
}

bool timeline_bars(const struct cycle *c, const struct booked *b, uint32_t job, int64_t t)
{
	/* A job does not bar itself, and no start reservation bars while a job tries to displace
	 * some. */
	if (b->reservation == SNAP_NONE)
		return b->job != job && !c->timeline->future->over_planned;
	/* Jobs that may use a reservation are not barred by it once it has begun. */
	return b->start_us > t || !reservations_admits(c, b->reservation, job, t);
}

/* Open the nodes that no job has exclusively at t. */
static void open_nodes(const struct cycle *c, int64_t t, struct amounts *out)
{
	const struct future *f = c->timeline->future;

	memcpy(out->usable, nodes_ready(c), cycle_words(c) * sizeof(*out->usable));
	if (!f->any_closer)
		return;
	memcpy(f->closed, f->closers, c->s->n_nodes * sizeof(*f->closed));
	for (uint32_t i = 0; i < f->n_releases && f->releases[i].end_us <= t; i++)
		f->closed[f->releases[i].node] =
			(uint16_t)(f->closed[f->releases[i].node] - f->releases[i].closers);
	for (uint32_t n = 0; n < c->s->n_nodes; n++)
		if (f->closed[n] > 0)
			bits_del(out->usable, n);
}

/* Compute the free capacity at t: that of the present, plus releases until t, minus the holds that
 * cover t. `amounts` includes the holds of reservations. */
static void free_at(struct cycle *c, uint32_t job, int64_t t, bool amounts, struct amounts *out)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct snapshot *s = c->s;
	const struct future *f = c->timeline->future;

	timeline_sort(c);
	memcpy(out->cpu, avail->cpu, s->n_nodes * sizeof(*out->cpu));
	memcpy(out->memory, avail->memory, s->n_nodes * sizeof(*out->memory));
	memcpy(out->pods, avail->pods, s->n_nodes * sizeof(*out->pods));
	memcpy(out->whole, f->whole_now, s->n_nodes * sizeof(*out->whole));
	memcpy(out->tenants, f->seated, s->n_nodes * sizeof(*out->tenants));
	open_nodes(c, t, out);
	release_until(c, t, out);
	for (uint32_t i = 0; i < f->n_booked; i++) {
		const struct booked *b = &f->booked[i];

		if (b->start_us > t || b->end_us <= t || !timeline_bars(c, b, job, t) ||
		    (!amounts && b->reservation != SNAP_NONE))
			continue;
		give(&out->cpu[b->node], -b->need.cpu);
		give(&out->memory[b->node], -b->need.memory);
		give(&out->pods[b->node], -b->need.pods);
		take_whole(&out->whole[b->node], b->need.whole);
		out->tenants[b->node] = (uint16_t)(out->tenants[b->node] + b->need.pods);
		if (b->alone)
			bits_del(out->usable, b->node);
	}
	timeline_parts_free_at(c, job, t, amounts, out);
	timeline_extras_free_at(c, job, t, out);
	/* A node is vacant if all pods on it have ended by t and no hold has begun. */
	for (uint32_t n = 0; n < s->n_nodes; n++) {
		if (out->tenants[n] == 0)
			bits_add(out->vacant, n);
		else
			bits_del(out->vacant, n);
	}
	/* The work of a cycle is bounded by counting steps, not by a clock, so that plans are
	 * reproducible. */
	c->steps += s->n_nodes;
}

void timeline_free_at(struct cycle *c, uint32_t job, int64_t t, struct amounts *out)
{
	free_at(c, job, t, true, out);
}

void timeline_free_before_amounts(struct cycle *c, uint32_t job, int64_t t, struct amounts *out)
{
	free_at(c, job, t, false, out);
}

struct spare timeline_spare(const struct cycle *c, const struct booked *b, uint32_t job, int64_t t)
{
	const struct future *f = c->timeline->future;
	struct spare left = { b->whole, b->cpu, b->memory };

	for (uint32_t i = 0; c->s->n_reservations > 0 && i < f->n_booked; i++) {
		const struct booked *r = &f->booked[i];

		/* Only reservations that cover the beginning of the hold reduce its spare capacity,
		 * and only for jobs that may not use them. */
		if (r == b || r->reservation == SNAP_NONE || r->node != b->node ||
		    r->start_us > b->start_us || r->end_us <= b->start_us ||
		    !timeline_bars(c, r, job, t))
			continue;
		left.whole -= r->need.whole;
		give(&left.cpu, -r->need.cpu);
		give(&left.memory, -r->need.memory);
	}
	return left;
}

/* Set an amount to the bound if it is larger. */
static void lower(int64_t *to, int64_t bound)
{
	*to = *to < bound ? *to : bound;
}

void timeline_free_throughout(struct cycle *c, uint32_t job, int64_t t, int64_t end,
			      struct amounts *least)
{
	struct future *f = c->timeline->future;

	timeline_free_at(c, job, t, least);
	for (uint32_t i = 0; i < f->n_booked; i++) {
		const struct booked *b = &f->booked[i];
		struct spare spare;

		/* Holds that have begun by t are subtracted already. Capacity falls only where a
		 * hold begins, so those moments are all that need be examined. */
		if (b->start_us <= t || b->start_us >= end || !timeline_bars(c, b, job, t))
			continue;
		spare = timeline_spare(c, b, job, t);
		lower(&least->cpu[b->node], spare.cpu);
		lower(&least->memory[b->node], spare.memory);
		lower(&least->pods[b->node], b->pods);
		if (least->whole[b->node] > spare.whole)
			least->whole[b->node] = (uint16_t)(spare.whole > 0 ? spare.whole : 0);
		bits_del(least->vacant, b->node);
		if (b->alone)
			bits_del(least->usable, b->node);
	}
	timeline_parts_least(c, job, t, end, least);
	timeline_extras_least(c, job, t, end, least);
	/* Nodes reserved during some of that time are closed to the job altogether. */
	if (reservations_bars(c, job, t, end, f->barred) == SNAP_NONE)
		return;
	for (uint32_t w = 0; w < cycle_words(c); w++)
		least->usable[w] &= ~f->barred[w];
}
