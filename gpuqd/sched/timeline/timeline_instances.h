/* timeline_instances.h - MIG instances over time
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  timeline.c, timeline_displace.c, timeline_free.c, timeline_pack.c, timeline_plan.c.
 */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_INSTANCES_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_INSTANCES_H

#include "gpuqd/sched/timeline/timeline_int.h"

/* True if the request includes instances. */
bool timeline_instances_asked(const struct snap_request *r);
/* Note that instances of a profile on a node are released at end_us; n < 0: taken then. */
void timeline_instances_end(struct cycle *c, uint32_t node, uint32_t profile, int64_t n,
			    int64_t end_us);
/* Compute the instances at t, as timeline_free_at(). */
void timeline_instances_free_at(const struct cycle *c, uint32_t job, int64_t t,
				struct amounts *out);
/* Lower them to the minimum that holds beginning between t and end leave. */
void timeline_instances_least(const struct cycle *c, uint32_t job, int64_t t, int64_t end,
			      struct amounts *least);
/* Hold what one pod needs on a node during [start, end) for a job. */
void timeline_instances_hold(struct cycle *c, uint32_t job, uint32_t node, const struct need *one,
			     int64_t start, int64_t end);
/* As timeline_spend(). */
void timeline_instances_spend(struct cycle *c, uint32_t node, int64_t start, int64_t end,
			      const struct need *n, int sign);
/* Remove the holds of a job; or take them from (1) or return them to (-1) all holds. */
void timeline_instances_unplan(struct cycle *c, uint32_t job);
void timeline_instances_own(struct cycle *c, uint32_t job, int sign);
/* Withhold on nodes what holds that begin before end count on. Returns what of each hold's nodes is
 * kept from the job, for timeline_instances_release(). */
int32_t *timeline_instances_withhold(struct cycle *c, uint32_t job, int64_t end);
void timeline_instances_release(struct cycle *c, const int32_t *kept);
/* Return the first hold to which the current places, or the pods of a running job, leave too
 * little; or NULL. Only holds that begin before end count. */
const struct instance_hold *timeline_instances_clash(const struct cycle *c, uint32_t job, bool runs,
						     int64_t end);
/* True if the current places leave this hold too little. */
bool timeline_instances_bars(const struct cycle *c, const struct instance_hold *h, uint32_t job,
			     bool runs);

#endif
