#include "gpuqd/sched/timeline/timeline_plan.h"

#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/place/pack.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/sched/timeline/reservations.h"
#include "gpuqd/sched/timeline/timeline_int.h"

#include <string.h>

#include "gpuqd/sched/timeline/timeline_free.h"
#include "gpuqd/sched/timeline/timeline_extras.h"
#include "gpuqd/sched/timeline/timeline_licenses.h"
#include "gpuqd/sched/timeline/timeline_pack.h"
#include "gpuqd/sched/timeline/timeline_parts.h"
#include "gpuqd/util/amount.h"

/* Start reservations of blocked jobs: the first ones in queue order, and before them the starving
 * ones, get a planned start, and no job that starts now may make it later. They are made again in
 * every cycle, in the same order, so that one moves later only when something came before it.
 * Source: D. Lifka, "The ANL/IBM SP Scheduling System", 1995; Mu'alem and Feitelson, IEEE TPDS
 * 12(6), 2001. */

#define TIMES_TRIED 64 /* moments beyond those at which start reservations end */
#define TRIES_MAX 4096 /* for all jobs of a cycle */

/* ---- holding places ---- */

/* Return the hold that the job has on one node already, or a new one. */
static struct booked *booking(struct cycle *c, uint32_t first, uint32_t job, uint32_t node,
			      int64_t t, int64_t end)
{
	struct future *f = c->timeline->future;
	struct booked *b;

	for (uint32_t i = first; i < f->n_booked; i++)
		if (f->booked[i].node == node)
			return &f->booked[i];
	b = cycle_push(c, &f->booked, &f->n_booked, &f->room_booked, sizeof(*b), 1);
	if (b)
		*b = (struct booked){ .node = node,
				      .job = job,
				      .reservation = SNAP_NONE,
				      .start_us = t,
				      .end_us = end,
				      .alone = cycle_request(c, job)->exclusive,
				      .whole = f->by_device ? INT32_MAX : f->at.whole[node],
				      .cpu = f->at.cpu[node],
				      .memory = f->at.memory[node],
				      .pods = f->at.pods[node] };
	return b;
}

/* Note which devices one of the job's places takes. */
static void book_devices(struct cycle *c, uint32_t job, const struct place *p, int64_t t,
			 int64_t end)
{
	const struct snap_group *g = &cycle_request(c, job)->groups[p->group];
	const struct future *f = c->timeline->future;

	for (uint32_t d = 0; f->by_device && d < p->n_devices; d++) {
		const uint32_t ix =
			c->s->nodes[p->node].device_first + c->places.devices[p->device_first + d];
		const int64_t bytes = timeline_parts_bytes(c, ix, p->milli, g);

		timeline_parts_hold(c, &(struct mark){ .job = job,
						       .reservation = SNAP_NONE,
						       .node = p->node,
						       .device = ix,
						       .start_us = t,
						       .end_us = end,
						       .milli = p->milli,
						       .bytes = bytes,
						       .left = f->at.device_free[ix],
						       .bytes_left = f->at.device_memory[ix] });
		timeline_parts_spend(c, ix, t, end, p->milli, bytes, 1);
	}
}

/* Note what the job's places take, node by node, and what is then left there. */
static void book(struct cycle *c, uint32_t job, int64_t t, int64_t end)
{
	struct future *f = c->timeline->future;
	const struct snap_request *r = cycle_request(c, job);
	const uint32_t first = f->n_booked;

	timeline_free_before_amounts(c, job, t, &f->at);
	for (uint32_t i = 0; i < c->places.n_pods; i++) {
		const struct place *p = &c->places.pods[i];
		const struct need one = nodes_need(&r->groups[p->group]);
		struct booked *b = booking(c, first, job, p->node, t, end);

		if (!b)
			return;
		b->need.whole += one.whole;
		b->need.cpu = amount_sum(b->need.cpu, one.cpu);
		b->need.memory = amount_sum(b->need.memory, one.memory);
		b->need.pods++;
		timeline_extras_hold(c, job, p->node, &one, t, end);
		/* From its own spare amounts and those of every other start reservation that begins
		 * meanwhile. */
		timeline_spend(c, p->node, t, end, &one, 1);
		book_devices(c, job, p, t, end);
	}
}

/* Note the start reservation and its places. Starving jobs do not count towards the depth of
 * backfill. */
