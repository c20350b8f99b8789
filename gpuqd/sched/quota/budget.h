/* budget.h - GPU-minutes of queues
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, holdings.c, sched.c.
 */
#ifndef GPUQD_SCHED_QUOTA_BUDGET_H
#define GPUQD_SCHED_QUOTA_BUDGET_H

#include "gpuqd/sched/quota/cycle.h"

/* GPU-minutes of queues */
void budget_init(struct cycle *c);
/* May it start, for as long as it may run, inside the hard budgets above it? */
bool budget_admits(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why);
void budget_start(struct cycle *c, uint32_t job, uint32_t flavor);
/* The same for devices that a running job gets beside its own. */
bool budget_admits_more(struct cycle *c, uint32_t job, uint32_t flavor, int64_t gpus_milli,
			struct plan_reason *why);
void budget_grow(struct cycle *c, uint32_t job, uint32_t flavor, int64_t gpus_milli);
/* Its rank for what is left over: out of budget it comes after all who are not. */
int64_t budget_rank(const struct snapshot *s, uint32_t queue);
/* Do longer jobs alone fail for this reason? */
bool budget_refused(const struct plan_reason *why);

#endif
