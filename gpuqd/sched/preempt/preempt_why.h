/* preempt_why.h - the numbers of a claim
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  preempt.c.
 */
#ifndef GPUQD_SCHED_PREEMPT_PREEMPT_WHY_H
#define GPUQD_SCHED_PREEMPT_PREEMPT_WHY_H

#include "gpuqd/sched/preempt/preempt.h"

/* The numbers of a claim that is decided, its victims gone in thought and it
 * itself not yet charged. */
void preempt_explain(struct cycle *c, const struct claim *k);

#endif
