#include "gpuqd/sched/timeline/timeline.h"

#include <string.h>

#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/timeline/reservations.h"
#include "gpuqd/sched/timeline/reservations_end.h"
#include "gpuqd/sched/timeline/timeline_int.h"
#include "gpuqd/sched/timeline/timeline_extras.h"
#include "gpuqd/sched/timeline/timeline_licenses.h"
#include "gpuqd/sched/timeline/timeline_parts.h"
#include "gpuqd/sched/timeline/timeline_plan.h"
#include "gpuqd/util/amount.h"

/* The timeline: when current holdings are released. The free capacity at a moment is computed in
 * timeline_free.c. Time limits are trusted, and grace periods are added to them. Capacity that
 * victims release belongs to its new owner from the moment they are gone. */

/* The holdings of one pod, current or nominated. */
struct hold {
	int64_t end_us; /* when it is released */
	uint32_t job, node;
	const struct snap_group *group; /* as it was placed */
	const uint32_t *devices; /* on its node */
	uint32_t n_devices;
	int32_t milli; /* of each */
	bool promised; /* it takes its amounts when its victims are gone */
};

/* A job that runs already has been given its time: only a pending one can be given less. */
int64_t timeline_least_us(const struct snap_job *j)
{
	const bool less = j->state == SNAP_PENDING && j->walltime_min_us &&
			  j->walltime_min_us < j->walltime_us;

	return less ? j->walltime_min_us : j->walltime_us;
}

int64_t timeline_walltime(const struct cycle *c, uint32_t job, int64_t t)
{
	const struct snap_job *j = &c->s->jobs[job];
	const int64_t least = timeline_least_us(j), left = amount_less(j->deadline_us, t);

	if (least == j->walltime_us || j->deadline_us == 0 || left >= j->walltime_us)
		return j->walltime_us;
	/* It is shortened to end by its deadline, but not below its minimum. */
	return left > least ? left : least;
}

/* Return when a job is gone that starts at t with that time limit; 0 = the requested one. */
static int64_t end_of_given(const struct cycle *c, uint32_t job, int64_t t, int64_t given_us)
{
	if (!given_us)
		return timeline_end(c, job, t);
	return amount_later(amount_later(t, given_us), c->s->jobs[job].grace_us);
}

int64_t timeline_end(const struct cycle *c, uint32_t job, int64_t t)
{
	return amount_later(amount_later(t, timeline_walltime(c, job, t)),
			    c->s->jobs[job].grace_us);
}

/* Return when pods that were signalled, or are past their time, are assumed to be gone. */
static int64_t told_to_leave(const struct cycle *c)
{
	return c->s->config.now_us + FUTURE_OVERRUN_US;
}

/* Return when a running job releases its holdings. */
static int64_t end_of_running(const struct cycle *c, uint32_t job, bool leaving)
{
	const struct snap_job *j = &c->s->jobs[job];
	const int64_t now = c->s->config.now_us;
	int64_t end = timeline_end(c, job, j->start_us), yield;
	const int64_t cleared = amount_later(reservations_clears(c, job), j->grace_us);
	const int64_t ends = reservations_ends(c, job);

	if (leaving)
		return told_to_leave(c);
	end = ends < end ? ends : end;
	/* It should have ended: its end is near, but not now. */
	if (end <= now)
		end = told_to_leave(c);
	end = cleared < end ? cleared : end;
	if (j->yield_us == 0 || now - j->yield_us > FUTURE_OVERRUN_US)
		return end;
	/* It runs where another job has the right to start. If that job did not start there in
	 * time, it runs like any other. */
	yield = amount_later(now, j->grace_us);
	yield = yield > j->yield_us ? yield : j->yield_us;
	return yield < end ? yield : end;
}

/* True if no other job may be on its nodes. */
static bool is_alone(const struct cycle *c, uint32_t job)
{
	return cycle_request(c, job)->exclusive;
}

/* ---- holdings, from the snapshot and from later decisions ---- */

struct holds {
	struct hold *items;
	uint32_t n;
	uint8_t *gone; /* by job: 1 all of it was signalled, 2 its nominated placement is void */
	uint8_t *shrunk; /* by alloc: signalled */
	bool any_promise;
};

