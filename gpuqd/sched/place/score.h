/* score.h - the best node for a single pod
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  nodes.c. */
#ifndef GPUQD_SCHED_PLACE_SCORE_H
#define GPUQD_SCHED_PLACE_SCORE_H

#include "gpuqd/sched/quota/cycle.h"

/* Note that the free capacity of a node changed. */
void score_touch(struct cycle *c, uint32_t node);
/* Return the device that fragmentation gradient descent takes a part of; -1 = none has room. */
int32_t score_fgd_device(const struct cycle *c, uint32_t node, int32_t part);

#endif
