/* policy.h - how a site weighs past use and waiting
 *
 * Owns     the structs and their defaults. Touches nothing.
 * Used by  core/model (how usage is forgotten), flow/snap_usage (what a cycle is told),
 *          gpuqd/config (where it comes from).
 */
#ifndef GPUQD_CORE_POLICY_H
#define GPUQD_CORE_POLICY_H

#include <stdint.h>

#define POLICY_DEFAULT INT64_C(-1) /* of a weight: the product's own */

/* What a job's place in the line of its queue is made of: points, or POLICY_DEFAULT. */
struct policy_weights {
	int64_t age, fair_share, size, stretch;
	int64_t qos; /* of the highest class of the site; by default every class stands above
		      * all below it, whatever else they have */
	int64_t max_age_us; /* a job that waited as long has all points of its age; > 0 */
};

struct policy {
	int64_t usage_half_life_us; /* 0 = usage is never forgotten */
	int64_t usage_k_milli; /* weight of past usage between queues, in thousandths */
	struct policy_weights weights;
};

/* What that place is: points that add up, as they stood when it was last looked at. */
struct priority_terms {
	int64_t age; /* weight x eligible wait / max_age, evictions count as waiting; <= weight */
	int64_t fair_share; /* weight x rank of its user in the fair tree / users */
	int64_t size; /* weight x its devices / all devices */
	int64_t qos; /* weight x class / qos_full */
	int64_t stretch; /* weight x whole times that it waited as long as its walltime (an hour at
			  * least; none without one), 100 times at most */
	int64_t boost; /* given by the site */
	int64_t nice; /* taken off by its owner */
	int64_t total; /* age + fair_share + size + qos + stretch + boost - nice */
};

static inline struct policy_weights policy_weights_default(void)
{
	return (struct policy_weights){
		.age = POLICY_DEFAULT,
		.fair_share = POLICY_DEFAULT,
		.size = POLICY_DEFAULT,
		.stretch = POLICY_DEFAULT,
		.qos = POLICY_DEFAULT,
		.max_age_us = INT64_C(24) * 3600 * 1000000,
	};
}

static inline struct policy policy_default(void)
{
	return (struct policy){
		.usage_half_life_us = INT64_C(7) * 24 * 3600 * 1000000,
		.weights = policy_weights_default(),
	};
}

#endif