/* Add what a running or nominated pod holds until its end. */
static void hold_alloc(const struct cycle *c, struct holds *h, const struct snap_alloc *a,
		       int64_t end, bool promised)
{
	/* A node that shrank no longer has some devices; others stay with other jobs. */
	const uint32_t n = a->stays ? 0 : c->s->nodes[a->node].n_devices;
	uint32_t k = 0;

	while (k < a->n_devices && a->devices[k] < n)
		k++;
	h->items[h->n++] = (struct hold){ .end_us = end,
					  .job = a->job,
					  .node = a->node,
					  .group = snap_group_of(c->s, a),
					  .devices = a->devices,
					  .n_devices = k,
					  .milli = a->milli,
					  .promised = promised };
	h->any_promise |= promised;
}

/* Note the pods that an action of this cycle takes from an elastic job. Actions name pods by index,
 * holds by their place in the snapshot. */
static void shrink(const struct cycle *c, struct holds *h, const struct plan_action *a)
{
	const struct snap_job *j = &c->s->jobs[a->job];

	for (uint32_t i = 0; i < a->n_pods; i++)
		for (uint32_t k = j->alloc_first; k < j->alloc_first + j->n_allocs; k++)
			if (c->s->allocs[k].index == c->plan.pods[a->pod_first + i].index)
				h->shrunk[k] = 1;
}

/* Note the effects of the actions so far on running and nominated jobs. */
static void note_actions(const struct cycle *c, struct holds *h)
{
	for (uint32_t i = 0; i < c->plan.n_actions; i++) {
		const struct plan_action *a = &c->plan.actions[i];

		if (a->kind == PLAN_EVICT || a->kind == PLAN_MOVE)
			h->gone[a->job] |= 1;
		else if (a->kind == PLAN_SHRINK)
			shrink(c, h, a);
		else if (a->kind == PLAN_RELEASE || a->kind == PLAN_PLACE ||
			 a->kind == PLAN_NOMINATE)
			h->gone[a->job] |= 2;
		/* A job that is moved ends where it runs, and its new places are those of the
		 * action. */
		if (a->kind == PLAN_MOVE)
			h->gone[a->job] |= 2;
	}
}

/* Add what an action of this cycle holds; a nominated placement begins when its victims are gone.
 */
static void hold_action(const struct cycle *c, struct holds *h, const struct plan_action *a)
{
	const int64_t now = c->s->config.now_us;
	const bool promised = a->kind == PLAN_NOMINATE || a->kind == PLAN_MOVE;
	int64_t start = promised ? told_to_leave(c) : now;
	int64_t end;

	if (a->kind != PLAN_PLACE && a->kind != PLAN_GROW && !promised)
		return;
	/* Pods that join a running job end when it ends. */
	if (a->kind == PLAN_GROW && c->s->jobs[a->job].state == SNAP_RUNNING)
		start = c->s->jobs[a->job].start_us;
	end = end_of_given(c, a->job, start, a->walltime_us);
	if (a->yield_us && a->yield_us < end)
		end = a->yield_us;
	for (uint32_t i = 0; i < a->n_pods; i++) {
		const struct plan_pod *p = &c->plan.pods[a->pod_first + i];

		h->items[h->n++] = (struct hold){ .end_us = end,
						  .job = a->job,
						  .node = p->node,
						  .group = snap_group_at(
							  &c->s->requests[a->request], p->group),
						  .devices = &c->plan.devices[p->device_first],
						  .n_devices = p->n_devices,
						  .milli = p->milli,
						  .promised = promised };
	}
	h->any_promise |= promised;
}

/* Collect what is held now: by pods of the snapshot, by nominated placements of earlier cycles, and
 * by the actions of this one, in that order; add_promises() relies on it. */
