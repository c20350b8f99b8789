#include "gpuqd/sched/timeline/reservations.h"

#include "gpuqd/sched/timeline/timeline_int.h"

#include <string.h>

#include "gpuqd/sched/timeline/reservations_end.h"
#include "gpuqd/sched/timeline/reservations_int.h"
#include "gpuqd/sched/timeline/timeline_free.h"
#include "gpuqd/sched/timeline/timeline_pack.h"
#include "gpuqd/sched/timeline/timeline_parts.h"
#include "gpuqd/sched/timeline/timeline_starve.h"
#include "gpuqd/util/amount.h"

/* Reservations of whole nodes, and of an amount anywhere. Whole nodes are kept as sets that the
 * current job may not use unless it owns them. An amount is a hold of devices on nodes that are
 * chosen anew in every cycle until it begins, and afterwards for the part that its owners have not
 * taken yet. The nodes with the most free capacity at that time are chosen. */

/* Return a reservation by its index. */
static const struct snap_reservation *slice(const struct cycle *c, uint32_t i)
{
	return &c->s->reservations[i];
}

/* True if it reserves an amount anywhere, in place of named nodes. */
static bool is_amount(const struct snap_reservation *r)
{
	return r->gpus_milli > 0;
}

/* True if its time is over. */
static bool ended(const struct cycle *c, const struct snap_reservation *r)
{
	return r->end_us <= c->s->config.now_us;
}

/* True if it keeps no more than its owners use. */
static bool released(const struct cycle *c, const struct snap_reservation *r)
{
	return r->release_us > 0 && c->s->config.now_us >= amount_sum(r->start_us, r->release_us);
}

/* True if the job started while all of it was kept for its owners, or before. */
static bool in_time(const struct snap_reservation *r, const struct snap_job *j)
{
	return r->release_us <= 0 || j->start_us < amount_sum(r->start_us, r->release_us);
}

bool reservations_over(const struct cycle *c, uint32_t i)
{
	const struct snap_reservation *r = slice(c, i);

	if (ended(c, r))
		return true;
	if (!released(c, r))
		return false;
	return is_amount(r) || (c->timeline->future->slices && !c->timeline->future->slices[i]);
}

bool reservations_owns(const struct cycle *c, uint32_t reservation, uint32_t job)
{
	const struct snap_reservation *r = slice(c, reservation);
	bool in_queue = r->queue == SNAP_NONE, named = r->n_users == 0;

	/* Without a queue and users it has no owners; maintenance never has any. */
	if (job == SNAP_NONE || r->maintenance || (in_queue && named))
		return false;
	for (uint32_t q = c->s->jobs[job].queue; !in_queue && q != SNAP_NONE;
	     q = c->s->queues[q].parent)
		in_queue = q == r->queue;
	for (uint32_t i = 0; !named && i < r->n_users; i++)
		named = r->users[i] == c->s->jobs[job].user;
	return in_queue && named;
}

/* True if the reservation keeps its nodes from a job that runs during [t, end). Its owners may
 * start inside, once it has begun. */
static bool keeps(const struct cycle *c, uint32_t i, uint32_t job, int64_t t, int64_t end)
{
	const struct snap_reservation *r = slice(c, i);

	return !is_amount(r) && r->start_us < end && r->end_us > t &&
	       (t < r->start_us || !reservations_admits(c, i, job, t));
}

uint32_t reservations_bars(const struct cycle *c, uint32_t job, int64_t t, int64_t end,
			   uint64_t *out)
{
	uint32_t first = SNAP_NONE;

	if (out)
		memset(out, 0, cycle_words(c) * sizeof(*out));
	for (uint32_t i = 0; i < c->s->n_reservations; i++) {
		if (reservations_over(c, i) || !keeps(c, i, job, t, end))
			continue;
		/* The one that ends first is named: its end changes something. */
		if (first == SNAP_NONE || slice(c, i)->end_us < slice(c, first)->end_us)
			first = i;
		for (uint32_t w = 0; out && w < cycle_words(c); w++)
			out[w] |= c->timeline->future->slices[i][w];
	}
	return first;
}

