/* oscillation.h - queues that pass the same places back and forth
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  rules.c.
 *
 * The last of the belts that make claims come to rest (scheduling 1.13): cooldown and the
 * bound on claims per hour leave a guarantee alone, this one delays it.
 */
#ifndef GPUQD_SCHED_PREEMPT_OSCILLATION_H
#define GPUQD_SCHED_PREEMPT_OSCILLATION_H

#include "gpuqd/sched/quota/cycle.h"

/* Until when neither of two queues, children of one, may claim from the other, as within
 * the last hour claims between them took back what claims had taken claim_reversals times;
 * 0 = they may. Under a guarantee (`owed`) they may sooner: when the cooldown has passed
 * since the last of those. */
int64_t oscillation_rests(struct cycle *c, uint32_t x, uint32_t y, bool owed);

#endif
