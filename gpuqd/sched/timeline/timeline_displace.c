#include "gpuqd/sched/timeline/timeline_displace.h"

#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/place/pack.h"
#include "gpuqd/sched/timeline/reservations.h"
#include "gpuqd/sched/timeline/timeline_int.h"
#include "gpuqd/sched/timeline/timeline_free.h"
#include "gpuqd/sched/timeline/timeline_extras.h"
#include "gpuqd/sched/timeline/timeline_pack.h"
#include "gpuqd/sched/timeline/timeline_parts.h"
#include "gpuqd/sched/timeline/timeline_plan.h"

#include <string.h>

/* Starting where others have start reservations, when those can have theirs at the same time
 * elsewhere. A start reservation names nodes, and sometimes devices; what it guarantees is its
 * time. So a job that would start but for those nodes is started tentatively, and the start
 * reservations that it is in the way of are planned once more: if none is later than before, the
 * job starts, and if not, nothing has changed. Else all are planned once more, from the first on.
 * One choice of places is tried for the job: another might delay none, about once in 30,000 times
 * (prop_time). */

#define DISPLACED_MAX 16 /* start reservations planned again for one job */
#define ATTEMPTS_MAX 64 /* in a cycle */

/* The plan before. */
struct before {
	struct booked *booked;
	struct planned *planned;
	struct mark *marks;
	struct extra_hold *extra_holds;
	uint32_t n_booked, n_planned, n_marks, n_extra_holds, n_places;
	struct planned moved[DISPLACED_MAX]; /* those that are in the way */
	uint32_t n_moved;
};

/* The places of the current job, while others are placed. */
struct seats {
	struct place *places;
	uint32_t *devices;
	uint32_t n_places, n_devices;
};

/* Copy a table into memory that is released with the current job. */
static void *copy(struct cycle *c, const void *items, uint32_t n, size_t size)
{
	void *p = cycle_scratch(c, (size_t)n + 1, size);

	if (p && n)
		memcpy(p, items, n * size);
	return p;
}

/* Copy a saved table back over the present one. */
static void put_back(void *to, const void *from, uint32_t n, size_t size)
{
	if (n)
		memcpy(to, from, n * size);
}

/* Keep the timeline as it is, to go back to if the attempt fails. */
static struct before save(struct cycle *c)
{
	const struct future *f = c->timeline->future;

	return (struct before){ .booked = copy(c, f->booked, f->n_booked, sizeof(*f->booked)),
				.planned = copy(c, f->planned, f->n_planned, sizeof(*f->planned)),
				.marks = copy(c, f->marks, f->n_marks, sizeof(*f->marks)),
				.extra_holds = copy(c, f->extra_holds, f->n_extra_holds,
						    sizeof(*f->extra_holds)),
				.n_booked = f->n_booked,
				.n_planned = f->n_planned,
				.n_marks = f->n_marks,
				.n_extra_holds = f->n_extra_holds,
				.n_places = f->n_places };
}

/* Go back to it. */
static void restore(struct cycle *c, const struct before *was)
{
	struct future *f = c->timeline->future;

	put_back(f->booked, was->booked, was->n_booked, sizeof(*f->booked));
	put_back(f->planned, was->planned, was->n_planned, sizeof(*f->planned));
	put_back(f->marks, was->marks, was->n_marks, sizeof(*f->marks));
	put_back(f->extra_holds, was->extra_holds, was->n_extra_holds, sizeof(*f->extra_holds));
	f->n_booked = was->n_booked;
	f->n_planned = was->n_planned;
	f->n_marks = was->n_marks;
	f->n_extra_holds = was->n_extra_holds;
	f->n_places = was->n_places;
}