int64_t reservations_takes(const struct cycle *c, uint32_t job, uint32_t node, int64_t before)
{
	const int64_t now = c->s->config.now_us;

	for (uint32_t i = 0; i < c->s->n_reservations; i++)
		if (!reservations_over(c, i) && keeps(c, i, job, now, before) &&
		    bits_has(c->timeline->future->slices[i], node))
			before = slice(c, i)->start_us > now ? slice(c, i)->start_us : now;
	return before;
}

int64_t reservations_next(const struct cycle *c, int64_t t, int64_t next)
{
	for (uint32_t i = 0; i < c->s->n_reservations; i++) {
		const struct snap_reservation *r = slice(c, i);

		/* Owners may start when it begins, others when it is over. */
		if (r->start_us > t && r->start_us < next)
			next = r->start_us;
		if (r->end_us > t && r->end_us < next)
			next = r->end_us;
	}
	return next;
}

void reservations_name(struct cycle *c, uint32_t reservation, struct plan_reason *why)
{
	const struct snap_reservation *r = slice(c, reservation);
	const int64_t now = c->s->config.now_us;

	why->code = GPUQ_R_RESERVATION;
	why->unit = PLAN_TIME;
	why->have = now;
	why->need = r->start_us > now ? r->start_us : r->end_us;
	why->object = r->name;
}

/* ---- amounts ---- */

bool reservations_counts_there(const struct cycle *c, const struct snap_reservation *r,
			       uint32_t node)
{
	return bits_has(nodes_ready(c), node) && c->s->nodes[node].n_devices > 0 &&
	       (r->flavor == SNAP_NONE || c->s->nodes[node].flavor == r->flavor) &&
	       (!r->pool || strcmp(c->s->nodes[node].pool, r->pool) == 0);
}

/* True if the pod's devices count for an amount that its job owns. */
static bool counts_for(const struct cycle *c, uint32_t i, const struct snap_alloc *al)
{
	const struct snap_reservation *r = slice(c, i);

	return c->s->jobs[al->job].start_us >= r->start_us && in_time(r, &c->s->jobs[al->job]) &&
	       reservations_counts_there(c, r, al->node) && reservations_owns(c, i, al->job);
}

bool reservations_has(const struct cycle *c, uint32_t reservation, const struct snap_alloc *al)
{
	const uint64_t *own = c->timeline->future->slices[reservation];

	return is_amount(slice(c, reservation)) ? counts_for(c, reservation, al)
						: own && bits_has(own, al->node);
}

bool reservations_shields(const struct cycle *c, uint32_t job, uint32_t claimant)
{
	const struct snap_job *j = &c->s->jobs[job];

	for (uint32_t i = 0; i < c->s->n_reservations; i++) {
		const struct snap_reservation *r = slice(c, i);

		if (ended(c, r) || r->start_us > c->s->config.now_us ||
		    !reservations_owns(c, i, job) || reservations_owns(c, i, claimant))
			continue;
		for (uint32_t a = j->alloc_first; a < j->alloc_first + j->n_allocs; a++)
			if (reservations_has(c, i, &c->s->allocs[a]))
				return true;
	}
	return false;
}

int64_t reservations_taken(const struct cycle *c, uint32_t i)
{
	const struct snap_reservation *r = slice(c, i);
	int64_t n = 0;

	for (uint32_t a = 0; a < c->s->n_allocs; a++) {
		const struct snap_alloc *al = &c->s->allocs[a];

		if (counts_for(c, i, al))
			n += al->n_devices;
	}
	for (uint32_t a = 0; a < c->plan.n_actions; a++) {
		const struct plan_action *act = &c->plan.actions[a];

		for (uint32_t p = 0; act->kind == PLAN_PLACE && p < act->n_pods; p++)
			if (reservations_counts_there(c, r,
						      c->plan.pods[act->pod_first + p].node) &&
			    reservations_admits(c, i, act->job, c->s->config.now_us))
				n += c->plan.pods[act->pod_first + p].n_devices;
	}
	return n;
}

/* Return the part of a node's amount that goes with n of its devices, and no more than is free: a
 * device without cpu and memory is of no use. */