static void remember(struct cycle *c, uint32_t job, uint32_t flavor, int64_t t, bool starving)
{
	const uint32_t kind = flavor == SNAP_NONE ? c->s->n_flavors : flavor;
	struct future *f = c->timeline->future;
	struct planned *p =
		cycle_push(c, &f->planned, &f->n_planned, &f->room_planned, sizeof(*p), 1);
	struct place *places = cycle_push(c, &f->places, &f->n_places, &f->room_places,
					  sizeof(*places), c->places.n_pods);

	if (!p || !places)
		return;
	if (c->places.n_pods)
		memcpy(places, c->places.pods, c->places.n_pods * sizeof(*places));
	*p = (struct planned){ .job = job,
			       .flavor = flavor,
			       .start_us = t,
			       .place_first = f->n_places - c->places.n_pods,
			       .n_places = c->places.n_pods,
			       .starving = starving };
	if (!starving)
		f->n_of_flavor[kind]++;
}

const struct planned *timeline_planned(const struct future *f, uint32_t job)
{
	for (uint32_t i = 0; i < f->n_planned; i++)
		if (f->planned[i].job == job)
			return &f->planned[i];
	return NULL;
}

bool timeline_has_plan(const struct cycle *c, uint32_t job)
{
	return c->timeline->future && timeline_planned(c->timeline->future, job);
}

void timeline_unplan(struct cycle *c, uint32_t job)
{
	struct future *f = c->timeline->future;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->n_planned; i++)
		if (f->planned[i].job != job)
			f->planned[kept++] = f->planned[i];
	/* It has none. */
	if (kept == f->n_planned)
		return;
	f->n_planned = kept;
	/* First return to other holds what these took from their spare capacity, then remove these. */
	kept = 0;
	for (uint32_t i = 0; i < f->n_booked; i++) {
		const struct booked b = f->booked[i];

		if (b.reservation == SNAP_NONE && b.job == job)
			timeline_spend(c, b.node, b.start_us, b.end_us, &b.need, -1);
	}
	for (uint32_t i = 0; i < f->n_booked; i++)
		if (f->booked[i].reservation != SNAP_NONE || f->booked[i].job != job)
			f->booked[kept++] = f->booked[i];
	f->n_booked = kept;
	timeline_parts_unplan(c, job);
	timeline_extras_unplan(c, job);
}

void timeline_own(struct cycle *c, uint32_t job, int sign)
{
	const struct future *f = c->timeline->future;

	if (!timeline_planned(f, job))
		return;
	for (uint32_t i = 0; i < f->n_booked; i++) {
		const struct booked b = f->booked[i];

		if (b.reservation == SNAP_NONE && b.job == job)
			timeline_spend(c, b.node, b.start_us, b.end_us, &b.need, sign);
	}
	for (uint32_t i = 0; i < f->n_marks; i++) {
		const struct mark m = f->marks[i];

		if (m.reservation == SNAP_NONE && m.job == job)
			timeline_parts_spend(c, m.device, m.start_us, m.end_us, m.milli, m.bytes,
					     sign);
	}
	timeline_extras_own(c, job, sign);
}

/* ---- moments ---- */

bool timeline_plan_at(struct cycle *c, uint32_t job, uint32_t flavor, int64_t t, bool starving)
{
	struct future *f = c->timeline->future;
	const int64_t end = timeline_end(c, job, t);
	bool placed;

	if (!timeline_licenses_fit(c, job, t, end))
		return false;
	timeline_free_throughout(c, job, t, end, &f->least);
	if (c->failed)
		return false;
	nodes_swap(c, &f->least);
	/* Nodes are now in their least state from t to end; the second exchange ends that. */
	nodes_fill_buckets(c);
	placed = pack_job(c, job, flavor);
	if (placed)
		pack_undo(c, job); /* the places stay known, see pack_undo */
	nodes_swap(c, &f->least);
	if (!placed)
		return false;
	book(c, job, t, end);
	remember(c, job, flavor, t, starving);
	return true;
}

/* Return the next moment after t at which something ends: running work, a start reservation or a
 * reservation; *release = the first release after it. */
static int64_t next_end(const struct cycle *c, int64_t t, uint32_t *release)
{
	const struct future *f = c->timeline->future;
	int64_t next = GPUQ_UNLIMITED;

	while (*release < f->n_releases && f->releases[*release].end_us <= t)
		(*release)++;
	if (*release < f->n_releases)
		next = f->releases[*release].end_us;
	for (uint32_t b = 0; b < f->n_booked; b++)
		if (f->booked[b].end_us > t && f->booked[b].end_us < next)
			next = f->booked[b].end_us;
	return reservations_next(c, t, next);
}

/* A count that must be reached before the job can start, and is cheap to follow over time: pods of
 * its largest kind that devices allow, disregarding start reservations. */
struct gauge {
	uint32_t whole; /* of one pod; 0 = no such count */
	int64_t pods, need;
	const uint64_t *fit, *flavor; /* nodes that its pods fit on; nodes of the flavor */
};

