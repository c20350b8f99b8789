/* holdings.h - what queues hold, are due and may get
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, emit.c, gangs.c, order.c, preempt.c and others.
 */
#ifndef GPUQD_SCHED_QUOTA_HOLDINGS_H
#define GPUQD_SCHED_QUOTA_HOLDINGS_H

#include "gpuqd/sched/quota/cycle.h"

void holdings_init(struct cycle *c);
/* Demand and fair shares, once it is known which jobs are eligible. */
void holdings_shares(struct cycle *c);
void holdings_start(struct cycle *c, uint32_t job, uint32_t flavor);
/* The same for pods beyond what a job must have: amounts by resource. */
bool holdings_admits_more(struct cycle *c, uint32_t job, uint32_t flavor, const int64_t *amounts);
void holdings_grow(struct cycle *c, uint32_t job, uint32_t flavor, const int64_t *amounts);
/* Amounts of a queue's work were told to leave; amounts by resource, negative = back. */
void holdings_leaves(struct cycle *c, uint32_t queue, const int64_t *amounts, int64_t sign);
void holdings_job_leaves(struct cycle *c, uint32_t queue, int64_t sign);
/* Is the pod one that its job can do without? */
bool holdings_is_surplus(const struct cycle *c, const struct snap_alloc *a);
int64_t holdings_need(const struct cycle *c, uint32_t job, uint32_t flavor, uint32_t res);
/* Do limits, quotas, licenses allow one start? Else false and *why says what does not. */
bool holdings_admits(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why);

#endif
