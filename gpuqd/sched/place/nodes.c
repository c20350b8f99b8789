#include "gpuqd/sched/place/nodes.h"

#include "gpuqd/sched/place/devices.h"
#include "gpuqd/sched/place/nodes_int.h"
#include "gpuqd/sched/place/pack_int.h"
#include "gpuqd/sched/place/score.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/sched/quota/cycle.h"

#include "libgpuq/limits.h"

#include <string.h>

/* Return an empty set of nodes; NULL, and `failed` is set, without memory. */
static uint64_t *new_set(struct cycle *c)
{
	return cycle_alloc(c, c->nodes->n_words, sizeof(uint64_t));
}

/* Add a usable node to the bucket of its current number of free whole devices. Most buckets of a
 * large cluster stay empty, so a set is allocated when its first node arrives. */
static void bucket_add(struct cycle *c, uint32_t node)
{
	struct nodes *nodes = c->nodes;
	struct bucket *b = &nodes->now.buckets[nodes->now.whole[node]];

	if (!b->set)
		b->set = new_set(c);
	if (!b->set)
		return;
	bits_add(b->set, node);
	b->n++;
	b->from = node / 64 < b->from ? node / 64 : b->from;
}

/* Remove a node from its bucket; `whole` must still have the value it was added with. `from` is
 * left as it is: it is a lower bound, and remains one. */
static void bucket_del(struct cycle *c, uint32_t node)
{
	struct nodes *nodes = c->nodes;
	struct bucket *b = &nodes->now.buckets[nodes->now.whole[node]];

	if (!b->set)
		return;
	bits_del(b->set, node);
	b->n--;
}

/* Recount the node's devices after they changed. */
static void count_devices(struct cycle *c, uint32_t node)
{
	struct nodes *nodes = c->nodes;
	const struct snap_node *n = &c->s->nodes[node];
	const int16_t *free_milli = &nodes->now.device_free[n->device_first];
	const struct snap_device *devices = &c->s->devices[n->device_first];
	uint16_t whole = 0;
	bool parted = false;

	for (uint32_t d = 0; d < n->n_devices; d++) {
		const bool is_whole = snap_is_whole(&devices[d], free_milli[d]);

		whole += is_whole;
		parted |= !is_whole && free_milli[d] > 0;
	}
	/* A device that is offered in replicas is never to be had whole. */
	if (n->replicas > 1) {
		parted |= whole > 0;
		whole = 0;
	}
	if (parted)
		bits_add(nodes->now.parted, node);
	else
		bits_del(nodes->now.parted, node);
	/* Devices withheld for start reservations are free, but do not count as available. */
	nodes->now.whole[node] =
		whole > nodes->now.withheld[node] ? whole - nodes->now.withheld[node] : 0;
}

/* Measure cpu and memory per device over all usable nodes with devices: what a node should keep for
 * each device that stays free. Per 1024 devices, for precision. */
static void measure_balance(struct cycle *c)
{
	struct nodes *nodes = c->nodes;
	int64_t cpu = 0, mib = 0, cpu_devices = 0, mib_devices = 0;

	for (uint32_t i = 0; i < c->s->n_nodes; i++) {
		const struct snap_node *n = &c->s->nodes[i];

		if (n->n_devices == 0 || !bits_has(nodes->ready, i))
			continue;
		if (n->cpu_milli != GPUQ_UNLIMITED) {
			cpu = amount_sum(cpu, n->cpu_milli);
			cpu_devices += n->n_devices;
		}
		if (n->memory_bytes != GPUQ_UNLIMITED) {
			mib = amount_sum(mib, n->memory_bytes >> 20);
			mib_devices += n->n_devices;
		}
	}
	nodes->cpu_per_device = cpu_devices ? amount_times(cpu / cpu_devices, 1024) : 0;
	nodes->mib_per_device = mib_devices ? amount_times(mib / mib_devices, 1024) : 0;
}

/* Count the pods on each node. A pod of an exclusive job closes its node to all others. */
static void seat_tenants(struct cycle *c)
{
	struct nodes *nodes = c->nodes;
	const struct snapshot *s = c->s;

	for (uint32_t i = 0; i < s->n_allocs; i++) {
		const struct snap_alloc *a = &s->allocs[i];

		nodes->now.tenants[a->node]++;
		bits_del(nodes->now.vacant, a->node);
		if (s->requests[s->jobs[a->job].request].exclusive)
			bits_del(nodes->now.usable, a->node);
	}
}

