/* layouts.h - room on nodes whose cards would be cut into another layout of MIG instances
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  sched/cut.c, sched/reasons.c. */
#ifndef GPUQD_SCHED_PLACE_LAYOUTS_H
#define GPUQD_SCHED_PLACE_LAYOUTS_H

#include "gpuqd/sched/place/nodes.h"

/* Return how many such pods fit on the node with that layout if nothing runs there, 0..max. */
uint32_t layouts_room(const struct cycle *c, uint32_t node, const struct snap_layout *l,
		      const struct need *one, uint32_t max);

/* Return the most that fit with one of the layouts that it could get, or is being given. */
uint32_t layouts_room_most(const struct cycle *c, uint32_t node, const struct need *one,
			   uint32_t max);

#endif
