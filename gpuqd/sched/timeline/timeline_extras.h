/* timeline_extras.h - MIG instances and other countable resources over time
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  timeline.c, timeline_displace.c, timeline_free.c, timeline_pack.c, timeline_plan.c.
 */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_EXTRAS_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_EXTRAS_H

#include "gpuqd/sched/timeline/timeline_int.h"

/* True if the request includes countable resources. */
bool timeline_extras_asked(const struct snap_request *r);
/* Note that what a pod takes on a node is released at end_us; sign -1: taken then. */
void timeline_extras_end(struct cycle *c, uint32_t node, const struct need *one, int sign,
			 int64_t end_us);
/* The same for so much of one slot; n < 0: taken then. */
void timeline_extras_end_at(struct cycle *c, size_t slot, int64_t n, int64_t end_us);
/* Compute them at t, as timeline_free_at(). */
void timeline_extras_free_at(const struct cycle *c, uint32_t job, int64_t t, struct amounts *out);
/* Lower them to the minimum that holds beginning between t and end leave. */
void timeline_extras_least(const struct cycle *c, uint32_t job, int64_t t, int64_t end,
			   struct amounts *least);
/* Hold what one pod needs on a node during [start, end) for a job. */
void timeline_extras_hold(struct cycle *c, uint32_t job, uint32_t node, const struct need *one,
			  int64_t start, int64_t end);
/* As timeline_spend(). */
void timeline_extras_spend(struct cycle *c, uint32_t node, int64_t start, int64_t end,
			   const struct need *n, int sign);
/* Remove the holds of a job; or take them from (1) or return them to (-1) all holds. */
void timeline_extras_unplan(struct cycle *c, uint32_t job);
void timeline_extras_own(struct cycle *c, uint32_t job, int sign);
/* Withhold on nodes what holds that begin before end count on. Returns what of each hold's nodes is
 * kept from the job, for timeline_extras_release(). */
int64_t *timeline_extras_withhold(struct cycle *c, uint32_t job, int64_t end);
void timeline_extras_release(struct cycle *c, const int64_t *kept);
/* Return the first hold to which the current places, or the pods of a running job, leave too
 * little; or NULL. Only holds that begin before end count. */
const struct extra_hold *timeline_extras_clash(const struct cycle *c, uint32_t job, bool runs,
					       int64_t end);
/* True if the current places leave this hold too little. */
bool timeline_extras_bars(const struct cycle *c, const struct extra_hold *h, uint32_t job,
			  bool runs);

#endif