void nodes_init(struct cycle *c)
{
	const struct snapshot *s = c->s;
	const uint32_t n = s->n_nodes;

	c->nodes = cycle_alloc(c, 1, sizeof(*c->nodes));
	if (!c->nodes)
		return;
	c->nodes->n_words = bits_words(n);
	c->nodes->now.cpu = cycle_alloc(c, n, sizeof(*c->nodes->now.cpu));
	c->nodes->now.memory = cycle_alloc(c, n, sizeof(*c->nodes->now.memory));
	c->nodes->now.pods = cycle_alloc(c, n, sizeof(*c->nodes->now.pods));
	c->nodes->now.whole = cycle_alloc(c, n, sizeof(*c->nodes->now.whole));
	c->nodes->now.withheld = cycle_alloc(c, n, sizeof(*c->nodes->now.withheld));
	c->nodes->now.tenants = cycle_alloc(c, n, sizeof(*c->nodes->now.tenants));
	c->nodes->now.device_free =
		cycle_alloc(c, s->n_devices, sizeof(*c->nodes->now.device_free));
	c->nodes->now.device_memory =
		cycle_alloc(c, s->n_devices, sizeof(*c->nodes->now.device_memory));
	c->nodes->now.extra_free =
		cycle_alloc(c, (size_t)n * s->n_extras, sizeof(*c->nodes->now.extra_free));
	c->nodes->now.usable = new_set(c);
	c->nodes->ready = new_set(c);
	c->nodes->now.parted = new_set(c);
	c->nodes->gpuless = new_set(c);
	c->nodes->migs = new_set(c);
	c->nodes->now.vacant = new_set(c);
	c->nodes->links = cycle_alloc(c, s->n_joints, sizeof(*c->nodes->links));
	c->nodes->flavors = cycle_alloc(c, s->n_flavors, sizeof(*c->nodes->flavors));
	for (uint32_t f = 0; !c->failed && f < s->n_flavors; f++)
		c->nodes->flavors[f] = new_set(c);
	if (c->failed)
		return;
	for (uint32_t d = 0; d < s->n_devices; d++) {
		c->nodes->now.device_free[d] = s->devices[d].free_milli;
		c->nodes->now.device_memory[d] = s->devices[d].free_memory_bytes;
	}
	for (size_t m = 0; m < (size_t)n * s->n_extras; m++)
		c->nodes->now.extra_free[m] = s->extra_free[m];
	for (uint32_t i = 0; i < n; i++) {
		const struct snap_node *node = &s->nodes[i];

		c->nodes->now.cpu[i] = node->cpu_free;
		c->nodes->now.memory[i] = node->memory_free;
		c->nodes->now.pods[i] = node->pods_free;
		if (node->n_devices > c->nodes->max_whole)
			c->nodes->max_whole = node->n_devices;
		if (node->state == SNAP_READY) {
			bits_add(c->nodes->ready, i);
			bits_add(c->nodes->now.usable, i);
		}
		/* Every node is vacant until seat_tenants() has seen its pods. */
		bits_add(c->nodes->now.vacant, i);
		if (node->n_mig)
			bits_add(c->nodes->migs, i);
		else if (node->n_devices == 0)
			bits_add(c->nodes->gpuless, i);
		if (node->flavor != SNAP_NONE)
			bits_add(c->nodes->flavors[node->flavor], i);
		count_devices(c, i);
	}
	seat_tenants(c);
	measure_balance(c);
	/* Only now is the largest number of devices known, and which nodes are usable. */
	c->nodes->now.buckets =
		cycle_alloc(c, c->nodes->max_whole + 1, sizeof(*c->nodes->now.buckets));
	if (!c->failed)
		nodes_fill_buckets(c);
}

