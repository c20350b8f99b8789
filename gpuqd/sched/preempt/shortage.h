/* shortage.h - what a blocked job lacks, where devices are not what it lacks
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  preempt.c.
 */
#ifndef GPUQD_SCHED_PREEMPT_SHORTAGE_H
#define GPUQD_SCHED_PREEMPT_SHORTAGE_H

#include "gpuqd/sched/preempt/preempt.h"

/* What of cpu and memory the claimant lacks, enum claim_short or'ed; 0 = it lacks devices.
 * Nodes stand as they will. */
uint8_t shortage_of(struct cycle *c, const struct claim *k);
/* Does a queue beside the claimant's, or beside one above it, hold more than its fair share of
 * cpu or memory that the claim asks for? Without looking at nodes. */
bool shortage_possible(const struct cycle *c, const struct claim *k);

#endif