static void collect_holds(struct cycle *c, struct holds *h)
{
	const struct snapshot *s = c->s;

	h->items = cycle_scratch(c, (size_t)s->n_allocs + s->n_promises + c->plan.n_pods,
				 sizeof(*h->items));
	h->gone = cycle_scratch(c, s->n_jobs, sizeof(*h->gone));
	h->shrunk = cycle_scratch(c, s->n_allocs, sizeof(*h->shrunk));
	if (c->failed)
		return;
	note_actions(c, h);
	for (uint32_t i = 0; i < s->n_allocs; i++) {
		const struct snap_alloc *a = &s->allocs[i];
		/* Signalled in an earlier cycle, or by an action of this one. */
		const bool leaving = a->releasing || s->jobs[a->job].state == SNAP_LEAVING ||
				     (h->gone[a->job] & 1) || h->shrunk[i];

		hold_alloc(c, h, a, end_of_running(c, a->job, leaving), false);
	}
	for (uint32_t i = 0; i < s->n_promises; i++) {
		const struct snap_alloc *a = &s->promises[i];

		if (!(h->gone[a->job] & 2))
			hold_alloc(c, h, a, timeline_end(c, a->job, told_to_leave(c)), true);
	}
	for (uint32_t i = 0; i < c->plan.n_actions; i++)
		hold_action(c, h, &c->plan.actions[i]);
}

/* ---- devices ---- */

/* Return the number over all nodes of a device of a hold. */
static uint32_t device_of(const struct cycle *c, const struct hold *h, uint32_t d)
{
	return c->s->nodes[h->node].device_first + h->devices[d];
}

/* Compute when each device becomes free as a whole: when the last of the pods that share it has
 * ended. Then count the devices of each node that are free now. */
static void time_devices(struct cycle *c, const struct holds *h)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct snapshot *s = c->s;
	struct future *f = c->timeline->future;

	memset(f->until, 0, s->n_devices * sizeof(*f->until));
	for (uint32_t i = 0; i < h->n; i++) {
		const struct hold *hold = &h->items[i];

		for (uint32_t d = 0; d < hold->n_devices; d++) {
			int64_t *until = &f->until[device_of(c, hold, d)];

			*until = hold->end_us > *until ? hold->end_us : *until;
		}
	}
	/* Devices that are not free although no known pod of gpuq holds them, and those that are never free as a whole. */
	for (uint32_t d = 0; d < s->n_devices; d++)
		if (s->devices[d].serves == SNAP_SERVES_PARTS ||
		    (avail->device_free[d] != SNAP_MILLI &&
		     (f->until[d] == 0 || !s->devices[d].healthy ||
		      s->devices[d].foreign_milli > 0)))
			f->until[d] = GPUQ_UNLIMITED;
	for (uint32_t n = 0; n < s->n_nodes; n++) {
		const int64_t *until = &f->until[s->nodes[n].device_first];

		f->whole_now[n] = 0;
		for (uint32_t d = 0; d < s->nodes[n].n_devices; d++)
			f->whole_now[n] += until[d] == 0;
	}
}

/* ---- releases ---- */

/* Add an empty release; NULL without memory. Its place in the order is found later. */
static struct release *add_release(struct cycle *c, int64_t end_us, uint32_t node)
{
	struct release *r =
		cycle_push(c, &c->timeline->future->releases, &c->timeline->future->n_releases,
			   &c->timeline->future->room_releases, sizeof(*r), 1);

	c->timeline->future->sorted = false;
	if (r)
		*r = (struct release){ .end_us = end_us, .node = node };
	return r;
}

/* claimed: devices that another pod releases; each counts only once. */
static void add_end(struct cycle *c, const struct hold *h, uint64_t *claimed)
{
	const struct snap_group *g = h->group;
	const struct need one = nodes_need(g);
	struct release *r;

	/* Work without a time limit releases nothing that a plan could count on. */
	if (h->end_us == GPUQ_UNLIMITED)
		return;
	r = add_release(c, h->end_us, h->node);
	if (!r)
		return;
	r->pods = 1;
	r->closers = is_alone(c, h->job);
	r->cpu = one.cpu;
	r->memory = one.memory;
	timeline_extras_end(c, h->node, &one, 1, h->end_us);
	for (uint32_t d = 0; d < h->n_devices; d++) {
		const uint32_t ix = device_of(c, h, d);

		if (c->timeline->future->by_device)
			timeline_parts_end(c, ix, h->milli,
					   timeline_parts_bytes(c, ix, h->milli, g), h->end_us);
		/* A shared device is released as a whole only by the last pod on it. */
		if (c->timeline->future->until[ix] != h->end_us || bits_has(claimed, ix))
			continue;
		bits_add(claimed, ix);
		r->whole++;
	}
}