void nodes_fill_buckets(struct cycle *c)
{
	struct nodes *nodes = c->nodes;

	for (uint32_t f = 0; f <= nodes->max_whole; f++) {
		if (nodes->now.buckets[f].set)
			memset(nodes->now.buckets[f].set, 0, nodes->n_words * sizeof(uint64_t));
		nodes->now.buckets[f].n = nodes->now.buckets[f].from = 0;
	}
	for (uint32_t i = 0; !c->failed && i < c->s->n_nodes; i++)
		if (bits_has(nodes->now.usable, i))
			bucket_add(c, i);
}

void nodes_open(struct cycle *c, uint32_t node, bool on)
{
	if (on) {
		bits_add(c->nodes->now.usable, node);
		bucket_add(c, node);
	} else {
		bucket_del(c, node);
		bits_del(c->nodes->now.usable, node);
	}
}

void nodes_copy(const struct cycle *c, struct amounts *to)
{
	const struct amounts *now = &c->nodes->now;
	const size_t n = c->s->n_nodes, d = c->s->n_devices,
		     set = c->nodes->n_words * sizeof(uint64_t);

	memcpy(to->cpu, now->cpu, n * sizeof(*to->cpu));
	memcpy(to->memory, now->memory, n * sizeof(*to->memory));
	memcpy(to->pods, now->pods, n * sizeof(*to->pods));
	memcpy(to->whole, now->whole, n * sizeof(*to->whole));
	memcpy(to->tenants, now->tenants, n * sizeof(*to->tenants));
	memcpy(to->withheld, now->withheld, n * sizeof(*to->withheld));
	memcpy(to->usable, now->usable, set);
	memcpy(to->vacant, now->vacant, set);
	memcpy(to->parted, now->parted, set);
	if (c->s->n_extras)
		memcpy(to->extra_free, now->extra_free,
		       n * c->s->n_extras * sizeof(*to->extra_free));
	memcpy(to->device_free, now->device_free, d * sizeof(*to->device_free));
	memcpy(to->device_memory, now->device_memory, d * sizeof(*to->device_memory));
}

struct amounts *nodes_amounts(const struct cycle *c)
{
	return &c->nodes->now;
}

/* Tables by device and by profile are large, and needed only where some request names parts or
 * instances; without them nodes_swap() lends the current ones. */
struct amounts nodes_amounts_new(struct cycle *c, bool by_device, bool by_extra)
{
	const uint32_t n = c->s->n_nodes, d = by_device ? c->s->n_devices : 0;
	const size_t n_slots = (size_t)n * c->s->n_extras;

	return (struct amounts){
		.cpu = cycle_alloc(c, n, sizeof(int64_t)),
		.memory = cycle_alloc(c, n, sizeof(int64_t)),
		.pods = cycle_alloc(c, n, sizeof(int64_t)),
		.whole = cycle_alloc(c, n, sizeof(uint16_t)),
		.tenants = cycle_alloc(c, n, sizeof(uint16_t)),
		.usable = new_set(c),
		.vacant = new_set(c),
		.buckets = cycle_alloc(c, c->nodes->max_whole + 1, sizeof(struct bucket)),
		.device_free = by_device ? cycle_alloc(c, d, sizeof(int16_t)) : NULL,
		.device_memory = by_device ? cycle_alloc(c, d, sizeof(int64_t)) : NULL,
		.parted = by_device ? new_set(c) : NULL,
		.withheld = by_device ? cycle_alloc(c, n, sizeof(uint16_t)) : NULL,
		.extra_free = by_extra ? cycle_alloc(c, n_slots, sizeof(int64_t)) : NULL,
	};
}

void nodes_swap(struct cycle *c, struct amounts *a)
{
	struct nodes *nodes = c->nodes;
	struct amounts *now = &nodes->now;
	const struct amounts was = *now;
	const bool by_device = a->device_free, by_extra = a->extra_free;

	*now = *a;
	*a = was;
	/* A moment without tables of its own shares those of the present; nodes.counting tells
	 * nodes_take() to leave them alone. */
	if (!by_device) {
		now->device_free = was.device_free;
		now->device_memory = was.device_memory;
		now->parted = was.parted;
		now->withheld = was.withheld;
		a->device_free = NULL;
		a->device_memory = NULL;
		a->parted = NULL;
		a->withheld = NULL;
	}
	if (!by_extra) {
		now->extra_free = was.extra_free;
		a->extra_free = NULL;
	}
	nodes->planning = !nodes->planning;
	nodes->counting = nodes->planning && !by_device;
}

