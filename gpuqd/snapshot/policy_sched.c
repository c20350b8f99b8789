#include "gpuqd/snapshot/policy_sched.h"

#include "gpuqd/site/policy.h"

#include "gpuqd/util/amount.h"
#include "gpuqd/snapshot/snapshot.h"

/* Counts that a snapshot has in 32 bits: what is larger is no bound at all. */
static uint32_t count(int64_t n)
{
	return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

struct policy_sched policy_sched_default(void)
{
	struct snap_config c;

	snapshot_config_default(&c);
	return (struct policy_sched){ .reclaim_to = c.reclaim_to,
				      .min_runtime_method = c.min_runtime_method,
				      .consolidation = c.consolidation,
				      .cross_queue_priority = c.cross_queue_priority,
				      .backfill_depth = c.backfill_depth,
				      .max_job_test = c.max_job_test,
				      .claims_per_hour = c.claims_per_hour,
				      .claim_reversals = c.claim_reversals,
				      .claim_spare_max = GPUQ_UNLIMITED,
				      .moves_per_day = c.moves_per_day,
				      .exempt_evictions = c.exempt_evictions,
				      .starve_us = c.starve_us,
				      .preempt_min_runtime_us = c.preempt_min_runtime_us,
				      .reclaim_min_runtime_us = c.reclaim_min_runtime_us,
				      .cooldown_us = c.cooldown_us,
				      .preemption_delay_us = c.preemption_delay_us,
				      .grow_delay_us = c.grow_delay_us,
				      .gang_repair_us = c.gang_repair_us };
}

void policy_sched_set(const struct policy_sched *p, struct snap_config *c)
{
	c->reclaim_to = p->reclaim_to;
	c->min_runtime_method = p->min_runtime_method;
	c->consolidation = p->consolidation;
	c->cross_queue_priority = p->cross_queue_priority;
	c->backfill_depth = count(p->backfill_depth);
	c->max_job_test = count(p->max_job_test);
	c->claims_per_hour = count(p->claims_per_hour);
	c->claim_reversals = count(p->claim_reversals);
	c->claim_spare_milli = amount_times(p->claim_spare_max, SNAP_MILLI);
	c->moves_per_day = count(p->moves_per_day);
	c->exempt_evictions = count(p->exempt_evictions);
	c->starve_us = p->starve_us;
	c->preempt_min_runtime_us = p->preempt_min_runtime_us;
	c->reclaim_min_runtime_us = p->reclaim_min_runtime_us;
	c->cooldown_us = p->cooldown_us;
	c->preemption_delay_us = p->preemption_delay_us;
	c->grow_delay_us = p->grow_delay_us;
	c->gang_repair_us = p->gang_repair_us;
}

struct policy policy_default(void)
{
	return (struct policy){
		.usage_half_life_us = INT64_C(7) * 24 * 3600 * 1000000,
		.weights = policy_weights_default(),
		.sched = policy_sched_default(),
		.idle_window_us = INT64_C(30) * 1000000,
	};
}