/* A nominated pod takes its amounts when its victims are gone. Capacity that the cycle already
 * keeps free for it until then is neither more nor less free. */
static void add_promises(struct cycle *c, const struct holds *h)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct snapshot *s = c->s;
	struct taken {
		int64_t cpu, memory, pods;
		bool promised;
	} *taken = cycle_scratch(c, s->n_nodes, sizeof(*taken));

	for (uint32_t i = 0; taken && i < h->n; i++) {
		const struct hold *hold = &h->items[i];
		const struct need one = nodes_need(hold->group);
		struct release *r;

		/* Holds of the snapshot that are not nominated are counted in its free amounts. */
		if (hold->promised) {
			taken[hold->node].promised = true;
			r = add_release(c, told_to_leave(c), hold->node);
			if (!r)
				return;
			r->cpu = -one.cpu;
			r->memory = -one.memory;
			r->pods = -1;
		} else if (i >= s->n_allocs) {
			taken[hold->node].cpu = amount_sum(taken[hold->node].cpu, one.cpu);
			taken[hold->node].memory = amount_sum(taken[hold->node].memory, one.memory);
			taken[hold->node].pods++;
		}
	}
	for (uint32_t n = 0; taken && n < s->n_nodes; n++) {
		const struct snap_node *node = &s->nodes[n];
		struct release *r;

		if (!taken[n].promised)
			continue;
		/* Return what the cycle withholds for nominated pods already, since their whole
		 * amounts are taken above. */
		r = add_release(c, told_to_leave(c), n);
		if (!r)
			return;
		if (avail->cpu[n] != GPUQ_UNLIMITED)
			r->cpu = node->cpu_free - taken[n].cpu - avail->cpu[n];
		if (avail->memory[n] != GPUQ_UNLIMITED)
			r->memory = node->memory_free - taken[n].memory - avail->memory[n];
		if (avail->pods[n] != GPUQ_UNLIMITED)
			r->pods = (int32_t)(node->pods_free - taken[n].pods - avail->pods[n]);
	}
}

/* The same for devices: a nominated pod takes them when its victims are gone. */
static void promise_devices(struct cycle *c, const struct holds *h)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct snapshot *s = c->s;
	struct taken {
		int32_t milli;
		int64_t bytes;
		bool promised;
	} *taken = c->timeline->future->by_device ? cycle_scratch(c, s->n_devices, sizeof(*taken))
						  : NULL;

	for (uint32_t i = 0; taken && i < h->n; i++) {
		const struct hold *hold = &h->items[i];
		const struct snap_group *g = hold->group;

		for (uint32_t d = 0; d < hold->n_devices; d++) {
			const uint32_t ix = device_of(c, hold, d);
			const int64_t bytes = timeline_parts_bytes(c, ix, hold->milli, g);

			if (hold->promised) {
				taken[ix].promised = true;
				timeline_parts_end(c, ix, -hold->milli, -bytes, told_to_leave(c));
			} else if (i >= s->n_allocs) {
				taken[ix].milli += hold->milli;
				taken[ix].bytes += bytes;
			}
		}
	}
	for (uint32_t d = 0; taken && d < s->n_devices; d++)
		if (taken[d].promised)
			timeline_parts_end(c, d,
					   s->devices[d].free_milli - taken[d].milli -
						   avail->device_free[d],
					   s->devices[d].free_memory_bytes - taken[d].bytes -
						   avail->device_memory[d],
					   told_to_leave(c));
}

