/* nodes.h - the free capacity of nodes while a cycle decides
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, minimise.c, nominated.c, pack.c, packer.c and others. */
#ifndef GPUQD_SCHED_PLACE_NODES_H
#define GPUQD_SCHED_PLACE_NODES_H

#include "gpuqd/sched/quota/cycle.h"

void nodes_init(struct cycle *c);
struct need nodes_need(const struct snap_group *g);
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
/* Release (sign 1) or take back (-1) the resources of a pod: devices, amounts, tenants. */
void nodes_shift(struct cycle *c, const struct snap_alloc *a, int sign);
/* Take exactly these devices for a pod, if they and all else it needs are free. */
bool nodes_hold(struct cycle *c, const struct snap_alloc *a);

#endif