/* Note that the job at one of those places releases it at its end; sign -1: undo. */
static void end_at(struct cycle *c, uint32_t job, const struct place *p, const uint32_t *devices,
		   int64_t end, int sign)
{
	const struct snap_request *r = cycle_request(c, job);
	const struct need one = nodes_need(&r->groups[p->group]);
	struct release ends;

	if (end == GPUQ_UNLIMITED)
		return;
	memset(&ends, 0, sizeof(ends));
	ends.end_us = end;
	ends.node = p->node;
	ends.whole = (int32_t)one.whole;
	ends.pods = 1;
	ends.closers = r->exclusive;
	ends.cpu = one.cpu;
	ends.memory = one.memory;
	if (sign < 0) {
		timeline_keep(c, &ends);
		return; /* the other tables are cut: move_noted() */
	}
	timeline_give_back(c, &ends);
	timeline_extras_end(c, p->node, &one, 1, end);
	for (uint32_t d = 0; c->timeline->future->by_device && d < p->n_devices; d++) {
		const uint32_t ix = c->s->nodes[p->node].device_first + devices[d];

		timeline_parts_end(c, ix, p->milli,
				   timeline_parts_bytes(c, ix, p->milli, &r->groups[p->group]),
				   end);
	}
}

/* Take the places of the job from the timeline from now until its end, or return them. */
static void hold_places(struct cycle *c, uint32_t job, int64_t end, const struct seats *seats,
			int sign)
{
	const struct snap_request *r = cycle_request(c, job);
	const int64_t now = c->s->config.now_us;
	struct future *f = c->timeline->future;

	for (uint32_t i = 0; i < seats->n_places; i++) {
		const struct place *p = &seats->places[i];
		const struct need one = nodes_need(&r->groups[p->group]);
		const uint32_t first = c->s->nodes[p->node].device_first;

		f->seated[p->node] = (uint16_t)(f->seated[p->node] + sign);
		f->whole_now[p->node] = (uint16_t)(f->whole_now[p->node] - sign * (int)one.whole);
		if (r->exclusive) {
			f->closers[p->node] = (uint16_t)(f->closers[p->node] + sign);
			f->any_closer = true;
		}
		end_at(c, job, p, &seats->devices[p->device_first], end, sign);
		timeline_spend(c, p->node, now, end, &one, sign);
		for (uint32_t d = 0; d < p->n_devices; d++) {
			const uint32_t ix = first + seats->devices[p->device_first + d];

			timeline_parts_spend(
				c, ix, now, end, p->milli,
				timeline_parts_bytes(c, ix, p->milli, &r->groups[p->group]), sign);
		}
	}
}

/* Note the start reservation of that job as one in the way; false: there are too many. */
static bool note(const struct cycle *c, struct before *was, uint32_t job)
{
	for (uint32_t i = 0; i < was->n_moved; i++)
		if (was->moved[i].job == job)
			return true;
	if (was->n_moved == DISPLACED_MAX || !timeline_planned(c->timeline->future, job))
		return false;
	was->moved[was->n_moved++] = *timeline_planned(c->timeline->future, job);
	return true;
}

/* Note the start reservations that the current places are in the way of. */
static bool note_all(const struct cycle *c, struct before *was, uint32_t job, int64_t end)
{
	const struct snap_request *r = cycle_request(c, job);
	const int64_t now = c->s->config.now_us;
	const struct future *f = c->timeline->future;

	for (uint32_t i = 0; i < f->n_booked; i++)
		if (f->booked[i].start_us < end && timeline_bars(c, &f->booked[i], job, now) &&
		    !timeline_spares(c, &f->booked[i], job) && !note(c, was, f->booked[i].job))
			return false;
	for (uint32_t i = 0; i < f->n_marks; i++) {
		const struct mark *m = &f->marks[i];
		int64_t bytes;
		int32_t milli;

		if (m->start_us >= end || !timeline_parts_bars(c, m, job, now))
			continue;
		timeline_parts_at_hand(c, r, m->device, &milli, &bytes);
		if (milli > 0 && (m->left < milli || m->bytes_left < bytes) &&
		    !note(c, was, m->job))
			return false;
	}
	for (uint32_t i = 0; i < f->n_extra_holds; i++)
		if (f->extra_holds[i].start_us < end &&
		    timeline_extras_bars(c, &f->extra_holds[i], job, false) &&
		    !note(c, was, f->extra_holds[i].job))
			return false;
	return true;
}

