/* holdings_int.h - what queues, users, caps and budgets hold, as the files that count it see it
 *
 * Owns     the tables' shape; holdings.c makes them.
 * Touches  memory only.
 * Used by  budget.c, caps.c, holdings.c, users.c. */
#ifndef GPUQD_SCHED_QUOTA_HOLDINGS_INT_H
#define GPUQD_SCHED_QUOTA_HOLDINGS_INT_H

#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/snapshot/cost.h"

struct user_use;
struct cap_use;
struct budgets;

struct holdings {
	/* Queues, by [q * n_res + r]. */
	int64_t *held; /* by jobs that run, are ending or have a nominated placement */
	int64_t *kept; /* held as holdings_keep() found it; NULL = it was not called */
	int64_t *leaving; /* the part of it that was signalled to end */
	int64_t *firm; /* the part of it that is not preemptible */
	int64_t *demand; /* of running and pending jobs, capped by limits */
	int64_t *pending; /* the part of pending jobs, of each queue by itself */
	int64_t *fair;
	int64_t *idle; /* by resource: held by no queue; use by others is not known here */
	int64_t *running; /* jobs, by queue: running, ending or with a nominated placement */
	int64_t *parting; /* those of them that are ending */
	int64_t *least_priority; /* by queue, of its own running preemptible jobs */
	bool sevenths; /* some node has instances, see holdings_allowed */
	bool *stopped; /* by queue: it or an ancestor is */
	bool *per_user; /* by queue: some limit on the path counts users */
	bool lends_limited;
	const int64_t *more; /* by resource: requested instead of the job's request; NULL */
	/* Devices that a start is tested with; below 0: the most that it can be charged. */
	int64_t charge;
	/* The least that a start is charged, see holdings_ask_charges(); NULL = it does not depend on nodes. */
	holdings_charge_fn *least_charge;
	int64_t *license_free;

	/* users.c */
	struct user_use *user_uses;
	uint32_t n_user_uses, room_user_uses;
	uint32_t *user_slots, n_user_slots;

	struct cap_use *caps; /* caps.c: by cap; NULL = there are no caps */
	uint32_t *array_running; /* caps.c: elements that run, are ending or were started, by
				  * snap_lines.array_of */
	struct budgets *budgets; /* budget.c; NULL = no queue has one */
};

/* Return what a limit on devices allows: with instances in the cluster a little more, see cost_allowed(). */
static inline int64_t holdings_allowed(const struct cycle *c, int64_t limit)
{
	return c->holdings->sevenths ? cost_allowed(limit) : limit;
}

#endif