/* The same for countable resources. */
static void promise_extras(struct cycle *c, const struct holds *h)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct snapshot *s = c->s;
	const size_t n_slots = c->timeline->future->by_extra ? (size_t)s->n_nodes * s->n_extras : 0;
	int64_t *taken = n_slots ? cycle_scratch(c, n_slots, sizeof(*taken)) : NULL;
	uint8_t *promised = n_slots ? cycle_scratch(c, n_slots, sizeof(*promised)) : NULL;

	for (uint32_t i = 0; taken && promised && i < h->n; i++) {
		const struct hold *hold = &h->items[i];
		const struct need one = nodes_need(hold->group);

		for (uint32_t k = 0; k < one.n_takes; k++) {
			const size_t at = (size_t)hold->node * s->n_extras + one.takes[k].extra;

			if (hold->promised)
				promised[at] = 1;
			else if (i >= s->n_allocs)
				taken[at] += one.takes[k].n;
		}
		if (hold->promised)
			timeline_extras_end(c, hold->node, &one, -1, told_to_leave(c));
	}
	for (size_t at = 0; taken && promised && at < n_slots; at++)
		if (promised[at])
			timeline_extras_end_at(
				c, at, s->extra_free[at] - taken[at] - avail->extra_free[at],
				told_to_leave(c));
}

/* True if any pending or running job requests it. */
static bool any_asks(const struct snapshot *s, bool (*asks)(const struct snap_request *))
{
	bool any = false;

	for (uint32_t i = 0; !any && i < s->n_requests; i++)
		any = asks(&s->requests[i]);
	for (uint32_t i = 0; any && i < s->n_jobs; i++)
		if ((s->jobs[i].state != SNAP_PENDING || s->jobs[i].n_waiting > 0) &&
		    asks(&s->requests[s->jobs[i].request]))
			return true;
	return false;
}

/* Allocate the tables of the future. Those by device and by resource cost the most, and are made
 * only where a job requests parts or countable resources. */
static struct future *new_future(struct cycle *c)
{
	const struct snapshot *s = c->s;
	struct future *f = cycle_alloc(c, 1, sizeof(*f));

	if (!f)
		return NULL;
	f->until = cycle_alloc(c, s->n_devices, sizeof(*f->until));
	f->whole_now = cycle_alloc(c, s->n_nodes, sizeof(*f->whole_now));
	f->seated = cycle_alloc(c, s->n_nodes, sizeof(*f->seated));
	f->closers = cycle_alloc(c, s->n_nodes, sizeof(*f->closers));
	f->closed = cycle_alloc(c, s->n_nodes, sizeof(*f->closed));
	f->rooms = cycle_alloc(c, s->n_nodes, sizeof(*f->rooms));
	f->n_of_flavor = cycle_alloc(c, (size_t)s->n_flavors + 1, sizeof(*f->n_of_flavor));
	f->starving_held = cycle_alloc(c, (size_t)s->n_flavors + 2, sizeof(*f->starving_held));
	f->n_starving = cycle_alloc(c, (size_t)s->n_flavors + 1, sizeof(*f->n_starving));
	f->barred = cycle_alloc(c, cycle_words(c), sizeof(*f->barred));
	f->by_device = any_asks(s, timeline_parts_asked);
	f->by_extra = s->n_extras && any_asks(s, timeline_extras_asked);
	f->at = nodes_amounts_new(c, f->by_device, f->by_extra);
	f->least = nodes_amounts_new(c, f->by_device, f->by_extra);
	return c->failed ? NULL : f;
}

/* Count a pod that closes its node to other jobs. */
static void add_closer(struct cycle *c, uint32_t node, uint32_t job)
{
	if (!is_alone(c, job))
		return;
	c->timeline->future->closers[node]++;
	c->timeline->future->any_closer = true;
}

/* Note the licenses of jobs that run, are ending, were started or are nominated. */
static void time_licenses(struct cycle *c, const struct holds *h)
{
	const struct snapshot *s = c->s;

	c->timeline->future->n_license_ends = 0;
	for (uint32_t k = 0; s->n_licenses && k < s->lines.n_busy; k++) {
		const uint32_t i = s->lines.busy[k];

		if (s->jobs[i].state != SNAP_PENDING && s->jobs[i].n_allocs)
			timeline_licenses_end(c, i,
					      end_of_running(c, i,
							     s->jobs[i].state == SNAP_LEAVING ||
								     (h->gone[i] & 1)));
		else if (bits_has(c->promised, i))
			timeline_licenses_end(c, i, timeline_end(c, i, told_to_leave(c)));
	}
	for (uint32_t i = 0; s->n_licenses && i < c->plan.n_actions; i++) {
		const struct plan_action *a = &c->plan.actions[i];
		const int64_t end = end_of_given(c, a->job, s->config.now_us, a->walltime_us);

		if ((a->kind == PLAN_PLACE && !bits_has(c->promised, a->job)) ||
		    a->kind == PLAN_NOMINATE)
			timeline_licenses_end(c, a->job,
					      a->yield_us && a->yield_us < end ? a->yield_us : end);
	}
}

