#include "gpuqd/sched/timeline/nominated.h"

#include <string.h>

#include "gpuqd/sched/place/devices.h"
#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/timeline/timeline_int.h"
#include "gpuqd/sched/timeline/timeline_pack.h"

/* Nominated placements. A job owns the places of its victims from the moment they are signalled,
 * whatever else might fit there meanwhile: otherwise a third job would take them, and the victims
 * would have been preempted in vain.
 *
 * Nodes can be seen as they are now, where a nominated placement takes what is already free; and as
 * they will be once everything that is ending has ended, where it takes the rest as well. Only the
 * difference of the two is kept. */

struct later {
	uint64_t *nodes; /* with a difference */
	int16_t *device; /* by device: later minus now */
	int64_t *device_memory; /* the same for bytes of its memory */
	int64_t *cpu, *memory; /* by node */
	int32_t *pods, *tenants;
	int64_t *extra; /* as amounts.extra_free */
	uint64_t *opened; /* closed now by an exclusive tenant that is ending */
	uint64_t *owned; /* nominated for an exclusive tenant: closed now and later */
	uint32_t n_leaving; /* pods */
	uint32_t *left; /* those of them that were signalled in earlier cycles: allocs, by job */
	uint32_t n_left;
};

/* Return the table of differences, made when something is ending or nominated for the first time;
 * NULL without memory. */
static struct later *later_of(struct cycle *c)
{
	const uint32_t n = c->s->n_nodes;
	struct later *l;

	if (c->timeline->later)
		return c->timeline->later;
	l = cycle_alloc(c, 1, sizeof(*l));
	if (!l)
		return NULL;
	l->nodes = cycle_alloc(c, cycle_words(c), sizeof(*l->nodes));
	l->opened = cycle_alloc(c, cycle_words(c), sizeof(*l->opened));
	l->owned = cycle_alloc(c, cycle_words(c), sizeof(*l->owned));
	l->device = cycle_alloc(c, c->s->n_devices, sizeof(*l->device));
	l->device_memory = cycle_alloc(c, c->s->n_devices, sizeof(*l->device_memory));
	l->cpu = cycle_alloc(c, n, sizeof(*l->cpu));
	l->memory = cycle_alloc(c, n, sizeof(*l->memory));
	l->pods = cycle_alloc(c, n, sizeof(*l->pods));
	l->tenants = cycle_alloc(c, n, sizeof(*l->tenants));
	l->extra = cycle_alloc(c, (size_t)n * c->s->n_extras, sizeof(*l->extra));
	if (c->failed)
		return NULL;
	c->timeline->later = l;
	return l;
}

/* Add the differences of a node to its current state (sign 1), or subtract them again (-1). */
static void shift_node(struct cycle *c, uint32_t node, int sign)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct later *l = c->timeline->later;
	const struct snap_node *n = &c->s->nodes[node];

	nodes_change(c, node);
	for (uint32_t d = n->device_first; d < n->device_first + n->n_devices; d++) {
		avail->device_free[d] = (int16_t)(avail->device_free[d] + sign * l->device[d]);
		avail->device_memory[d] += sign * l->device_memory[d];
	}
	for (uint32_t m = node * c->s->n_extras; m < (node + 1) * c->s->n_extras; m++)
		avail->extra_free[m] += sign * l->extra[m];
	if (avail->cpu[node] != GPUQ_UNLIMITED)
		avail->cpu[node] += sign * l->cpu[node];
	if (avail->memory[node] != GPUQ_UNLIMITED)
		avail->memory[node] += sign * l->memory[node];
	if (avail->pods[node] != GPUQ_UNLIMITED)
		avail->pods[node] += sign * l->pods[node];
	avail->tenants[node] = (uint16_t)(avail->tenants[node] + sign * l->tenants[node]);
	if (avail->tenants[node] == 0)
		bits_add(avail->vacant, node);
	else
		bits_del(avail->vacant, node);
	/* An exclusive tenant that is ending opens its node, unless another one was nominated for
	 * it. */
	if (bits_has(l->opened, node) && !bits_has(l->owned, node) &&
	    bits_has(nodes_ready(c), node)) {
		if (sign > 0)
			bits_add(avail->usable, node);
		else
			bits_del(avail->usable, node);
	}
	nodes_changed(c, node);
}