/* Restore the order of start reservations: that in which they were made. */
static void order(struct cycle *c, const struct before *was, uint32_t job)
{
	struct future *f = c->timeline->future;
	struct planned *now = copy(c, f->planned, f->n_planned, sizeof(*now));
	const uint32_t n = f->n_planned;
	uint32_t to = 0;

	for (uint32_t i = 0; now && i < was->n_planned; i++)
		for (uint32_t k = 0; was->planned[i].job != job && k < n; k++)
			if (now[k].job == was->planned[i].job)
				f->planned[to++] = now[k];
}

/* Sort the moved start reservations as the table has them, the longest pending first. */
static void sort_moved(struct before *was)
{
	uint32_t n = 0;

	/* The table of start reservations has their order. */
	for (uint32_t i = 0; i < was->n_planned; i++)
		for (uint32_t k = n; k < was->n_moved; k++)
			if (was->moved[k].job == was->planned[i].job) {
				const struct planned p = was->moved[k];

				was->moved[k] = was->moved[n];
				was->moved[n++] = p;
			}
}

/* Plan all that was in the way again, for the same time; sooner: or for an earlier one, which leaves
 * more to those behind it. */
static bool plan_moved(struct cycle *c, const struct before *was, bool sooner)
{
	for (uint32_t i = 0; i < was->n_moved; i++)
		timeline_unplan(c, was->moved[i].job);
	for (uint32_t i = 0; i < was->n_moved; i++) {
		const struct planned *p = &was->moved[i];
		const uint32_t kind = p->flavor == SNAP_NONE ? c->s->n_flavors : p->flavor;

		if (!(sooner &&
		      timeline_plan_until(c, p->job, p->flavor, p->start_us, p->starving)) &&
		    !timeline_plan_at(c, p->job, p->flavor, p->start_us, p->starving))
			return false;
		c->timeline->future->n_of_flavor[kind] -= !p->starving; /* it was counted before */
	}
	return true;
}

/* Keep the places that were found for the current job, while others are placed. */
static struct seats keep_seats(struct cycle *c)
{
	return (struct seats){ .places = copy(c, c->places.pods, c->places.n_pods,
					      sizeof(*c->places.pods)),
			       .devices = copy(c, c->places.devices, c->places.n_devices,
					       sizeof(*c->places.devices)),
			       .n_places = c->places.n_pods,
			       .n_devices = c->places.n_devices };
}

/* Make them the current places again. */
static void take_seats(struct cycle *c, const struct seats *seats)
{
	put_back(c->places.pods, seats->places, seats->n_places, sizeof(*c->places.pods));
	put_back(c->places.devices, seats->devices, seats->n_devices, sizeof(*c->places.devices));
	c->places.n_pods = seats->n_places;
	c->places.n_devices = seats->n_devices;
}

/* Plan the noted ones elsewhere while the job holds its places; false: nothing has changed. */
static bool move_noted(struct cycle *c, struct before *was, uint32_t job, int64_t end,
		       const struct seats *seats, bool sooner)
{
	struct future *f = c->timeline->future;
	const uint32_t n_parts = f->n_part_ends, n_extra_holds = f->n_extra_ends;
	const uint32_t n_tries = f->n_tries;
	bool moved;

	sort_moved(was);
	hold_places(c, job, end, seats, 1);
	moved = plan_moved(c, was, sooner);
	take_seats(c, seats);
	hold_places(c, job, end, seats, -1);
	f->n_part_ends = n_parts;
	f->n_extra_ends = n_extra_holds;
	f->n_tries = n_tries; /* those are of jobs without a start reservation */
	if (!moved) {
		restore(c, was);
		timeline_unplan(c, job);
	}
	return moved;
}