/* Begin the count with the devices that are free now. Only the group with the largest pods is
 * followed: it is the hardest to place. */
static struct gauge gauge_new(struct cycle *c, uint32_t job, uint32_t flavor)
{
	const uint64_t *ready = nodes_ready(c);
	const uint32_t request = cycle_request_ix(c, job);
	const struct snap_request *r = &c->s->requests[request];
	struct future *f = c->timeline->future;
	struct gauge g = { 0 };
	uint32_t group = 0;

	if (flavor == SNAP_NONE)
		return g;
	for (uint32_t i = 1; i < r->n_groups; i++)
		if (r->groups[i].gpus_milli > r->groups[group].gpus_milli)
			group = i;
	g.whole = nodes_need(&r->groups[group]).whole;
	g.need = r->groups[group].pods_min;
	g.fit = feasibility_of(c, request, group)->nodes;
	g.flavor = nodes_of_flavor(c, flavor);
	if (g.whole == 0 || c->failed)
		return g;
	memcpy(f->rooms, f->whole_now, c->s->n_nodes * sizeof(*f->rooms));
	for (uint32_t w = 0; w < cycle_words(c); w++) {
		uint64_t word = g.fit[w] & g.flavor[w] & ready[w];

		while (word) {
			const uint32_t n = bits_pop(&word, w * 64);

			if (f->rooms[n] >= g.whole)
				g.pods += f->rooms[n] / g.whole;
		}
	}
	return g;
}

/* Follow a release: devices on a node that the group cannot use do not matter. */
static void gauge_add(struct cycle *c, struct gauge *g, const struct release *r)
{
	uint16_t *room = &c->timeline->future->rooms[r->node];

	if (g->whole == 0 || r->whole == 0)
		return;
	if (bits_has(g->fit, r->node) && bits_has(g->flavor, r->node) &&
	    bits_has(nodes_ready(c), r->node))
		g->pods += (*room + r->whole) / (int64_t)g->whole - *room / (int64_t)g->whole;
	*room = (uint16_t)(*room + r->whole);
}

/* True if devices alone could allow a start at t; other moments are skipped. */
static bool first_chance(struct cycle *c, struct gauge *g, int64_t t, uint32_t *counted)
{
	const struct future *f = c->timeline->future;

	for (; *counted < f->n_releases && f->releases[*counted].end_us <= t; (*counted)++)
		gauge_add(c, g, &f->releases[*counted]);
	return g->whole == 0 || g->pods >= g->need;
}

/* True if something could be gone at this very moment, if signalled. */
static bool yields_now(const struct cycle *c)
{
	const struct future *f = c->timeline->future;

	return f->n_releases > 0 && f->releases[0].end_us <= c->s->config.now_us;
}

bool timeline_plan_until(struct cycle *c, uint32_t job, uint32_t flavor, int64_t latest,
			 bool starving)
{
	struct future *f = c->timeline->future;
	const int64_t now = c->s->config.now_us;
	uint32_t release = 0, counted = 0, tries = TIMES_TRIED + f->n_planned;
	struct gauge g;
	int64_t t = now;

	timeline_sort(c);
	if (c->failed)
		return false;
	/* Otherwise the present is the first moment to be tried. */
	if (!yields_now(c))
		t = next_end(c, t, &release);
	if (t == GPUQ_UNLIMITED)
		return false;
	g = gauge_new(c, job, flavor);
	for (; t != GPUQ_UNLIMITED && t <= latest && tries > 0 && !c->failed;
	     t = next_end(c, t, &release)) {
		if (!first_chance(c, &g, t, &counted))
			continue;
		tries--;
		f->n_tries++;
		if (timeline_plan_at(c, job, flavor, t, starving))
			return true;
	}
	if (tries == 0 && t != GPUQ_UNLIMITED && t <= latest)
		cycle_bounded(c, job, PLAN_BOUND_OWN_MOMENTS, TIMES_TRIED + f->n_planned);
	return false;
}

bool timeline_plan(struct cycle *c, uint32_t job, uint32_t flavor, bool starving)
{
	return timeline_plan_until(c, job, flavor, GPUQ_UNLIMITED, starving);
}

/* Return how many moments may be tried for all jobs together: what D jobs of each flavor may need,
 * within bounds. */
static uint32_t max_tries(const struct cycle *c)
{
	const int64_t n = amount_times(timeline_depth(&c->s->config),
				       TIMES_TRIED * ((int64_t)c->s->n_flavors + 1));

	return n < TRIES_MAX ? (uint32_t)n : TRIES_MAX;
}

