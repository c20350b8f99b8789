/* holdings.h - holdings, demand and fair shares of queues
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, emit.c, gangs.c, order.c, preempt.c and others. */
#ifndef GPUQD_SCHED_QUOTA_HOLDINGS_H
#define GPUQD_SCHED_QUOTA_HOLDINGS_H

#include "gpuqd/sched/quota/cycle.h"

void holdings_init(struct cycle *c);
/* Compute demand and fair shares, once it is known which jobs are eligible. */
void holdings_shares(struct cycle *c);
void holdings_start(struct cycle *c, uint32_t job, uint32_t flavor);
/* The same for pods beyond a job's minimum: amounts by resource. */
bool holdings_admits_more(struct cycle *c, uint32_t job, uint32_t flavor, const int64_t *amounts);
void holdings_grow(struct cycle *c, uint32_t job, uint32_t flavor, const int64_t *amounts);
/* Note that amounts of a queue's work were signalled to end; amounts by resource, sign -1 =
 * undo. */
void holdings_leaves(struct cycle *c, uint32_t queue, const int64_t *amounts, int64_t sign);
void holdings_job_leaves(struct cycle *c, uint32_t queue, int64_t sign);
/* True if the pod is beyond its job's minimum. */
bool holdings_is_surplus(const struct cycle *c, const struct snap_alloc *a);
int64_t holdings_need(const struct cycle *c, uint32_t job, uint32_t flavor, uint32_t res);
/* True if limits, quotas and licenses allow one start; else *why says which does not. */
bool holdings_admits(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why);

#endif
