/* preempt_why.h - the numbers of a claim
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  preempt.c.
 */
#ifndef GPUQD_SCHED_PREEMPT_PREEMPT_WHY_H
#define GPUQD_SCHED_PREEMPT_PREEMPT_WHY_H

#include "gpuqd/sched/preempt/preempt_int.h"

/* Record the numbers of a decided claim, its victims tentatively removed and its own request not
 * yet charged. */
void preempt_explain(struct cycle *c, const struct claim *k);

#endif