/* Build the timeline anew from the snapshot and the actions so far. Start reservations are not part
 * of it: plan_again() adds them. */
static void build(struct cycle *c)
{
	struct future *f = c->timeline->future;
	struct holds h = { 0 };
	uint64_t *claimed = cycle_scratch(c, bits_words(c->s->n_devices), sizeof(*claimed));

	collect_holds(c, &h);
	if (c->failed)
		return;
	f->n_releases = f->n_part_ends = f->n_extra_ends = 0;
	f->stale = false;
	memset(f->seated, 0, c->s->n_nodes * sizeof(*f->seated));
	memset(f->closers, 0, c->s->n_nodes * sizeof(*f->closers));
	time_devices(c, &h);
	time_licenses(c, &h);
	for (uint32_t i = 0; i < h.n; i++) {
		f->seated[h.items[i].node]++;
		add_closer(c, h.items[i].node, h.items[i].job);
		add_end(c, &h.items[i], claimed);
	}
	if (h.any_promise) {
		add_promises(c, &h);
		promise_devices(c, &h);
		promise_extras(c, &h);
	}
}

/* True if this cycle nominated a placement for the job, which then needs no start reservation. */
static bool has_promise(const struct cycle *c, uint32_t job)
{
	for (uint32_t i = 0; i < c->plan.n_actions; i++)
		if (c->plan.actions[i].kind == PLAN_NOMINATE && c->plan.actions[i].job == job)
			return true;
	return false;
}

/* Plan everything that was planned again, in the same order. */
static void plan_again(struct cycle *c)
{
	struct future *f = c->timeline->future;
	/* The old list is read while a new one is made; the arena keeps both. */
	const struct planned *before = f->planned;
	const uint32_t n = f->n_planned;

	f->planned = NULL;
	f->n_planned = f->room_planned = f->n_booked = f->n_marks = f->n_places = 0;
	f->n_extra_holds = 0;
	memset(f->n_of_flavor, 0, ((size_t)c->s->n_flavors + 1) * sizeof(*f->n_of_flavor));
	reservations_enter_amounts(c);
	for (uint32_t i = 0; i < n && !c->failed; i++)
		if (c->plan.started[before[i].job] < c->s->jobs[before[i].job].n_waiting &&
		    !has_promise(c, before[i].job))
			timeline_plan(c, before[i].job, before[i].flavor, before[i].starving);
}

/* The timeline is built when a job is first blocked: a cycle in which everything starts needs none.
 * Starts update it, other changes only mark it stale. */
bool timeline_look_ahead(struct cycle *c)
{
	if (!c->timeline->future) {
		c->timeline->future = new_future(c);
		if (!c->timeline->future)
			return false;
		reservations_enter_nodes(c);
		build(c);
		reservations_enter_amounts(c);
	} else if (c->timeline->future->stale) {
		build(c);
		plan_again(c);
	}
	return !c->failed;
}

void timeline_changed(struct cycle *c)
{
	if (c->timeline->future)
		c->timeline->future->stale = true;
}

/* ---- starts ---- */

void timeline_spend(struct cycle *c, uint32_t node, int64_t start, int64_t end,
		    const struct need *n, int sign)
{
	/* Holds that begin outside [start, end) are not affected. */
	for (uint32_t i = 0; i < c->timeline->future->n_booked; i++) {
		struct booked *b = &c->timeline->future->booked[i];

		if (b->node != node || b->start_us < start || b->start_us >= end)
			continue;
		b->whole -= sign * (int64_t)n->whole;
		if (b->cpu != GPUQ_UNLIMITED)
			b->cpu = amount_sum(b->cpu, -sign * n->cpu);
		if (b->memory != GPUQ_UNLIMITED)
			b->memory = amount_sum(b->memory, -sign * n->memory);
		if (b->pods != GPUQ_UNLIMITED)
			b->pods -= sign * n->pods;
	}
	timeline_extras_spend(c, node, start, end, n, sign);
}

