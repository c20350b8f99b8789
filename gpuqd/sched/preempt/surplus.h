/* surplus.h - surplus of other jobs, preempted so that an elastic job grows
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c. */
#ifndef GPUQD_SCHED_PREEMPT_SURPLUS_H
#define GPUQD_SCHED_PREEMPT_SURPLUS_H

#include "gpuqd/sched/quota/cycle.h"

/* Preempt surplus for more pods of a running job, which hold `amounts`, by resource, on a flavor:
 * until fits() says that there is room. The evictions are in the plan; the pods are not counted.
 * False: nothing has changed. */
bool surplus_reclaim(struct cycle *c, uint32_t job, uint32_t flavor, int64_t *amounts,
		     bool (*fits)(struct cycle *c, void *ctx), void *ctx);

#endif
