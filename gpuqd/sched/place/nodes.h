/* nodes.h - the free capacity of nodes while a cycle decides
 *
 * Owns     the amounts that are free on nodes; nodes_int.h has the sets beside them.
 * Touches  memory only.
 * Used by  elastic.c, minimise.c, nominated.c, pack.c, packer.c and others. */
#ifndef GPUQD_SCHED_PLACE_NODES_H
#define GPUQD_SCHED_PLACE_NODES_H

#include "gpuqd/sched/quota/cycle.h"

/* The resources that one pod takes from a node (or several pods; parts, part_memory and takes are
 * then still those of one). At most one of whole, parts and migs is not 0. */
struct need {
	uint32_t whole; /* devices */
	uint32_t parts; /* devices of which it takes a part */
	int32_t part; /* thousandths of each of those, 1..999; 0 = as part_memory says */
	int64_t part_memory; /* bytes of each of those; 0 = in proportion to part */
	int64_t part_least; /* that a replica must have; 0 = part_memory */
	uint32_t migs, profile; /* instances of a profile; they are among takes as well */
	const struct snap_take *takes; /* countable resources; those of one pod */
	uint32_t n_takes;
	int64_t cpu, memory, pods;
};

/* The devices that a pod's parts would be taken from. */
struct parts {
	int32_t part; /* thousandths of each */
	int32_t from; /* free on the last of them */
	int32_t left; /* left free on all of them together */
	uint32_t opened; /* devices of these that were not in use */
};

struct bucket;

/* The free capacity of nodes at some moment: now, and at another one while planning. */
struct amounts {
	int64_t *cpu, *memory, *pods; /* GPUQ_UNLIMITED = not counted */
	uint16_t *whole; /* whole devices */
	uint16_t *tenants; /* pods of gpuq */
	uint64_t *usable; /* ready, and not closed by an exclusive tenant */
	uint64_t *vacant; /* has no tenants */
	struct bucket *buckets; /* by free whole devices, 0..max; usable nodes */
	/* By device, NULL where a moment does not tell devices apart; and values derived from
	 * them. */
	int16_t *device_free; /* by snapshot.devices */
	int64_t *device_memory; /* free bytes, by snapshot.devices; undefined where not known */
	uint64_t *parted; /* has a device that is partly taken */
	uint16_t *withheld; /* whole devices kept for start reservations, not in whole */
	int64_t *extra_free; /* as snapshot.extra_free; NULL where a moment does not tell */
};

void nodes_init(struct cycle *c);
/* Return what is free now. A node's amounts are changed between nodes_change() and
 * nodes_changed(). */
struct amounts *nodes_amounts(const struct cycle *c);
/* Make tables for another moment; `failed` is set without memory. */
struct amounts nodes_amounts_new(struct cycle *c, bool by_device, bool by_extra);
/* Take these for now and return what was, by exchange: nodes are in the state of a later moment,
 * until they are exchanged back. */
void nodes_swap(struct cycle *c, struct amounts *a);
const uint64_t *nodes_ready(const struct cycle *c); /* by state */
const uint64_t *nodes_of_flavor(const struct cycle *c, uint32_t flavor);
uint32_t nodes_max_whole(const struct cycle *c); /* the most devices of one node */
struct need nodes_need(const struct snap_group *g);
/* The same of a pod that holds resources: of devices those that it has. */
struct need nodes_need_of(const struct snapshot *s, const struct snap_alloc *a);
struct need nodes_need_times(const struct need *one, uint32_t n);
/* Return how many such pods fit on the node now, 0..max. */
uint32_t nodes_room(const struct cycle *c, uint32_t node, const struct need *one, uint32_t max);
/* Return how many would fit if nothing ran there. */
uint32_t nodes_room_empty(const struct cycle *c, uint32_t node, const struct need *one,
			  uint32_t max);
/* Take one pod's need from a node, noting its place; it must fit. */
void nodes_take(struct cycle *c, uint32_t node, const struct need *one, uint32_t group,
		uint32_t index);
/* Release the last place. */
void nodes_undo(struct cycle *c, const struct need *one);
/* Close the nodes of all places to other jobs; and open them again. */
void nodes_close(struct cycle *c);
void nodes_reopen(struct cycle *c);
/* Bracket a change of a node's free capacity. */
void nodes_change(struct cycle *c, uint32_t node);
void nodes_changed(struct cycle *c, uint32_t node);
void nodes_fill_buckets(struct cycle *c); /* anew, from whole and usable */
/* Let jobs use the node, whatever its state; or no longer. It was not usable, or was. */
void nodes_open(struct cycle *c, uint32_t node, bool on);
/* Copy what is free now to tables of another moment, with tables by device and extra. */
void nodes_copy(const struct cycle *c, struct amounts *to);
/* Release (sign 1) or take back (-1) the resources of a pod: devices, amounts, tenants. */
void nodes_shift(struct cycle *c, const struct snap_alloc *a, int sign);
/* Take exactly these devices for a pod, if they and all else it needs are free. */
bool nodes_hold(struct cycle *c, const struct snap_alloc *a);

#endif