const uint64_t *nodes_ready(const struct cycle *c)
{
	return c->nodes->ready;
}

const uint64_t *nodes_of_flavor(const struct cycle *c, uint32_t flavor)
{
	return c->nodes->flavors[flavor];
}

uint32_t nodes_max_whole(const struct cycle *c)
{
	return c->nodes->max_whole;
}

/* The node leaves its bucket before `whole` changes, and joins the new one afterwards: the bucket
 * is found by `whole`. */
void nodes_change(struct cycle *c, uint32_t node)
{
	if (bits_has(c->nodes->now.usable, node))
		bucket_del(c, node);
}

void nodes_changed(struct cycle *c, uint32_t node)
{
	count_devices(c, node);
	if (bits_has(c->nodes->now.usable, node))
		bucket_add(c, node);
	score_touch(c, node);
}

/* Return the whole devices in an amount; a request beyond the range fits nowhere, so it may be
 * capped. */
static uint32_t devices_of(int64_t milli)
{
	return milli / SNAP_MILLI < UINT32_MAX ? (uint32_t)(milli / SNAP_MILLI) : UINT32_MAX;
}

struct need nodes_need(const struct snap_group *g)
{
	struct need n = {
		.profile = SNAP_NONE,
		.takes = g->takes,
		.n_takes = g->n_takes,
		.cpu = g->cpu_milli,
		.memory = g->memory_bytes,
		.pods = 1,
	};

	if (g->mig) {
		n.migs = devices_of(g->gpus_milli);
		n.profile = g->profile;
		return n;
	}
	n.parts = snap_group_parts(g);
	if (n.parts) {
		n.part = snap_group_part(g);
		n.part_memory = g->gpu_memory_bytes;
		n.part_least = g->gpu_memory_least;
	} else {
		n.whole = devices_of(g->gpus_milli);
	}
	return n;
}

struct need nodes_need_of(const struct snapshot *s, const struct snap_alloc *a)
{
	struct need n = nodes_need(snap_group_of(s, a));

	if (a->shares)
		n.whole = a->n_devices;
	return n;
}

/* Return the product; what exceeds the range fits on no node, so the maximum stands for it. */
static uint32_t many(uint32_t one, uint32_t n)
{
	const uint64_t all = (uint64_t)one * n;

	return all < UINT32_MAX ? (uint32_t)all : UINT32_MAX;
}

struct need nodes_need_times(const struct need *one, uint32_t n)
{
	struct need out = *one;

	/* Parts stay those of one pod: whether several fit depends on the devices, not on a sum. */
	out.whole = many(one->whole, n);
	out.migs = many(one->migs, n);
	out.cpu = amount_times(one->cpu, n);
	out.memory = amount_times(one->memory, n);
	out.pods = n;
	return out;
}

/* Return how often `one` goes into `free`; GPUQ_UNLIMITED and 0 are not counted. */
static uint32_t times(int64_t free, int64_t one, uint32_t max)
{
	if (free == GPUQ_UNLIMITED || one == 0)
		return max;
	if (free < one)
		return 0;
	return free / one < max ? (uint32_t)(free / one) : max;
}

/* Return how many such pods the countable resources of a node allow, 0..max. More may be in use
 * than the node reports, which counts as nothing free. */
static uint32_t extras_room(const struct cycle *c, uint32_t node, const struct need *one,
			    const int64_t *table, uint32_t max)
{
	const int64_t *have = table + (size_t)node * c->s->n_extras;

	for (uint32_t i = 0; max && i < one->n_takes; i++)
		max = times(have[one->takes[i].extra], amount_times(one->takes[i].n, one->pods),
			    max);
	return max;
}

/* Take (sign -1) or release (1) what a pod takes of countable resources. */
static void shift_extras(struct cycle *c, uint32_t node, const struct snap_take *takes, uint32_t n,
			 int sign)
{
	int64_t *have = c->nodes->now.extra_free + (size_t)node * c->s->n_extras;

	for (uint32_t i = 0; i < n; i++)
		have[takes[i].extra] += sign * takes[i].n;
}

