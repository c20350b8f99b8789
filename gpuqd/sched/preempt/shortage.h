/* shortage.h - the resources that a blocked job lacks, other than devices
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  preempt.c. */
#ifndef GPUQD_SCHED_PREEMPT_SHORTAGE_H
#define GPUQD_SCHED_PREEMPT_SHORTAGE_H

#include "gpuqd/sched/preempt/preempt_int.h"

/* Return which of cpu and memory the preemptor lacks, enum claim_short or'ed; 0 = it lacks devices.
 * Nodes are in their later state. */
uint8_t shortage_of(struct cycle *c, const struct claim *k);
/* True if a queue beside the preemptor's, or beside one above it, holds more than its fair share of
 * cpu or memory that the claim requests. Without looking at nodes. */
bool shortage_possible(const struct cycle *c, const struct claim *k);

#endif
