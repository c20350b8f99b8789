#include "gpuqd/sched/place/nodes.h"

#include "gpuqd/sched/place/devices.h"
#include "gpuqd/sched/place/score.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/sched/quota/cycle.h"

#include "libgpuq/limits.h"

#include <string.h>

static bool part_free(int16_t milli)
{
	return milli > 0 && milli < SNAP_MILLI;
}

static uint64_t *new_set(struct cycle *c)
{
	return cycle_alloc(c, c->n_words, sizeof(uint64_t));
}

static void bucket_add(struct cycle *c, uint32_t node)
{
	struct bucket *b = &c->buckets[c->whole[node]];

	if (!b->set)
		b->set = new_set(c);
	if (!b->set)
		return;
	bits_add(b->set, node);
	b->n++;
	b->from = node / 64 < b->from ? node / 64 : b->from;
}

static void bucket_del(struct cycle *c, uint32_t node)
{
	struct bucket *b = &c->buckets[c->whole[node]];

	if (!b->set)
		return;
	bits_del(b->set, node);
	b->n--;
}

/* Recount the node's devices after they changed. */
static void count_devices(struct cycle *c, uint32_t node)
{
	const struct snap_node *n = &c->s->nodes[node];
	const int16_t *free_milli = &c->device_free[n->device_first];
	uint16_t whole = 0;
	bool parted = false;

	for (uint32_t d = 0; d < n->n_devices; d++) {
		whole += free_milli[d] == SNAP_MILLI;
		parted |= part_free(free_milli[d]);
	}
	if (parted)
		bits_add(c->parted, node);
	else
		bits_del(c->parted, node);
	c->whole[node] = whole > c->withheld[node] ? whole - c->withheld[node] : 0;
}

/* Measure cpu and memory per device over all usable nodes with devices: what a node should keep for
 * each device that stays free. Per 1024 devices, for precision. */
