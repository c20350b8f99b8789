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

#define POLICY_DEFAULT INT64_C(-1) /* of a weight: the product's own */

/* Weights of the terms of a job's priority: points, or POLICY_DEFAULT. */
struct policy_weights {
	int64_t age, fair_share, size, stretch; /* points of the terms of priority */
	int64_t qos; /* of the highest class of the site; by default every class stands above
		      * all below it, whatever else they have */
	int64_t max_age_us; /* a job that waited as long has all points of its age; > 0 */
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
	struct gpuq_strlist urls; /* beginnings of URLs that users may name; none = none */
	struct policy_hook hooks[POLICY_HOOKS_MAX];
	unsigned n_hooks;
};

struct policy {
	int64_t usage_half_life_us; /* 0 = usage is never forgotten */
	int64_t usage_k_milli; /* weight of past usage between queues, in thousandths */
	struct policy_weights weights;
	struct policy_sched sched; /* `scheduler' */
	int64_t idle_window_us; /* > 0: idle time is counted in such pieces (idle.h) */
	struct policy_notify notify;
};

/* The terms of a priority: points that add up, as of the last cycle. */
struct priority_terms {
	int64_t age; /* weight x eligible wait / max_age, evictions count as waiting; <= weight */
	int64_t fair_share; /* weight x rank of its user in the fair tree / users */
	int64_t size; /* weight x its devices / all devices */
	int64_t qos; /* weight x class / qos_full */
	int64_t stretch; /* weight x whole times that it waited as long as its walltime (an hour at
			  * least; none without one), 100 times at most; all of them once it starves */
	int64_t boost; /* given by the site; all of it, where an operator has said how much */
	int64_t nice; /* taken off by its owner */
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
