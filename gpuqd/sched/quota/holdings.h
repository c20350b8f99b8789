/* holdings.h - holdings, demand and fair shares of queues
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, emit.c, gangs.c, order.c, preempt.c and others. */
#ifndef GPUQD_SCHED_QUOTA_HOLDINGS_H
#define GPUQD_SCHED_QUOTA_HOLDINGS_H

#include "gpuqd/sched/quota/cycle.h"

/* Return the least that a start of the job is charged in devices of the flavor, wherever it may run. */
typedef int64_t holdings_charge_fn(struct cycle *c, uint32_t job, uint32_t flavor);

void holdings_init(struct cycle *c);
/* Have limits ask that function: rooms above this one know the charges of nodes. */
void holdings_ask_charges(struct cycle *c, holdings_charge_fn *least);
/* Compute demand and fair shares, once it is known which jobs are eligible. */
void holdings_shares(struct cycle *c);
/* Count a start, which is charged that many thousandths of devices; below 0: the most that it can be. */
void holdings_start(struct cycle *c, uint32_t job, uint32_t flavor, int64_t devices);
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
/* True of reasons for which licenses are too few, of the site or those that stand for volume claims. */
bool holdings_is_license(enum gpuq_reason code);
/* True if limits, quotas and licenses allow one start where it is charged least; else *why says which does not. */
bool holdings_admits(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why);
/* Return how much more than the least it may be charged; GPUQ_UNLIMITED = wherever it may run, no limit is in the way. */
int64_t holdings_spare(struct cycle *c, uint32_t job, uint32_t flavor);
/* The same for pods beyond a job's minimum, -1 = limits do not allow them. least: the devices that they are charged at
 * least; amounts: the most that they are, and afterwards undefined in the flavor's devices. */
int64_t holdings_spare_more(struct cycle *c, uint32_t job, uint32_t flavor, int64_t *amounts,
			    int64_t least);

/* Return the queue's fair share, or demand, by resource. */
const int64_t *holdings_fair(const struct cycle *c, uint32_t queue);
const int64_t *holdings_demand(const struct cycle *c, uint32_t queue);
/* Return what the queue holds for good. */
int64_t holdings_stays(const struct cycle *c, uint32_t queue, uint32_t res);
int64_t holdings_all_stays(const struct cycle *c, uint32_t res); /* what all queues hold for good */
/* Return the rows of one queue, for callers that go through its resources: what it holds, the part
 * of it that is ending, its fair share. */
struct holding {
	const int64_t *held, *leaving, *fair;
};
struct holding holdings_of(const struct cycle *c, uint32_t queue);
/* Return what no queue holds. */
int64_t holdings_idle(const struct cycle *c, uint32_t res);
/* Return the least priority of the queue's own running preemptible jobs. */
int64_t holdings_least_priority(const struct cycle *c, uint32_t queue);
bool holdings_stopped(const struct cycle *c, uint32_t queue); /* it or an ancestor */
/* True if some limit of the queue or an ancestor counts users. */
bool holdings_per_user(const struct cycle *c, uint32_t queue);
int64_t holdings_license_free(const struct cycle *c, uint32_t license);
/* Remember what queues hold; what is started after it does not count as held in the plan. */
void holdings_keep(struct cycle *c);
/* Write shares, demand and what is held to the finished plan. */
void holdings_finish(struct cycle *c, struct plan *out);

#endif
