/* oscillation.h - queues that pass the same places back and forth
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  rules.c.
 *
 * The last of the bounds that make preemption come to rest (gpuqd-scheduling(7), Why it comes to
 * rest): the cooldown and the bound on claims per hour do not limit claims for a quota, this one
 * delays them. */
#ifndef GPUQD_SCHED_PREEMPT_OSCILLATION_H
#define GPUQD_SCHED_PREEMPT_OSCILLATION_H

#include "gpuqd/sched/quota/cycle.h"

/* Return until when neither of two queues, children of one, may reclaim from the other, since
 * within the last hour claims between them were reversed as often as allowed; 0 = they may. For a
 * quota (`owed`) they may sooner: when the cooldown has passed since the last reversal. */
int64_t oscillation_rests(struct cycle *c, uint32_t x, uint32_t y, bool owed);

#endif
