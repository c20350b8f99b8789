/* timeline_plan.h - start reservations of blocked jobs
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  order.c, sched.c, timeline.c, timeline_displace.c, timeline_pack.c and others. */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_PLAN_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_PLAN_H

#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/timeline/timeline.h"

struct future;
struct planned;

/* True if limits and quotas allow one start once there are licenses; else false and *why. */
bool timeline_may_plan(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why);
/* Give a blocked job a start reservation. False: it gets none (too many jobs have one, or nothing
 * that is in its way has an end). */
bool timeline_reserve(struct cycle *c, uint32_t job, uint32_t flavor);
/* True if it would get none whatever its length. */
bool timeline_full(const struct cycle *c, uint32_t job);
/* After the last job was served: preempt jobs that run ahead of start reservations in time, and
 * turn the start reservations into actions. */
void timeline_finish(struct cycle *c);

bool timeline_has_plan(const struct cycle *c, uint32_t job);
/* Return the job's start reservation, or NULL. */
const struct planned *timeline_planned(const struct future *f, uint32_t job);
/* Remove the job's start reservation. */
void timeline_unplan(struct cycle *c, uint32_t job);
/* Find the first moment at which the job could start on that flavor, and hold its places from then
 * on. A starving job may have those that are free now. */
bool timeline_plan(struct cycle *c, uint32_t job, uint32_t flavor, bool starving);
/* The same at a moment no later than `latest`. */
bool timeline_plan_until(struct cycle *c, uint32_t job, uint32_t flavor, int64_t latest,
			 bool starving);

/* The same at t and at no other moment. */
bool timeline_plan_at(struct cycle *c, uint32_t job, uint32_t flavor, int64_t t, bool starving);

/* Exclude the job's own holds from the spare amounts (sign -1), or include them again (1): a hold
 * never counts against its own job. */
void timeline_own(struct cycle *c, uint32_t job, int sign);

#endif
