/* policy.h - how a site weighs past use and waiting
 *
 * Owns     the struct and its defaults. Touches nothing.
 * Used by  core/model (how usage is forgotten), flow/snap (what a cycle is told),
 *          gpuqd/config (where it comes from).
 */
#ifndef GPUQD_CORE_POLICY_H
#define GPUQD_CORE_POLICY_H

#include <stdint.h>

#define POLICY_DEFAULT INT64_C(-1) /* of a weight: the product's own */

struct policy {
	int64_t usage_half_life_us; /* 0 = usage is never forgotten */
	int64_t usage_k_milli; /* weight of past usage between queues, in thousandths */
	/* Points, or POLICY_DEFAULT. That of qos is for the highest class of the site; by
	 * default every class stands above all below it, whatever else they have. */
	int64_t weight_age, weight_fair_share, weight_size, weight_qos;
	int64_t max_age_us; /* a job that waited as long has all points of its age */
};

static inline struct policy policy_default(void)
{
	return (struct policy){
		.usage_half_life_us = INT64_C(7) * 24 * 3600 * 1000000,
		.weight_age = POLICY_DEFAULT,
		.weight_fair_share = POLICY_DEFAULT,
		.weight_size = POLICY_DEFAULT,
		.weight_qos = POLICY_DEFAULT,
		.max_age_us = INT64_C(24) * 3600 * 1000000,
	};
}

#endif
