#include "gpuqd/sched/place/devices.h"

#include "gpuqd/sched/place/nodes_int.h"

#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/util/amount.h"

/* Parts of devices: thousandths of a device and bytes of its memory, neither of which may exceed
 * what the device has. A request for memory alone gets as many thousandths as the memory is of a
 * device of the node, rounded up (down where memory alone is shared), and so not the same everywhere; a
 * request for thousandths alone gets memory in proportion. Parts go to the fullest device that has room, and all parts of one pod
 * to different devices. */

/* Return the thousandths of a replica, if it holds the part; several of one pod might be of the same
 * device. */
static int32_t replica_for(const struct snap_node *at, const struct need *n)
{
	const int64_t r = at->replicas;
	const int64_t memory = n->part_least ? n->part_least : n->part_memory;

	if (n->parts > 1 || n->part * r > SNAP_MILLI ||
	    (memory > 0 && (at->device_memory_bytes <= 0 || memory > at->device_memory_bytes / r)))
		return SNAP_MILLI + 1;
	return snap_replica_milli(at->replicas);
}

/* Return the part, or the share of one of the pods that a device can have at a time if that is more. */
static int32_t at_least(const struct snap_node *at, int32_t part)
{
	return part > 0 ? (int32_t)amount_cores(SNAP_MILLI, part, at->slots) : part;
}

int32_t devices_part(const struct cycle *c, uint32_t node, const struct need *n)
{
	const int64_t memory = c->s->nodes[node].device_memory_bytes;
	const int64_t asked = snap_memory_up(n->part_memory, c->s->nodes[node].unit_bytes);

	if (c->s->nodes[node].replicas > 1)
		return replica_for(&c->s->nodes[node], n);
	if (n->part_memory == 0)
		return at_least(&c->s->nodes[node], n->part);
	/* Where the memory of a device is not known, none of it can be allocated. */
	if (asked > memory)
		return SNAP_MILLI + 1;
	return at_least(&c->s->nodes[node], n->part ? n->part
					    : c->s->nodes[node].by_memory
						    ? snap_memory_milli_down(asked, memory)
						    : snap_memory_milli(asked, memory));
}

int64_t devices_bytes(const struct cycle *c, uint32_t device, int32_t milli, int64_t asked)
{
	const int64_t memory = c->s->devices[device].memory_bytes;
	const int64_t unit = c->s->devices[device].unit_bytes;

	return asked ? snap_memory_up(asked, unit) : snap_memory_down(memory, milli, unit);
}

void devices_shift(struct cycle *c, uint32_t device, int32_t milli, int64_t asked, int sign)
{
	struct nodes *nodes = c->nodes;

	nodes->now.device_free[device] = (int16_t)(nodes->now.device_free[device] + sign * milli);
	nodes->now.device_memory[device] += sign * devices_bytes(c, device, milli, asked);
}

/* Return how many such parts the device has room for, up to max. */
static uint32_t of_device(const struct cycle *c, uint32_t device, int32_t part, int64_t asked,
			  uint32_t max)
{
	struct nodes *nodes = c->nodes;
	const int32_t free_milli = nodes->now.device_free[device];
	uint32_t n;

	if (free_milli < part || c->s->devices[device].serves == SNAP_SERVES_WHOLE)
		return 0;
	n = (uint32_t)free_milli / (uint32_t)part;
	if (c->s->devices[device].memory_bytes > 0) {
		const int64_t bytes = devices_bytes(c, device, part, asked);
		const int64_t left = nodes->now.device_memory[device];

		if (left < bytes)
			return 0;
		if (bytes > 0 && left / bytes < n)
			n = (uint32_t)(left / bytes);
	}
	return n < max ? n : max;
}

uint32_t devices_room(const struct cycle *c, uint32_t node, const struct need *n, uint32_t max)
{
	const struct snap_node *at = &c->s->nodes[node];
	const int32_t part = devices_part(c, node, n);
	uint32_t pods = max;

	if (part > SNAP_MILLI)
		return 0;
	/* n pods with k parts each fit when the devices have room for n*k parts and none counts for
	 * more than n: the parts of each pod are on different devices. */
	while (pods > 0) {
		uint64_t sum = 0;

		for (uint32_t d = 0; d < at->n_devices && sum < (uint64_t)pods * n->parts; d++)
			sum += of_device(c, at->device_first + d, part, n->part_memory, pods);
		if (sum >= (uint64_t)pods * n->parts)
			break;
		/* Fewer pods never make more room. */
		pods = sum / n->parts < pods ? (uint32_t)(sum / n->parts) : pods - 1;
	}
	return pods;
}

/* True if the first device has fewer cores free, or as many and less memory. */
static bool is_fuller(const struct cycle *c, uint32_t x, uint32_t y)
{
	const struct nodes *nodes = c->nodes;

	if (nodes->now.device_free[x] != nodes->now.device_free[y])
		return nodes->now.device_free[x] < nodes->now.device_free[y];
	return nodes->now.device_memory[x] < nodes->now.device_memory[y];
}

/* Return the fullest device with room that is not among those taken; SNAP_NONE. */
static uint32_t fullest(const struct cycle *c, uint32_t node, int32_t part, int64_t asked,
			const uint32_t *taken, uint32_t n_taken)
{
	const struct snap_node *n = &c->s->nodes[node];
	const int16_t *free_milli = &c->nodes->now.device_free[n->device_first];
	uint32_t best = SNAP_NONE;

	for (uint32_t d = 0; d < n->n_devices; d++) {
		uint32_t t = 0;

		if (free_milli[d] < part ||
		    of_device(c, n->device_first + d, part, asked, 1) == 0 ||
		    (best != SNAP_NONE &&
		     !is_fuller(c, n->device_first + d, n->device_first + best)))
			continue;
		while (t < n_taken && taken[t] != d)
			t++;
		if (t == n_taken)
			best = d;
	}
	return best;
}

uint32_t devices_pick(const struct cycle *c, uint32_t node, const struct need *n,
		      const uint32_t *taken, uint32_t n_taken)
{
	return fullest(c, node, devices_part(c, node, n), n->part_memory, taken, n_taken);
}

bool devices_parts(const struct cycle *c, uint32_t node, const struct need *n, struct parts *out)
{
	const struct snap_node *at = &c->s->nodes[node];
	uint32_t taken[SNAP_DEVICES_MAX];

	out->part = devices_part(c, node, n);
	out->opened = 0;
	out->left = 0;
	if (out->part > SNAP_MILLI || n->parts > at->n_devices)
		return false;
	for (uint32_t i = 0; i < n->parts; i++) {
		taken[i] = fullest(c, node, out->part, n->part_memory, taken, i);
		if (taken[i] == SNAP_NONE)
			return false;
		out->from = c->nodes->now.device_free[at->device_first + taken[i]];
		out->opened +=
			at->replicas <= 1 &&
			snap_is_whole(&c->s->devices[at->device_first + taken[i]], out->from);
		out->left += out->from - out->part;
	}
	return true;
}
