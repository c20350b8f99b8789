/* minimise.h - no victim that is not needed
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, preempt.c, relocate_settle.c, search.c.
 */
#ifndef GPUQD_SCHED_PREEMPT_MINIMISE_H
#define GPUQD_SCHED_PREEMPT_MINIMISE_H

#include "gpuqd/sched/preempt/preempt.h"

/* Of victims with whom gone it fits give back whoever need not go, take cheaper ones where
 * they serve as well, and look at all rules once more. */
bool minimise_improve(struct cycle *c, struct claim *k);
/* The first of that alone. False: no memory. */
bool minimise_fewer(struct cycle *c, struct claim *k);

#endif