/* Only nodes with a difference are visited. */
static void shift_all(struct cycle *c, int sign)
{
	for (uint32_t w = 0; c->timeline->later && w < cycle_words(c); w++)
		for (uint64_t word = c->timeline->later->nodes[w]; word;)
			shift_node(c, bits_pop(&word, w * 64), sign);
}

void nominated_later_enter(struct cycle *c)
{
	shift_all(c, 1);
	c->in_later = true;
}

void nominated_later_leave(struct cycle *c)
{
	shift_all(c, -1);
	c->in_later = false;
}

int64_t nominated_later_free_milli(struct cycle *c, uint32_t flavor)
{
	const struct amounts *avail = nodes_amounts(c);
	const uint64_t *of;
	int64_t sum = 0;

	if (flavor == SNAP_NONE)
		return 0;
	/* Only an action changes the sum. */
	if (c->timeline->free_counted[flavor] == c->plan.n_actions + 1)
		return c->timeline->free_milli[flavor];
	of = nodes_of_flavor(c, flavor);
	for (uint32_t w = 0; w < cycle_words(c); w++)
		for (uint64_t word = of[w] & avail->usable[w]; word;) {
			const struct snap_node *n = &c->s->nodes[bits_pop(&word, w * 64)];

			for (uint32_t d = n->device_first; d < n->device_first + n->n_devices; d++)
				if (avail->device_free[d] > 0)
					sum += avail->device_free[d];
		}
	c->timeline->free_counted[flavor] = c->plan.n_actions + 1;
	return c->timeline->free_milli[flavor] = sum;
}

bool nominated_later_differs(const struct cycle *c)
{
	return c->timeline->later && c->timeline->later->n_leaving > 0;
}

void nominated_later_pod_leaves(struct cycle *c, const struct snap_alloc *a)
{
	const struct snap_node *n = &c->s->nodes[a->node];
	const struct snap_request *r = cycle_request(c, a->job);
	const struct snap_group *g = snap_group_of(c->s, a);
	struct later *l = later_of(c);

	if (!l)
		return;
	bits_add(l->nodes, a->node);
	for (uint32_t k = 0; !a->stays && k < a->n_devices; k++) {
		const uint32_t d = n->device_first + a->devices[k];

		/* Devices that disappeared or are unhealthy will not be free either. */
		if (a->devices[k] >= n->n_devices || !c->s->devices[d].healthy)
			continue;
		l->device[d] = (int16_t)(l->device[d] + a->milli);
		l->device_memory[d] += devices_bytes(c, d, a->milli, g->gpu_memory_bytes);
	}
	for (uint32_t k = 0; k < g->n_takes; k++)
		l->extra[(size_t)a->node * c->s->n_extras + g->takes[k].extra] += g->takes[k].n;
	l->cpu[a->node] += g->cpu_milli;
	l->memory[a->node] += g->memory_bytes;
	l->pods[a->node]++;
	l->tenants[a->node]--;
	if (r->exclusive)
		bits_add(l->opened, a->node);
	l->n_leaving++;
}

/* Take an amount from what is free now; the rest is taken later. */
static void owe(int64_t *now, int64_t *later, int64_t amount)
{
	const int64_t taken = *now < 0 ? 0 : *now < amount ? *now : amount;

	if (*now == GPUQ_UNLIMITED)
		return;
	*now -= taken;
	*later -= amount - taken;
}

/* Take the amounts of a nominated pod: as far as they are free from now on, the rest once its
 * victims have ended. No other job can start there meanwhile. */
static void promise_pod(struct cycle *c, uint32_t node, const struct snap_group *g,
			const uint32_t *devices, uint32_t n_devices, int32_t milli, bool exclusive)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct snap_node *n = &c->s->nodes[node];
	struct later *l = later_of(c);
	int64_t pods;

	if (!l)
		return;
	bits_add(l->nodes, node);
	nodes_change(c, node);
	for (uint32_t k = 0; k < n_devices; k++) {
		const uint32_t d = n->device_first + devices[k];
		const int16_t free_milli = avail->device_free[d] > 0 ? avail->device_free[d] : 0;
		const int16_t taken = free_milli < milli ? free_milli : (int16_t)milli;

		avail->device_free[d] = (int16_t)(avail->device_free[d] - taken);
		l->device[d] = (int16_t)(l->device[d] - (milli - taken));
		owe(&avail->device_memory[d], &l->device_memory[d],
		    devices_bytes(c, d, milli, g->gpu_memory_bytes));
	}
	for (uint32_t k = 0; k < g->n_takes; k++) {
		const size_t x = (size_t)node * c->s->n_extras + g->takes[k].extra;

		owe(&avail->extra_free[x], &l->extra[x], g->takes[k].n);
	}
	owe(&avail->cpu[node], &l->cpu[node], g->cpu_milli);
	owe(&avail->memory[node], &l->memory[node], g->memory_bytes);
	pods = l->pods[node];
	owe(&avail->pods[node], &pods, 1);
	l->pods[node] = (int32_t)pods;
	avail->tenants[node]++;
	bits_del(avail->vacant, node);
	if (exclusive) {
		bits_del(avail->usable, node);
		bits_add(l->owned, node);
	}
	nodes_changed(c, node);
}