static int64_t goes_with(int64_t has, int64_t free, uint32_t n, uint32_t n_devices)
{
	const int64_t part = has / n_devices * n;

	if (has == GPUQ_UNLIMITED || free == GPUQ_UNLIMITED || free < 0)
		return 0;
	return part < free ? part : free;
}

/* Book devices on a node for a reservation, and the cpu and memory that go with them. */
static void keep(struct cycle *c, uint32_t i, uint32_t node, int64_t start, uint32_t whole)
{
	struct future *f = c->timeline->future;
	struct booked *b = cycle_push(c, &f->booked, &f->n_booked, &f->room_booked, sizeof(*b), 1);
	const struct snap_node *n = &c->s->nodes[node];
	const int64_t cpu = goes_with(n->cpu_milli, f->at.cpu[node], whole, n->n_devices);
	const int64_t memory = goes_with(n->memory_bytes, f->at.memory[node], whole, n->n_devices);

	if (b)
		*b = (struct booked){ .node = node,
				      .job = SNAP_NONE,
				      .reservation = i,
				      .start_us = start,
				      .end_us = slice(c, i)->end_us,
				      .need = { .whole = whole, .cpu = cpu, .memory = memory },
				      .whole = f->by_device ? INT32_MAX
							    : f->least.whole[node] - (int64_t)whole,
				      .cpu = f->least.cpu[node] - cpu,
				      .memory = f->least.memory[node] - memory,
				      .pods = f->least.pods[node] };
	timeline_parts_keep(c, i, node, start, whole);
}

/* Book an amount on the nodes with the most room; once it has begun, only what its owners have not
 * taken yet. */
static void enter_amount(struct cycle *c, uint32_t i)
{
	const struct snap_reservation *r = slice(c, i);
	const int64_t now = c->s->config.now_us;
	const int64_t start = r->start_us > now ? r->start_us : now;
	int64_t left = r->gpus_milli / SNAP_MILLI;

	if (r->start_us <= now)
		left -= reservations_taken(c, i);
	if (left <= 0)
		return;
	timeline_free_at(c, SNAP_NONE, start, &c->timeline->future->at);
	timeline_free_before_amounts(c, SNAP_NONE, start, &c->timeline->future->least);
	/* Among nodes with equal room it does not matter which are used. */
	for (uint32_t room = nodes_max_whole(c); room > 0 && left > 0 && !c->failed; room--)
		for (uint32_t n = 0; n < c->s->n_nodes && left > 0; n++) {
			const uint32_t have = c->timeline->future->at.whole[n];
			const uint32_t whole = (int64_t)have < left ? have : (uint32_t)left;

			if (have != room || !reservations_counts_there(c, r, n) ||
			    !bits_has(c->timeline->future->at.usable, n))
				continue;
			keep(c, i, n, start, whole);
			left -= whole;
		}
}

int64_t reservations_kept(const struct cycle *c, uint32_t i)
{
	const struct future *f = c->timeline->future;
	int64_t n = 0;

	for (uint32_t k = 0; k < f->n_booked; k++)
		n += f->booked[k].reservation == i ? f->booked[k].need.whole : 0;
	return n;
}

uint32_t reservations_open(const struct cycle *c, uint32_t job)
{
	const struct snap_request *r = cycle_request(c, job);
	int64_t devices = 0;

	for (uint32_t g = 0; g < r->n_groups; g++) {
		const struct need one = nodes_need(&r->groups[g]);

		devices += (int64_t)(one.whole + one.parts) * r->groups[g].pods_min;
	}
	for (uint32_t i = 0; i < c->s->n_reservations; i++)
		if (slice(c, i)->start_us <= c->s->config.now_us && !reservations_over(c, i) &&
		    reservations_admits(c, i, job, c->s->config.now_us) &&
		    (!is_amount(slice(c, i)) ||
		     (devices > 0 && devices <= reservations_kept(c, i))))
			return i;
	return SNAP_NONE;
}

bool reservations_holds_places(const struct cycle *c, uint32_t reservation)
{
	const struct snap_reservation *r = slice(c, reservation);

	for (uint32_t i = 0; i < c->places.n_pods; i++) {
		const struct place *p = &c->places.pods[i];

		if (is_amount(r) ? p->n_devices > 0 && !reservations_counts_there(c, r, p->node)
				 : !bits_has(c->timeline->future->slices[reservation], p->node))
			return false;
	}
	return true;
}

