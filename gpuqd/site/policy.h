/* policy.h - a site's weights of past use and age, settings of its scheduler, and limits of
 * notifications
 *
 * Owns     the structs and their defaults. Touches nothing.
 * Used by  state/model (decay of usage, notifications), snapshot/snapshot_take_usage (input of a cycle),
 *          gpuqd/config (its source).
 */
#ifndef GPUQD_SITE_POLICY_H
#define GPUQD_SITE_POLICY_H

#include <stdint.h>

#include "gpuqd/site/policy_sched.h"
#include "libgpuq/schema.h"

#define POLICY_DEFAULT INT64_C(-1) /* of a weight: the built-in value */

/* Weights of the terms of a job's priority: points, or POLICY_DEFAULT. */
struct policy_weights {
	int64_t age, fair_share, size, stretch; /* points of the terms of priority */
	int64_t qos; /* of the highest qos priority of the site; by default a higher qos priority
		      * always ranks first */
	int64_t max_age_us; /* pending time after which a job has all points of age; > 0 */
};

/* Webhooks of the site for every job, each under its own name. */
#define POLICY_HOOKS_MAX 8
struct policy_hook {
	const char *name; /* as jobs refer to it */
	unsigned on; /* enum gpuq_notify_on */
};

/* Allowed recipients of notifications, and their delivery. */
struct policy_notify {
	bool mail; /* there is a command that sends it */
	struct gpuq_strlist mail_to; /* suffixes of addresses; none = any address */
	struct gpuq_strlist urls; /* prefixes of URLs that users may name; none = no URL */
	struct policy_hook hooks[POLICY_HOOKS_MAX];
	unsigned n_hooks;
};

struct policy {
	int64_t usage_half_life_us; /* 0 = no decay */
	int64_t usage_k_milli; /* weight of past usage between queues, in thousandths */
	struct policy_weights weights;
	struct policy_sched sched; /* `scheduler' */
	bool use_hints; /* owners are told at a job's end if its request was far off */
	int64_t idle_window_us; /* > 0: length of the windows in which idle time is counted (idle.h) */
	struct policy_notify notify;
};

/* The terms of a priority: points that add up, as of the last cycle. */
struct priority_terms {
	int64_t age; /* weight x pending time since eligible / max_age, over evictions; <= weight */
	int64_t fair_share; /* weight x rank of its user in the fair tree / users */
	int64_t size; /* weight x its devices / all devices */
	int64_t qos; /* weight x class / qos_full */
	int64_t stretch; /* weight x pending time in whole multiples of its time limit (an hour at least;
			  * 0 without one), 100 at most; 100 once it starves */
	int64_t boost; /* added by the site; the whole priority if an operator has fixed it */
	int64_t nice; /* subtracted by its owner */
	int64_t total; /* age + fair_share + size + qos + stretch + boost - nice */
};

struct policy policy_default(void);

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

#endif