uint32_t nodes_room(const struct cycle *c, uint32_t node, const struct need *one, uint32_t max)
{
	struct nodes *nodes = c->nodes;

	/* Amounts come first: they are cheap, and devices need not be examined where one is
	 * exhausted. */
	max = times(nodes->now.cpu[node], one->cpu, max);
	max = times(nodes->now.memory[node], one->memory, max);
	max = times(nodes->now.pods[node], one->pods, max);
	if (one->whole)
		max = times(nodes->now.whole[node], one->whole, max);
	if (one->n_takes && max)
		max = extras_room(c, node, one, nodes->now.extra_free, max);
	if (one->parts && max)
		max = devices_room(c, node, one, max);
	return max;
}

/* As devices_room with nothing on the devices. */
static uint32_t parts_empty(const struct cycle *c, uint32_t node, const struct need *one,
			    uint32_t max)
{
	const struct snap_node *n = &c->s->nodes[node];
	const int32_t part = devices_part(c, node, one);
	int64_t each;

	if (part > SNAP_MILLI || n->n_parts < one->parts)
		return 0;
	each = times(n->device_memory_bytes,
		     one->part_memory ? snap_memory_up(one->part_memory, n->unit_bytes)
		     : n->unit_bytes ? snap_memory_down(n->device_memory_bytes, part, n->unit_bytes)
				     : 0,
		     SNAP_MILLI / (uint32_t)part);
	return times((int64_t)n->n_parts * each, one->parts, max);
}

uint32_t nodes_room_empty(const struct cycle *c, uint32_t node, const struct need *one,
			  uint32_t max)
{
	const struct snap_node *n = &c->s->nodes[node];

	max = times(n->cpu_milli, one->cpu, max);
	max = times(n->memory_bytes, one->memory, max);
	max = times(n->pods, one->pods, max);
	if (one->whole)
		max = times(n->replicas > 1 ? 0 : n->n_whole, one->whole, max);
	if (one->n_takes)
		max = extras_room(c, node, one, c->s->extra_total, max);
	if (one->parts && max)
		max = parts_empty(c, node, one, max);
	return max;
}

/* Note that the current place has device d of its node, and take milli from it. */
static void take_device(struct cycle *c, struct place *p, uint32_t d, int32_t milli, int64_t asked)
{
	uint32_t *at = CYCLE_PUSH(c, &c->places, devices, 1);

	if (!at)
		return;
	*at = d;
	p->n_devices++;
	devices_shift(c, c->s->nodes[p->node].device_first + d, milli, asked, -1);
}

/* True if the device (numbered over all nodes) can be had whole now. */
static bool is_whole(const struct cycle *c, uint32_t device)
{
	return snap_is_whole(&c->s->devices[device], c->nodes->now.device_free[device]);
}

/* Return the devices of a node for a pod that requests this many: the lowest, unless their links are
 * known. As a mask of the first LINKS_DEVICES_MAX; all = any will do. */
static uint64_t joined_best(struct cycle *c, uint32_t node, uint32_t whole)
{
	struct nodes *nodes = c->nodes;
	const struct snap_node *n = &c->s->nodes[node];
	const struct snap_joint *joint;
	uint64_t free = 0;

	/* Links matter for actual starts, not for places in a plan. */
	if (n->joint == SNAP_NONE || whole == 0 || nodes->planning)
		return UINT64_MAX;
	joint = &c->s->joints[n->joint];
	/* Nodes with the same links share one table, made when it is first needed. */
	if (!nodes->links[n->joint].n_devices &&
	    !links_init(&nodes->links[n->joint], c->mem, joint->n_devices, joint->links,
			joint->numa))
		c->failed = true;
	for (uint32_t d = 0; d < n->n_devices; d++)
		if (is_whole(c, n->device_first + d))
			free |= UINT64_C(1) << d;
	return c->failed ? UINT64_MAX : links_choose(&nodes->links[n->joint], free, whole);
}

/* Sort the devices in ascending order, as they are named. */
static void sort_devices(uint32_t *devices, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		const uint32_t d = devices[i];
		uint32_t at = i;

		for (; at > 0 && devices[at - 1] > d; at--)
			devices[at] = devices[at - 1];
		devices[at] = d;
	}
}