/* Note all other start reservations: one of them may make room for another. False: there are too
 * many. */
static bool note_rest(const struct cycle *c, struct before *was, uint32_t job)
{
	for (uint32_t i = 0; i < was->n_planned; i++)
		if (was->planned[i].job != job && !note(c, was, was->planned[i].job))
			return false;
	return true;
}

bool timeline_displace(struct cycle *c, uint32_t job, uint32_t flavor)
{
	struct future *f = c->timeline->future;
	const int64_t end = timeline_end(c, job, c->s->config.now_us);
	struct before was;
	struct seats seats;
	bool moved;

	f->yield_us = f->given_us = 0;
	if (f->n_displacing++ >= ATTEMPTS_MAX)
		return false;
	was = save(c);
	if (c->failed)
		return false;
	timeline_unplan(c, job);
	if (!timeline_pack_on_planned(c, job, flavor, SNAP_NONE)) {
		restore(c, &was);
		return false;
	}
	seats = keep_seats(c);
	moved = !c->failed && note_all(c, &was, job, end) &&
		(move_noted(c, &was, job, end, &seats, false) ||
		 (note_rest(c, &was, job) && move_noted(c, &was, job, end, &seats, true)));
	if (moved) {
		order(c, &was, job);
		return true;
	}
	restore(c, &was);
	pack_undo(c, job);
	return false;
}

/* Plan all that was in the way again, for whatever time is left. */
static void plan_later(struct cycle *c, const struct before *was)
{
	for (uint32_t i = 0; i < was->n_moved; i++)
		timeline_unplan(c, was->moved[i].job);
	for (uint32_t i = 0; i < was->n_moved; i++) {
		const struct planned *p = &was->moved[i];
		const uint32_t kind = p->flavor == SNAP_NONE ? c->s->n_flavors : p->flavor;

		if (timeline_plan_until(c, p->job, p->flavor, GPUQ_UNLIMITED, p->starving))
			c->timeline->future->n_of_flavor[kind] -= !p->starving;
	}
}

/* ---- starting on a reservation ---- */

/* A reservation that has begun is for its owners at once: it was promised to them by a date, while a
 * start reservation is a forecast. A job that would run longer than its reservation may then hold
 * what another's start was planned on. That start is not given up but planned again, for the first
 * moment after; its job waits no longer than the owner runs. Only what the reservation keeps is
 * taken this way, so that owners gain nothing beyond it. */
bool timeline_enter(struct cycle *c, uint32_t job, uint32_t flavor)
{
	struct future *f = c->timeline->future;
	const int64_t end = timeline_end(c, job, c->s->config.now_us);
	const uint32_t within = c->s->n_reservations ? reservations_open(c, job) : SNAP_NONE;
	const uint32_t n_parts = f->n_part_ends, n_extras = f->n_extra_ends;
	const uint32_t n_tries = f->n_tries;
	struct before was;
	struct seats seats;

	if (within == SNAP_NONE || f->n_displacing++ >= ATTEMPTS_MAX)
		return false;
	f->yield_us = f->given_us = 0;
	was = save(c);
	if (c->failed)
		return false;
	timeline_unplan(c, job);
	if (!timeline_pack_on_planned(c, job, flavor, within)) {
		restore(c, &was);
		return false;
	}
	seats = keep_seats(c);
	if (c->failed || !reservations_holds_places(c, within) || !note_all(c, &was, job, end)) {
		restore(c, &was);
		pack_undo(c, job);
		return false;
	}
	/* Its places are its own from now on; what was planned there comes later. */
	sort_moved(&was);
	hold_places(c, job, end, &seats, 1);
	plan_later(c, &was);
	take_seats(c, &seats);
	hold_places(c, job, end, &seats, -1);
	f->n_part_ends = n_parts;
	f->n_extra_ends = n_extras;
	f->n_tries = n_tries;
	order(c, &was, job);
	return true;
}