void timeline_refresh(struct cycle *c)
{
	if (c->timeline->future && c->timeline->future->stale)
		timeline_look_ahead(c);
}

void timeline_shift(struct cycle *c, const struct snap_alloc *a, int sign)
{
	const struct snapshot *s = c->s;
	const struct future *f = c->timeline->future;
	struct need one;

	nodes_shift(c, a, sign);
	/* A stale timeline is built anew before it is read again. */
	if (!f || f->stale || f->n_booked == 0)
		return;
	one = nodes_need_of(s, a);
	timeline_spend(c, a->node, s->config.now_us, end_of_running(c, a->job, false), &one, -sign);
	for (uint32_t d = 0; f->by_device && d < a->n_devices; d++) {
		const uint32_t ix = s->nodes[a->node].device_first + a->devices[d];

		if (a->devices[d] < s->nodes[a->node].n_devices)
			timeline_parts_spend(
				c, ix, s->config.now_us, end_of_running(c, a->job, false), a->milli,
				timeline_parts_bytes(c, ix, a->milli, snap_group_of(s, a)), -sign);
	}
}

/* Note that the device is held until end. */
static void hold_device(struct cycle *c, uint32_t node, uint32_t device, int64_t end)
{
	struct future *f = c->timeline->future;
	int64_t *until = &f->until[device];
	struct release *r;

	if (end <= *until)
		return;
	if (*until == 0)
		f->whole_now[node]--;
	else if ((r = add_release(c, *until, node)) != NULL)
		r->whole = -1; /* it was shared, and is free no sooner than the last pod is gone */
	*until = end;
	if (end != GPUQ_UNLIMITED && (r = add_release(c, end, node)) != NULL)
		r->whole = 1;
}

void timeline_started(struct cycle *c, const struct plan_action *a)
{
	const struct snap_job *j = &c->s->jobs[a->job];
	int64_t end = end_of_given(c, a->job, c->s->config.now_us, a->walltime_us);

	if (!c->timeline->future || a->kind != PLAN_PLACE)
		return;
	/* Its own nominated placement is in the timeline as a hold, which ends now. */
	if (j->n_promises)
		c->timeline->future->stale = true;
	if (a->yield_us && a->yield_us < end)
		end = a->yield_us;
	c->timeline->future->yield_us = c->timeline->future->given_us = 0;
	/* Its start reservation has served its purpose. */
	timeline_unplan(c, a->job);
	timeline_licenses_end(c, a->job, end);
	for (uint32_t i = 0; i < a->n_pods; i++) {
		const struct plan_pod *p = &c->plan.pods[a->pod_first + i];
		const struct snap_group *g = snap_group_at(&c->s->requests[a->request], p->group);
		const struct need one = nodes_need(g);
		const uint32_t first = c->s->nodes[p->node].device_first;
		struct release *r = end != GPUQ_UNLIMITED ? add_release(c, end, p->node) : NULL;

		c->timeline->future->seated[p->node]++;
		add_closer(c, p->node, a->job);
		if (r) {
			r->pods = 1;
			r->closers = is_alone(c, a->job);
			r->cpu = one.cpu;
			r->memory = one.memory;
		}
		timeline_extras_end(c, p->node, &one, 1, end);
		for (uint32_t d = 0; d < p->n_devices; d++) {
			const uint32_t ix = first + c->plan.devices[p->device_first + d];
			int64_t bytes;

			hold_device(c, p->node, ix, end);
			if (!c->timeline->future->by_device)
				continue;
			bytes = timeline_parts_bytes(c, ix, p->milli, g);
			timeline_parts_end(c, ix, p->milli, bytes, end);
			timeline_parts_spend(c, ix, c->s->config.now_us, end, p->milli, bytes, 1);
		}
		reservations_used(c, a->job, p->node, one.whole + one.parts);
		timeline_spend(c, p->node, c->s->config.now_us, end, &one, 1);
	}
}