/* True if this cycle may look for no further start reservations. */
static bool exhausted(const struct cycle *c)
{
	return c->timeline->future->n_tests >= timeline_tests(&c->s->config) ||
	       c->timeline->future->n_tries >= max_tries(c);
}

/* Report once in a cycle: it holds for all jobs that follow. */
static void tell_full(struct cycle *c)
{
	const bool tests = c->timeline->future->n_tests >= timeline_tests(&c->s->config);

	if (c->timeline->future->told_full)
		return;
	c->timeline->future->told_full = true;
	cycle_bounded(c, SNAP_NONE, tests ? PLAN_BOUND_JOBS : PLAN_BOUND_MOMENTS,
		      tests ? timeline_tests(&c->s->config) : max_tries(c));
}

/* True if nothing ever ends, and nothing is planned: no need to look ahead. */
static bool nothing_ends(struct cycle *c)
{
	const struct snapshot *s = c->s;

	if (c->timeline->future || s->n_reservations > 0 || s->n_promises > 0)
		return false;
	if (c->timeline->idle == c->plan.n_actions + 1)
		return true;
	for (uint32_t i = 0; i < s->n_allocs; i++) {
		const struct snap_job *j = &s->jobs[s->allocs[i].job];

		if (j->walltime_us != GPUQ_UNLIMITED || j->yield_us || s->allocs[i].releasing ||
		    j->state == SNAP_LEAVING)
			return false;
	}
	for (uint32_t i = 0; i < c->plan.n_actions; i++)
		if (c->plan.actions[i].kind != PLAN_PLACE ||
		    s->jobs[c->plan.actions[i].job].walltime_us != GPUQ_UNLIMITED ||
		    c->plan.actions[i].walltime_us)
			return false;
	c->timeline->idle = c->plan.n_actions + 1;
	return true;
}

bool timeline_may_plan(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why)
{
	/* Licenses are checked last, and come back. */
	return holdings_admits(c, job, flavor, why) || holdings_is_license(why->code);
}

bool timeline_reserve(struct cycle *c, uint32_t job, uint32_t flavor)
{
	const int64_t depth = timeline_depth(&c->s->config);
	const uint32_t kind = flavor == SNAP_NONE ? c->s->n_flavors : flavor;

	if (depth == 0 || nothing_ends(c) || !timeline_look_ahead(c))
		return false;
	if (timeline_planned(c->timeline->future, job))
		return true;
	if (c->timeline->future->n_of_flavor[kind] >= depth)
		return false;
	if (exhausted(c)) {
		tell_full(c);
		return false;
	}
	c->timeline->future->n_tests++;
	return timeline_plan(c, job, flavor, false);
}

bool timeline_full(const struct cycle *c, uint32_t job)
{
	const int64_t depth = timeline_depth(&c->s->config);
	const struct snap_request *r = cycle_request(c, job);
	const struct future *f = c->timeline->future;

	if (!f || exhausted(c))
		return true;
	if (r->gpus_milli == 0)
		return f->n_of_flavor[c->s->n_flavors] >= depth;
	for (uint32_t i = 0; i < cycle_flavors(c, job); i++)
		if (f->n_of_flavor[r->flavor_ix[i]] < depth)
			return false;
	return true;
}

/* ---- the plan ---- */

/* Report a start reservation. Devices are not named: they are chosen when it starts. */
static void emit_reserve(struct cycle *c, const struct planned *p)
{
	struct plan_action *a = PLAN_PUSH(c, actions, 1);
	struct plan_pod *pods = PLAN_PUSH(c, pods, p->n_places);
	const struct place *places = &c->timeline->future->places[p->place_first];

	if (!a || !pods)
		return;
	for (uint32_t i = 0; i < p->n_places; i++)
		pods[places[i].index] = (struct plan_pod){ .group = places[i].group,
							   .index = places[i].index,
							   .node = places[i].node };
	*a = (struct plan_action){
		.kind = PLAN_RESERVE,
		.job = p->job,
		.request = cycle_request_ix(c, p->job),
		.key = { c->s->jobs[p->job].key.id, plan_next_element(c, p->job) },
		.flavor = p->flavor,
		.pod_first = c->plan.n_pods - p->n_places,
		.n_pods = p->n_places,
		.start_us = p->start_us,
		.claimant = SNAP_NONE,
	};
}

void timeline_finish(struct cycle *c)
{
	if (!c->timeline->future || !timeline_look_ahead(c))
		return;
	timeline_yield(c);
	for (uint32_t i = 0; i < c->timeline->future->n_planned; i++)
		emit_reserve(c, &c->timeline->future->planned[i]);
}