/* Take parts of devices, each of a different device. */
static void take_parts(struct cycle *c, struct place *p, const struct need *one)
{
	struct pack *packing = c->pack;
	const int32_t part = devices_part(c, p->node, one);

	p->milli = part;
	for (uint32_t i = 0; i < one->parts; i++) {
		uint32_t d;

		packing->part_cpu = one->cpu;
		if (packing->policy == PACK_FGD)
			d = (uint32_t)score_fgd_device(c, p->node, part);
		else
			d = devices_pick(c, p->node, one,
					 i ? c->places.devices + p->device_first : NULL, i);
		if (d != SNAP_NONE)
			take_device(c, p, d, part, one->part_memory);
	}
	if (p->n_devices > 1)
		sort_devices(c->places.devices + p->device_first, p->n_devices);
}

void nodes_take(struct cycle *c, uint32_t node, const struct need *one, uint32_t group,
		uint32_t index)
{
	struct nodes *nodes = c->nodes;
	const struct snap_node *n = &c->s->nodes[node];
	const uint64_t best = joined_best(c, node, one->whole);
	struct place *p = CYCLE_PUSH(c, &c->places, pods, 1);

	if (!p)
		return;
	*p = (struct place){
		.group = group,
		.index = index,
		.node = node,
		.device_first = c->places.n_devices,
		.milli = one->whole ? SNAP_MILLI : 0,
	};
	nodes_change(c, node);
	/* With devices only counted, the number alone changes; otherwise count_devices() derives it
	 * from the devices taken. */
	if (nodes->counting)
		nodes->now.whole[node] = (uint16_t)(nodes->now.whole[node] - one->whole);
	if (!nodes->counting && one->parts)
		take_parts(c, p, one);
	shift_extras(c, node, one->takes, one->n_takes, -1);
	for (uint32_t d = 0; !nodes->counting && d < n->n_devices && p->n_devices < one->whole; d++)
		if (is_whole(c, n->device_first + d) && (best == UINT64_MAX || best >> d & 1))
			take_device(c, p, d, SNAP_MILLI, 0);
	if (nodes->now.cpu[node] != GPUQ_UNLIMITED)
		nodes->now.cpu[node] -= one->cpu;
	if (nodes->now.memory[node] != GPUQ_UNLIMITED)
		nodes->now.memory[node] -= one->memory;
	if (nodes->now.pods[node] != GPUQ_UNLIMITED)
		nodes->now.pods[node]--;
	nodes->now.tenants[node]++;
	bits_del(nodes->now.vacant, node);
	if (p->n_devices)
		count_devices(c, node);
	if (bits_has(nodes->now.usable, node))
		bucket_add(c, node);
	score_touch(c, node);
}

/* The inverse of nodes_take(), step by step: places are a stack, so the last place's devices are
 * the last ones noted. */
void nodes_undo(struct cycle *c, const struct need *one)
{
	struct nodes *nodes = c->nodes;
	const struct place *p = &c->places.pods[--c->places.n_pods];
	const uint32_t first = c->s->nodes[p->node].device_first;

	nodes_change(c, p->node);
	if (nodes->counting)
		nodes->now.whole[p->node] = (uint16_t)(nodes->now.whole[p->node] + one->whole);
	shift_extras(c, p->node, one->takes, one->n_takes, 1);
	while (c->places.n_devices > p->device_first)
		devices_shift(c, first + c->places.devices[--c->places.n_devices], p->milli,
			      one->part_memory, 1);
	if (nodes->now.cpu[p->node] != GPUQ_UNLIMITED)
		nodes->now.cpu[p->node] += one->cpu;
	if (nodes->now.memory[p->node] != GPUQ_UNLIMITED)
		nodes->now.memory[p->node] += one->memory;
	if (nodes->now.pods[p->node] != GPUQ_UNLIMITED)
		nodes->now.pods[p->node]++;
	if (--nodes->now.tenants[p->node] == 0)
		bits_add(nodes->now.vacant, p->node);
	if (p->n_devices)
		count_devices(c, p->node);
	if (bits_has(nodes->now.usable, p->node))
		bucket_add(c, p->node);
	score_touch(c, p->node);
}

