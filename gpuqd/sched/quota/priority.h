/* priority.h - a job's rank in its queue, as terms that add up
 *
 * Owns     nothing but what priority_new() puts into the caller's arena.
 * Touches  memory only.
 * Used by  order.c (order within leaf queues), flow/schedule and gpuq-sim (to show them), estimate
 *          and flow/advise (the front of each queue).
 *
 * All terms are whole points, rounded towards zero one by one, as of config.now_us. They order jobs
 * within one queue and mean nothing across queues. Equal sums are ordered by submit time, then id.
 * Preemption compares snap_job.priority alone. */
#ifndef GPUQD_SCHED_QUOTA_PRIORITY_H
#define GPUQD_SCHED_QUOTA_PRIORITY_H

#include "gpuqd/site/policy.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/arena.h"
#include "libgpuq/val.h"

#define PRIORITY_STRETCHES 100

struct priority {
	const struct snapshot *s; /* that the terms are of */
	const uint32_t *ranks; /* by snapshot.usages: fairtree.h */
	int64_t gpus_milli; /* of the cluster */
};

/* Return NULL when there is no memory. Lives as long as both arguments. */
struct priority *priority_new(const struct snapshot *s, struct gpuq_arena *mem);

void priority_terms(const struct priority *p, uint32_t job, struct priority_terms *out);
/* The same for an equivalent job that has been eligible since eligible_us. */
void priority_terms_since(const struct priority *p, uint32_t job, int64_t eligible_us,
			  struct priority_terms *out);

/* Return the terms as a map {age, fairshare, size, qos, stretch, boost, nice}; NULL without
 * memory. */
struct gpuq_val *priority_terms_val(struct gpuq_arena *a, const struct priority_terms *t);

/* Return the sum of the two terms that grow while a job is pending, age and stretch, for a job that
 * has been pending for waited_us and was preempted so often in the last day. */
int64_t priority_of_wait(const struct snap_weights *w, int64_t waited_us, int64_t walltime_us,
			 uint32_t n_evicted);

/* Return the total as a number that sorts: larger is sooner. */
uint64_t priority_key(const struct priority *p, uint32_t job);

/* A pending job among others, and the order in which each queue serves them: by total, then submit
 * time, then number. */
struct priority_turn {
	uint32_t job, queue;
	uint64_t key; /* priority_key() */
	int64_t submit_us;
};
struct priority_turn priority_turn_of(const struct priority *p, uint32_t job);
void priority_sort(struct priority_turn *turns, size_t n); /* queue by queue */

/* True if the job was preempted so often in the last day that it is exempt from fair-share reclaim.
 * It holds until it has run four times the min_runtime_us that protects it (if that is 0: until the
 * day is over). */
bool priority_exempt(const struct snapshot *s, uint32_t job, int64_t min_runtime_us);

#endif
