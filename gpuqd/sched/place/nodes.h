/* nodes.h - what nodes have free while a cycle decides
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, minimise.c, nominated.c, pack.c, packer.c and others.
 */
#ifndef GPUQD_SCHED_PLACE_NODES_H
#define GPUQD_SCHED_PLACE_NODES_H

#include "gpuqd/sched/quota/cycle.h"

void nodes_init(struct cycle *c);
struct need nodes_need(const struct snap_group *g);
struct need nodes_need_times(const struct need *one, uint32_t n);
/* How many such pods fit on the node now, 0..max. */
uint32_t nodes_room(const struct cycle *c, uint32_t node, const struct need *one, uint32_t max);
/* How many would fit if nothing ran there. */
uint32_t nodes_room_empty(const struct cycle *c, uint32_t node, const struct need *one,
			  uint32_t max);
/* Take one pod's need from a node, noting its place; it must fit. */
void nodes_take(struct cycle *c, uint32_t node, const struct need *one, uint32_t group,
		uint32_t index);
/* Give the last place back. */
void nodes_undo(struct cycle *c, const struct need *one);
/* The nodes of all places are the job's alone from now on; and are so no more. */
void nodes_close(struct cycle *c);
void nodes_reopen(struct cycle *c);
/* Around a change of what a node has free. */
void nodes_change(struct cycle *c, uint32_t node);
void nodes_changed(struct cycle *c, uint32_t node);
void nodes_fill_buckets(struct cycle *c); /* anew, from whole and usable */
/* A pod is gone from its node (sign 1), or is back there (-1): devices, amounts, tenants. */
void nodes_shift(struct cycle *c, const struct snap_alloc *a, int sign);
/* Take these very devices for a pod, if they and all else it needs are free. */
bool nodes_hold(struct cycle *c, const struct snap_alloc *a);

#endif