static void measure_balance(struct cycle *c)
{
	int64_t cpu = 0, mib = 0, cpu_devices = 0, mib_devices = 0;

	for (uint32_t i = 0; i < c->s->n_nodes; i++) {
		const struct snap_node *n = &c->s->nodes[i];

		if (n->n_devices == 0 || !bits_has(c->ready, i))
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
	c->cpu_per_device = cpu_devices ? amount_times(cpu / cpu_devices, 1024) : 0;
	c->mib_per_device = mib_devices ? amount_times(mib / mib_devices, 1024) : 0;
}

static void seat_tenants(struct cycle *c)
{
	const struct snapshot *s = c->s;

	for (uint32_t i = 0; i < s->n_allocs; i++) {
		const struct snap_alloc *a = &s->allocs[i];

		c->tenants[a->node]++;
		bits_del(c->vacant, a->node);
		if (s->requests[s->jobs[a->job].request].exclusive)
			bits_del(c->usable, a->node);
	}
}

void nodes_init(struct cycle *c)
{
	const struct snapshot *s = c->s;
	const uint32_t n = s->n_nodes;

	c->n_words = bits_words(n);
	c->cpu = cycle_alloc(c, n, sizeof(*c->cpu));
	c->memory = cycle_alloc(c, n, sizeof(*c->memory));
	c->pods = cycle_alloc(c, n, sizeof(*c->pods));
	c->whole = cycle_alloc(c, n, sizeof(*c->whole));
	c->withheld = cycle_alloc(c, n, sizeof(*c->withheld));
	c->tenants = cycle_alloc(c, n, sizeof(*c->tenants));
	c->rank_nodes = cycle_alloc(c, n, sizeof(*c->rank_nodes));
	c->rank_scratch = cycle_alloc(c, n, sizeof(*c->rank_scratch));
	c->rank_room = cycle_alloc(c, n, sizeof(*c->rank_room));
	c->rank_left = cycle_alloc(c, n, sizeof(*c->rank_left));
	c->rank_count =
		cycle_alloc(c, GPUQ_PODS_MAX + SNAP_DEVICES_MAX + 2, sizeof(*c->rank_count));
	c->device_free = cycle_alloc(c, s->n_devices, sizeof(*c->device_free));
	c->device_memory = cycle_alloc(c, s->n_devices, sizeof(*c->device_memory));
	c->mig_free = cycle_alloc(c, (size_t)n * s->n_profiles, sizeof(*c->mig_free));
	c->usable = new_set(c);
	c->ready = new_set(c);
	c->parted = new_set(c);
	c->gpuless = new_set(c);
	c->migs = new_set(c);
	c->vacant = new_set(c);
	c->skip = new_set(c);
	c->links = cycle_alloc(c, s->n_joints, sizeof(*c->links));
	c->flavors = cycle_alloc(c, s->n_flavors, sizeof(*c->flavors));
	for (uint32_t f = 0; !c->failed && f < s->n_flavors; f++)
		c->flavors[f] = new_set(c);
	if (c->failed)
		return;
	for (uint32_t d = 0; d < s->n_devices; d++) {
		c->device_free[d] = s->devices[d].free_milli;
		c->device_memory[d] = s->devices[d].free_memory_bytes;
	}
	for (size_t m = 0; m < (size_t)n * s->n_profiles; m++)
		c->mig_free[m] = s->mig_free[m];
	for (uint32_t i = 0; i < n; i++) {
		const struct snap_node *node = &s->nodes[i];

		c->cpu[i] = node->cpu_free;
		c->memory[i] = node->memory_free;
		c->pods[i] = node->pods_free;
		if (node->n_devices > c->max_whole)
			c->max_whole = node->n_devices;
		if (node->state == SNAP_READY) {
			bits_add(c->ready, i);
			bits_add(c->usable, i);
		}
		bits_add(c->vacant, i);
		if (node->n_mig)
			bits_add(c->migs, i);
		else if (node->n_devices == 0)
			bits_add(c->gpuless, i);
		if (node->flavor != SNAP_NONE)
			bits_add(c->flavors[node->flavor], i);
		count_devices(c, i);
	}
	seat_tenants(c);
	measure_balance(c);
	c->buckets = cycle_alloc(c, c->max_whole + 1, sizeof(*c->buckets));
	if (!c->failed)
		nodes_fill_buckets(c);
}

void nodes_fill_buckets(struct cycle *c)
{
	for (uint32_t f = 0; f <= c->max_whole; f++) {
		if (c->buckets[f].set)
			memset(c->buckets[f].set, 0, c->n_words * sizeof(uint64_t));
		c->buckets[f].n = c->buckets[f].from = 0;
	}
	for (uint32_t i = 0; !c->failed && i < c->s->n_nodes; i++)
		if (bits_has(c->usable, i))
			bucket_add(c, i);
}

void nodes_change(struct cycle *c, uint32_t node)
{
	if (bits_has(c->usable, node))
		bucket_del(c, node);
}

void nodes_changed(struct cycle *c, uint32_t node)
{
	count_devices(c, node);
	if (bits_has(c->usable, node))
		bucket_add(c, node);
	score_touch(c, node);
}

static uint32_t devices_of(int64_t milli)
{
	return milli / SNAP_MILLI < UINT32_MAX ? (uint32_t)(milli / SNAP_MILLI) : UINT32_MAX;
}

struct need nodes_need(const struct snap_group *g)
{
	struct need n = {
		.profile = SNAP_NONE, .cpu = g->cpu_milli, .memory = g->memory_bytes, .pods = 1
	};

	if (g->mig) {
		n.migs = devices_of(g->gpus_milli);
		n.profile = g->profile;
		return n;
	}
	n.parts = snap_group_parts(g);
	if (n.parts) {
		n.part = (int32_t)(g->gpus_milli % SNAP_MILLI);
		if (g->gpu_part_milli > n.part)
			n.part = g->gpu_part_milli;
		n.part_memory = g->gpu_memory_bytes;
	} else {
		n.whole = devices_of(g->gpus_milli);
	}
	return n;
}

static uint32_t many(uint32_t one, uint32_t n)
{
	const uint64_t all = (uint64_t)one * n;

	return all < UINT32_MAX ? (uint32_t)all : UINT32_MAX;
}

struct need nodes_need_times(const struct need *one, uint32_t n)
{
	struct need out = *one;

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

static int32_t mig_free(const struct cycle *c, uint32_t node, uint32_t profile)
{
	const int32_t n = c->mig_free[(size_t)node * c->s->n_profiles + profile];

	return n > 0 ? n : 0;
}

uint32_t nodes_room(const struct cycle *c, uint32_t node, const struct need *one, uint32_t max)
{
	max = times(c->cpu[node], one->cpu, max);
	max = times(c->memory[node], one->memory, max);
	max = times(c->pods[node], one->pods, max);
	if (one->whole)
		max = times(c->whole[node], one->whole, max);
	if (one->migs && max)
		max = times(mig_free(c, node, one->profile), one->migs, max);
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

	if (part > SNAP_MILLI || n->n_devices < one->parts)
		return 0;
	each = times(n->device_memory_bytes, one->part_memory, SNAP_MILLI / (uint32_t)part);
	return times((int64_t)n->n_devices * each, one->parts, max);
}

uint32_t nodes_room_empty(const struct cycle *c, uint32_t node, const struct need *one,
			  uint32_t max)
{
	const struct snap_node *n = &c->s->nodes[node];

	max = times(n->cpu_milli, one->cpu, max);
	max = times(n->memory_bytes, one->memory, max);
	max = times(n->pods, one->pods, max);
	if (one->whole)
		max = times(n->n_devices, one->whole, max);
	if (one->migs)
		max = times(c->s->mig_total[(size_t)node * c->s->n_profiles + one->profile],
			    one->migs, max);
	if (one->parts && max)
		max = parts_empty(c, node, one, max);
	return max;
}

/* Note that the current place has device d of its node, and take milli from it. */
static void take_device(struct cycle *c, struct place *p, uint32_t d, int32_t milli, int64_t asked)
{
	uint32_t *at = CYCLE_PUSH(c, place_devices, 1);

	if (!at)
		return;
	*at = d;
	p->n_devices++;
	devices_shift(c, c->s->nodes[p->node].device_first + d, milli, asked, -1);
}

/* Return the devices of a node for a pod that requests so many: the lowest, unless their links are
 * known. As a mask of the first LINKS_DEVICES_MAX; all = any will do. */
static uint64_t joined_best(struct cycle *c, uint32_t node, uint32_t whole)
{
	const struct snap_node *n = &c->s->nodes[node];
	const struct snap_joint *joint;
	uint64_t free = 0;

	if (n->joint == SNAP_NONE || whole == 0 || c->planning)
		return UINT64_MAX;
	joint = &c->s->joints[n->joint];
	if (!c->links[n->joint].n_devices &&
	    !links_init(&c->links[n->joint], c->mem, joint->n_devices, joint->links, joint->numa))
		c->failed = true;
	for (uint32_t d = 0; d < n->n_devices; d++)
		if (c->device_free[n->device_first + d] == SNAP_MILLI)
			free |= UINT64_C(1) << d;
	return c->failed ? UINT64_MAX : links_choose(&c->links[n->joint], free, whole);
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
	const int32_t part = devices_part(c, p->node, one);

	p->milli = part;
	for (uint32_t i = 0; i < one->parts; i++) {
		uint32_t d;

		c->part_cpu = one->cpu;
		if (c->policy == PACK_FGD)
			d = (uint32_t)score_fgd_device(c, p->node, part);
		else
			d = devices_pick(c, p->node, one,
					 i ? c->place_devices + p->device_first : NULL, i);
		if (d != SNAP_NONE)
			take_device(c, p, d, part, one->part_memory);
	}
	if (p->n_devices > 1)
		sort_devices(c->place_devices + p->device_first, p->n_devices);
}

void nodes_take(struct cycle *c, uint32_t node, const struct need *one, uint32_t group,
		uint32_t index)
{
	const struct snap_node *n = &c->s->nodes[node];
	const uint64_t best = joined_best(c, node, one->whole);
	struct place *p = CYCLE_PUSH(c, places, 1);

	if (!p)
		return;
	*p = (struct place){
		.group = group,
		.index = index,
		.node = node,
		.device_first = c->n_place_devices,
		.milli = one->whole ? SNAP_MILLI : 0,
	};
	nodes_change(c, node);
	if (c->counting)
		c->whole[node] = (uint16_t)(c->whole[node] - one->whole);
	if (!c->counting && one->parts)
		take_parts(c, p, one);
	if (one->migs)
		c->mig_free[(size_t)node * c->s->n_profiles + one->profile] -= (int32_t)one->migs;
	for (uint32_t d = 0; !c->counting && d < n->n_devices && p->n_devices < one->whole; d++)
		if (c->device_free[n->device_first + d] == SNAP_MILLI &&
		    (best == UINT64_MAX || best >> d & 1))
			take_device(c, p, d, SNAP_MILLI, 0);
	if (c->cpu[node] != GPUQ_UNLIMITED)
		c->cpu[node] -= one->cpu;
	if (c->memory[node] != GPUQ_UNLIMITED)
		c->memory[node] -= one->memory;
	if (c->pods[node] != GPUQ_UNLIMITED)
		c->pods[node]--;
	c->tenants[node]++;
	bits_del(c->vacant, node);
	if (p->n_devices)
		count_devices(c, node);
	if (bits_has(c->usable, node))
		bucket_add(c, node);
	score_touch(c, node);
}

void nodes_undo(struct cycle *c, const struct need *one)
{
	const struct place *p = &c->places[--c->n_places];
	const uint32_t first = c->s->nodes[p->node].device_first;

	nodes_change(c, p->node);
	if (c->counting)
		c->whole[p->node] = (uint16_t)(c->whole[p->node] + one->whole);
	if (one->migs)
		c->mig_free[(size_t)p->node * c->s->n_profiles + one->profile] +=
			(int32_t)one->migs;
	while (c->n_place_devices > p->device_first)
		devices_shift(c, first + c->place_devices[--c->n_place_devices], p->milli,
			      one->part_memory, 1);
	if (c->cpu[p->node] != GPUQ_UNLIMITED)
		c->cpu[p->node] += one->cpu;
	if (c->memory[p->node] != GPUQ_UNLIMITED)
		c->memory[p->node] += one->memory;
	if (c->pods[p->node] != GPUQ_UNLIMITED)
		c->pods[p->node]++;
	if (--c->tenants[p->node] == 0)
		bits_add(c->vacant, p->node);
	if (p->n_devices)
		count_devices(c, p->node);
	if (bits_has(c->usable, p->node))
		bucket_add(c, p->node);
	score_touch(c, p->node);
}

void nodes_close(struct cycle *c)
{
	for (uint32_t i = 0; i < c->n_places; i++) {
		const uint32_t node = c->places[i].node;

		if (!bits_has(c->usable, node))
			continue;
		bucket_del(c, node);
		bits_del(c->usable, node);
		score_touch(c, node);
	}
}

void nodes_reopen(struct cycle *c)
{
	for (uint32_t i = 0; i < c->n_places; i++) {
		const uint32_t node = c->places[i].node;

		if (bits_has(c->usable, node))
			continue;
		bits_add(c->usable, node);
		bucket_add(c, node);
		score_touch(c, node);
	}
}

static void seat(struct cycle *c, uint32_t node, int sign)
{
	if (sign > 0) {
		if (--c->tenants[node] == 0)
			bits_add(c->vacant, node);
	} else {
		c->tenants[node]++;
		bits_del(c->vacant, node);
	}
}

void nodes_shift(struct cycle *c, const struct snap_alloc *a, int sign)
{
	const struct snap_node *n = &c->s->nodes[a->node];
	const struct snap_request *r = &c->s->requests[c->s->jobs[a->job].request];
	const struct snap_group *g = snap_group_of(c->s, a);

	nodes_change(c, a->node);
	for (uint32_t k = 0; k < a->n_devices; k++) {
		const uint32_t d = n->device_first + a->devices[k];

		if (a->devices[k] < n->n_devices && c->s->devices[d].healthy)
			devices_shift(c, d, a->milli, g->mig ? 0 : g->gpu_memory_bytes, sign);
	}
	if (g->mig)
		c->mig_free[(size_t)a->node * c->s->n_profiles + g->profile] +=
			sign * (int32_t)(g->gpus_milli / SNAP_MILLI);
	if (c->cpu[a->node] != GPUQ_UNLIMITED)
		c->cpu[a->node] += sign * g->cpu_milli;
	if (c->memory[a->node] != GPUQ_UNLIMITED)
		c->memory[a->node] += sign * g->memory_bytes;
	if (c->pods[a->node] != GPUQ_UNLIMITED)
		c->pods[a->node] += sign;
	seat(c, a->node, sign);
	/* A job with exclusive use of a node opens it to others when it ends. */
	if (r->exclusive && sign > 0 && c->tenants[a->node] == 0 && bits_has(c->ready, a->node))
		bits_add(c->usable, a->node);
	if (r->exclusive && sign < 0)
		bits_del(c->usable, a->node);
	nodes_changed(c, a->node);
}

bool nodes_hold(struct cycle *c, const struct snap_alloc *a)
{
	const struct snap_group *g = snap_group_of(c->s, a);
	const uint32_t first = c->s->nodes[a->node].device_first;

	for (uint32_t k = 0; k < a->n_devices; k++) {
		const uint32_t d = first + a->devices[k];

		if (c->device_free[d] < a->milli ||
		    (c->s->devices[d].memory_bytes > 0 && !g->mig &&
		     c->device_memory[d] < devices_bytes(c, d, a->milli, g->gpu_memory_bytes)))
			return false;
	}
	if (g->mig && c->mig_free[(size_t)a->node * c->s->n_profiles + g->profile] <
			      g->gpus_milli / SNAP_MILLI)
		return false;
	if (c->cpu[a->node] < g->cpu_milli || c->memory[a->node] < g->memory_bytes ||
	    c->pods[a->node] < 1)
		return false;
	if (c->s->requests[c->s->jobs[a->job].request].exclusive && !bits_has(c->vacant, a->node))
		return false;
	nodes_shift(c, a, -1);
	return true;
}