void reservations_bar_others(const struct cycle *c, uint32_t reservation, uint64_t *set)
{
	const uint64_t *own = c->timeline->future->slices[reservation];

	for (uint32_t w = 0; !is_amount(slice(c, reservation)) && w < cycle_words(c); w++)
		set[w] |= ~own[w];
}

void reservations_used(struct cycle *c, uint32_t job, uint32_t node, uint32_t whole)
{
	struct future *f = c->timeline->future;

	/* From its own node first, then from any other. */
	for (int here = 1; here >= 0 && whole > 0; here--)
		for (uint32_t i = 0; i < f->n_booked && whole > 0; i++) {
			struct booked *b = &f->booked[i];
			int64_t cpu, memory;
			uint32_t n;

			if (b->reservation == SNAP_NONE || (b->node == node) != here ||
			    slice(c, b->reservation)->start_us > c->s->config.now_us ||
			    !reservations_counts_there(c, slice(c, b->reservation), node) ||
			    !reservations_admits(c, b->reservation, job, c->s->config.now_us))
				continue;
			n = b->need.whole < whole ? b->need.whole : whole;
			if (n == 0)
				continue;
			cpu = b->need.cpu / b->need.whole * n;
			memory = b->need.memory / b->need.whole * n;
			b->need.whole -= n;
			b->need.cpu -= cpu;
			b->need.memory -= memory;
			b->whole += n;
			timeline_parts_used(c, b->reservation, b->node, n);
			b->cpu = amount_sum(b->cpu, cpu);
			b->memory = amount_sum(b->memory, memory);
			whole -= n;
		}
}

/* ---- entering them into the timeline ---- */

/* True if an owner runs on the node that has been there since the node was kept for it. */
static bool used(const struct cycle *c, uint32_t i, uint32_t node)
{
	for (uint32_t a = 0; a < c->s->n_allocs; a++) {
		const struct snap_alloc *al = &c->s->allocs[a];

		if (al->node == node && in_time(slice(c, i), &c->s->jobs[al->job]) &&
		    reservations_owns(c, i, al->job))
			return true;
	}
	return false;
}

/* Enter its nodes; none where everything has been released. */
static void enter_nodes(struct cycle *c, uint32_t i)
{
	const struct snap_reservation *r = slice(c, i);
	const bool less = released(c, r);
	uint64_t *set = cycle_alloc(c, cycle_words(c), sizeof(*set));
	bool any = is_amount(r);

	for (uint32_t k = 0; set && k < r->n_nodes; k++) {
		if (less && !used(c, i, r->nodes[k]))
			continue;
		bits_add(set, r->nodes[k]);
		any = true;
	}
	c->timeline->future->slices[i] = any || !less ? set : NULL;
}

void reservations_enter_nodes(struct cycle *c)
{
	c->timeline->future->slices =
		cycle_alloc(c, c->s->n_reservations, sizeof(*c->timeline->future->slices));
	for (uint32_t i = 0; !c->failed && i < c->s->n_reservations; i++)
		enter_nodes(c, i);
	if (!c->failed)
		reservations_find_ends(c);
}

void reservations_enter_amounts(struct cycle *c)
{
	for (uint32_t i = 0; !c->failed && i < c->s->n_reservations; i++)
		if (is_amount(slice(c, i)) && !reservations_over(c, i))
			enter_amount(c, i);
}

/* ---- beginning ---- */

void reservations_begin(struct cycle *c)
{
	for (uint32_t i = 0; i < c->s->n_reservations; i++) {
		timeline_wake(c, slice(c, i)->start_us);
		if (slice(c, i)->release_us)
			timeline_wake(c,
				      amount_sum(slice(c, i)->start_us, slice(c, i)->release_us));
		timeline_wake(c, slice(c, i)->end_us);
	}
	if (c->s->n_reservations > 0) {
		if (!timeline_look_ahead(c))
			return;
		reservations_clear(c);
		reservations_end(c);
	}
	timeline_starving(c);
}