void nominated_places(struct cycle *c, uint32_t job)
{
	const struct snap_request *r = cycle_request(c, job);

	for (uint32_t i = 0; i < c->places.n_pods; i++) {
		const struct place *p = &c->places.pods[i];
		/* The table exists only if some pod ever took a device. */
		const uint32_t *devices = p->n_devices ? c->places.devices + p->device_first : NULL;

		promise_pod(c, p->node, &r->groups[p->group], devices, p->n_devices, p->milli,
			    r->exclusive);
	}
}

/* ---- nominated placements of earlier cycles ---- */

/* True if it can still be kept: the node may be gone, a device unhealthy, the job held. */
static bool tenable(const struct cycle *c, const struct snap_job *j)
{
	for (uint32_t i = j->promise_first; i < j->promise_first + j->n_promises; i++) {
		const struct snap_alloc *p = &c->s->promises[i];
		const struct snap_node *n = &c->s->nodes[p->node];

		if (!bits_has(nodes_ready(c), p->node))
			return false;
		for (uint32_t k = 0; k < p->n_devices; k++)
			if (p->devices[k] >= n->n_devices ||
			    !c->s->devices[n->device_first + p->devices[k]].healthy)
				return false;
	}
	return j->state == SNAP_LEAVING ||
	       (j->state == SNAP_PENDING && !j->held && j->gate == GPUQ_R_NONE);
}

void nominated_init(struct cycle *c)
{
	const struct snapshot *s = c->s;

	c->timeline = cycle_alloc(c, 1, sizeof(*c->timeline));
	if (!c->timeline)
		return;
	c->timeline->free_milli = cycle_alloc(c, s->n_flavors, sizeof(*c->timeline->free_milli));
	c->timeline->free_counted =
		cycle_alloc(c, s->n_flavors, sizeof(*c->timeline->free_counted));
	c->promised = cycle_alloc(c, bits_words(s->n_jobs), sizeof(*c->promised));
	for (uint32_t i = 0; !c->failed && i < s->n_allocs; i++) {
		if (!s->allocs[i].releasing && s->jobs[s->allocs[i].job].state != SNAP_LEAVING)
			continue;
		nominated_later_pod_leaves(c, &s->allocs[i]);
		if (c->timeline->later && !c->timeline->later->left)
			c->timeline->later->left =
				cycle_alloc(c, s->n_allocs - i, sizeof(*c->timeline->later->left));
		if (!c->failed)
			c->timeline->later->left[c->timeline->later->n_left++] = i;
	}
	for (uint32_t k = 0; !c->failed && s->n_promises && k < s->lines.n_busy; k++) {
		const uint32_t i = s->lines.busy[k];

		if (s->jobs[i].n_promises && tenable(c, &s->jobs[i]))
			bits_add(c->promised, i);
	}
}

/* Add an action for the job to the plan; NULL without memory. */
static struct plan_action *action(struct cycle *c, uint32_t job, enum plan_kind kind)
{
	struct plan_action *a = PLAN_PUSH(c, actions, 1);

	if (a)
		*a = (struct plan_action){ .kind = kind,
					   .job = job,
					   .request = cycle_request_ix(c, job),
					   .key = c->s->jobs[job].key,
					   .flavor = SNAP_NONE,
					   .start_us = c->s->config.now_us,
					   .claimant = SNAP_NONE };
	return a;
}

