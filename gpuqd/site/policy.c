#include "gpuqd/site/policy.h"

#include "gpuqd/site/policy_queue.h"

const char *const policy_reclaims[] = { "any", "lower_or_equal", "lower", "never", NULL };
const char *const policy_preempts[] = { "lower", "lower_or_newer", "never", NULL };
const char *const policy_own_preempts[] = { "priority", "strict", NULL };
const char *const policy_reclaim_tos[] = { "fair_share", "guarantee", NULL };
const char *const policy_runtime_methods[] = { "lca", "queue", NULL };

struct policy policy_default(void)
{
	return (struct policy){
		.usage_half_life_us = INT64_C(7) * 24 * 3600 * 1000000,
		.weights = policy_weights_default(),
		.sched = policy_sched_default(),
		.use_hints = true,
		.idle_window_us = INT64_C(30) * 1000000,
	};
}