/* A node that is closed already stays as it is: several pods of a gang may be on one node. */
void nodes_close(struct cycle *c)
{
	struct nodes *nodes = c->nodes;

	for (uint32_t i = 0; i < c->places.n_pods; i++) {
		const uint32_t node = c->places.pods[i].node;

		if (!bits_has(nodes->now.usable, node))
			continue;
		bucket_del(c, node);
		bits_del(nodes->now.usable, node);
		score_touch(c, node);
	}
}

void nodes_reopen(struct cycle *c)
{
	struct nodes *nodes = c->nodes;

	for (uint32_t i = 0; i < c->places.n_pods; i++) {
		const uint32_t node = c->places.pods[i].node;

		if (bits_has(nodes->now.usable, node))
			continue;
		bits_add(nodes->now.usable, node);
		bucket_add(c, node);
		score_touch(c, node);
	}
}

/* Count a pod that leaves (sign 1) or arrives (-1), in the sense of nodes_shift(). */
static void seat(struct cycle *c, uint32_t node, int sign)
{
	struct nodes *nodes = c->nodes;

	if (sign > 0) {
		if (--nodes->now.tenants[node] == 0)
			bits_add(nodes->now.vacant, node);
	} else {
		nodes->now.tenants[node]++;
		bits_del(nodes->now.vacant, node);
	}
}

void nodes_shift(struct cycle *c, const struct snap_alloc *a, int sign)
{
	struct nodes *nodes = c->nodes;
	const struct snap_node *n = &c->s->nodes[a->node];
	const struct snap_request *r = cycle_request(c, a->job);
	const struct snap_group *g = snap_group_at(cycle_request(c, a->job), a->group);

	nodes_change(c, a->node);
	for (uint32_t k = 0; !a->stays && k < a->n_devices; k++) {
		/* An unhealthy device, or one that disappeared, has nothing to release. */
		const uint32_t d = n->device_first + a->devices[k];

		if (a->devices[k] < n->n_devices && c->s->devices[d].healthy)
			devices_shift(c, d, a->milli, g->mig ? 0 : g->gpu_memory_bytes, sign);
	}
	shift_extras(c, a->node, g->takes, g->n_takes, sign);
	if (nodes->now.cpu[a->node] != GPUQ_UNLIMITED)
		nodes->now.cpu[a->node] += sign * g->cpu_milli;
	if (nodes->now.memory[a->node] != GPUQ_UNLIMITED)
		nodes->now.memory[a->node] += sign * g->memory_bytes;
	if (nodes->now.pods[a->node] != GPUQ_UNLIMITED)
		nodes->now.pods[a->node] += sign;
	seat(c, a->node, sign);
	/* A job with exclusive use of a node opens it to others when it ends. */
	if (r->exclusive && sign > 0 && nodes->now.tenants[a->node] == 0 &&
	    bits_has(nodes->ready, a->node))
		bits_add(nodes->now.usable, a->node);
	if (r->exclusive && sign < 0)
		bits_del(nodes->now.usable, a->node);
	nodes_changed(c, a->node);
}

bool nodes_hold(struct cycle *c, const struct snap_alloc *a)
{
	struct nodes *nodes = c->nodes;
	const struct snap_group *g = snap_group_at(cycle_request(c, a->job), a->group);
	const uint32_t first = c->s->nodes[a->node].device_first;

	for (uint32_t k = 0; k < a->n_devices; k++) {
		const uint32_t d = first + a->devices[k];

		/* Memory is compared only where the node reports it. */
		if (nodes->now.device_free[d] < a->milli ||
		    (c->s->devices[d].memory_bytes > 0 && !g->mig &&
		     nodes->now.device_memory[d] <
			     devices_bytes(c, d, a->milli, g->gpu_memory_bytes)))
			return false;
	}
	for (uint32_t k = 0; k < g->n_takes; k++)
		if (nodes->now.extra_free[(size_t)a->node * c->s->n_extras + g->takes[k].extra] <
		    g->takes[k].n)
			return false;
	if (nodes->now.cpu[a->node] < g->cpu_milli ||
	    nodes->now.memory[a->node] < g->memory_bytes || nodes->now.pods[a->node] < 1)
		return false;
	if (cycle_request(c, a->job)->exclusive && !bits_has(nodes->now.vacant, a->node))
		return false;
	/* Nothing was changed before all was known to fit. */
	nodes_shift(c, a, -1);
	return true;
}
