/* budget.h - GPU-minutes of queues
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, holdings.c, sched.c.
 */
#ifndef GPUQD_SCHED_QUOTA_BUDGET_H
#define GPUQD_SCHED_QUOTA_BUDGET_H

#include "gpuqd/sched/quota/cycle.h"

/* Prepare the budgets: GPU-minutes of queues. */
void budget_init(struct cycle *c);
/* True if the hard budgets above the job allow it to start and run to its time limit. */
bool budget_admits(struct cycle *c, uint32_t job, uint32_t flavor, int64_t gpus_milli,
		   struct plan_reason *why);
void budget_start(struct cycle *c, uint32_t job, uint32_t flavor, int64_t gpus_milli);
/* The same for devices that a running job gets in addition to its own. */
bool budget_admits_more(struct cycle *c, uint32_t job, uint32_t flavor, int64_t gpus_milli,
			struct plan_reason *why);
void budget_grow(struct cycle *c, uint32_t job, uint32_t flavor, int64_t gpus_milli);
/* Return the queue's rank for idle capacity: out of budget it comes after all queues that have
 * budget left. */
int64_t budget_rank(const struct snapshot *s, uint32_t queue);
/* True if a budget refused the job: one with a shorter time limit may still start. */
bool budget_refused(const struct plan_reason *why);

#endif