/* Take the places nominated for the job, if all of them are free; false: they are not. */
static bool take_all(struct cycle *c, const struct snap_job *j)
{
	for (uint32_t i = 0; i < j->n_promises; i++) {
		if (nodes_hold(c, &c->s->promises[j->promise_first + i]))
			continue;
		/* Undo those taken: a gang starts as a whole or not at all. */
		while (i-- > 0)
			nodes_shift(c, &c->s->promises[j->promise_first + i], 1);
		return false;
	}
	return true;
}

/* Start the job on its nominated places, which were taken by take_all(). */
static void start(struct cycle *c, uint32_t job)
{
	const struct snap_job *j = &c->s->jobs[job];
	struct plan_action *a = action(c, job, PLAN_PLACE);
	struct plan_pod *pods = PLAN_PUSH(c, pods, j->n_promises);

	if (!a || !pods)
		return;
	a->pod_first = c->plan.n_pods - j->n_promises;
	a->n_pods = j->n_promises;
	a->walltime_us = timeline_given_us(c, job);
	for (uint32_t i = 0; i < j->n_promises; i++) {
		const struct snap_alloc *p = &c->s->promises[j->promise_first + i];
		const uint32_t device_first = c->plan.n_devices;
		uint32_t *devices = PLAN_PUSH(c, devices, p->n_devices);

		if (!devices)
			return;
		if (p->n_devices)
			memcpy(devices, p->devices, p->n_devices * sizeof(*devices));
		pods[i] = (struct plan_pod){ .group = p->group,
					     .index = p->index,
					     .node = p->node,
					     .device_first = device_first,
					     .n_devices = p->n_devices,
					     .milli = p->n_devices ? p->milli : 0 };
		if (p->n_devices || a->flavor == SNAP_NONE)
			a->flavor = c->s->requests[j->request].gpus_milli
					    ? c->s->nodes[p->node].flavor
					    : SNAP_NONE;
	}
	c->plan.started[job] = 1;
	timeline_started(c, a);
}

/* Report how many ending jobs are on the nodes of its places, and the first of them. */
static void tell_waiting(struct cycle *c, uint32_t job)
{
	const struct snapshot *s = c->s;
	const struct snap_job *j = &s->jobs[job];
	struct plan_reason *why = PLAN_PUSH(c, reasons, 1);
	uint32_t first = SNAP_NONE, last = SNAP_NONE;
	char key[32];

	if (!why)
		return;
	*why = (struct plan_reason){ .code = GPUQ_R_VICTIMS, .object = "" };
	for (uint32_t i = 0; c->timeline->later && i < c->timeline->later->n_left; i++) {
		const struct snap_alloc *a = &s->allocs[c->timeline->later->left[i]];
		bool there = false;

		/* Pods are listed job by job, so comparing with the last one counts each job once. */
		if (a->job == last)
			continue;
		for (uint32_t p = 0; !there && p < j->n_promises; p++)
			there = s->promises[j->promise_first + p].node == a->node;
		if (!there)
			continue;
		last = a->job;
		first = first == SNAP_NONE ? last : first;
		why->need++;
	}
	if (first != SNAP_NONE)
		why->object = gpuq_arena_strdup(
			c->mem, plan_key_print(s->jobs[first].key, key, sizeof(key)));
	if (!why->object)
		c->failed = true;
	c->plan.why_of_job[job] = (struct plan_why){ c->plan.n_reasons - 1, 1 };
}

void nominated_serve(struct cycle *c)
{
	const struct snapshot *s = c->s;

	for (uint32_t k = 0; !c->failed && s->n_promises && k < s->lines.n_busy; k++) {
		const uint32_t i = s->lines.busy[k];
		const struct snap_job *j = &s->jobs[i];

		if (j->n_promises == 0)
			continue;
		/* It cannot be kept: the job returns to the queue. */
		if (!bits_has(c->promised, i)) {
			action(c, i, PLAN_RELEASE);
			continue;
		}
		/* A job that is being relocated starts when it has ended at its old places. */
		if (j->state == SNAP_PENDING && take_all(c, j)) {
			start(c, i);
			continue;
		}
		for (uint32_t p = j->promise_first; p < j->promise_first + j->n_promises; p++)
			promise_pod(c, s->promises[p].node, snap_group_of(c->s, &s->promises[p]),
				    s->promises[p].devices, s->promises[p].n_devices,
				    s->promises[p].milli, s->requests[j->request].exclusive);
		if (j->state == SNAP_PENDING)
			tell_waiting(c, i);
	}
}
