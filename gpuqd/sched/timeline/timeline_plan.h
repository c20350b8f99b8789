/* timeline_plan.h - planned starts of blocked jobs
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  order.c, sched.c, timeline.c, timeline_displace.c, timeline_pack.c and others.
 */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_PLAN_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_PLAN_H

#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/timeline/timeline.h"

/* Do limits and quotas allow one start, whenever there are licenses? Else false and *why. */
bool timeline_may_plan(struct cycle *c, uint32_t job, uint32_t flavor, struct plan_reason *why);
/* Plan a start for a job that is blocked. False: it gets none (too many have one, or
 * nothing that is in its way has an end). */
bool timeline_reserve(struct cycle *c, uint32_t job, uint32_t flavor);
/* Would it get none whatever its length? */
bool timeline_full(const struct cycle *c, uint32_t job);
/* After the last job was served: who runs ahead of a planned start leaves in time; the
 * planned starts become actions. */
void timeline_finish(struct cycle *c);

/* The job's planned start, or NULL. */
const struct planned *timeline_planned(const struct future *f, uint32_t job);
/* It has none any more. */
void timeline_unplan(struct cycle *c, uint32_t job);
/* Find the first moment at which the job could start on that flavor, and hold its places
 * from then on. A starving job may have those that are free now. */
bool timeline_plan(struct cycle *c, uint32_t job, uint32_t flavor, bool starving);

/* The same at t and no other moment. */
bool timeline_plan_at(struct cycle *c, uint32_t job, uint32_t flavor, int64_t t, bool starving);

/* Take the job's own holds out of what others have to spare (sign -1), or put them back (1):
 * no hold stands against its own job. */
void timeline_own(struct cycle *c, uint32_t job, int sign);

#endif
