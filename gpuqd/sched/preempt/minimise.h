/* minimise.h - no victim that is not needed
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, preempt.c, relocate_settle.c, search.c.
 */
#ifndef GPUQD_SCHED_PREEMPT_MINIMISE_H
#define GPUQD_SCHED_PREEMPT_MINIMISE_H

#include "gpuqd/sched/preempt/preempt_int.h"

/* Drop victims that are not needed for the job to fit, exchange the rest for cheaper ones where
 * possible, and check all rules once more. */
bool minimise_improve(struct cycle *c, struct claim *k);
/* The first of these steps only. False: no memory. */
bool minimise_fewer(struct cycle *c, struct claim *k);

#endif
