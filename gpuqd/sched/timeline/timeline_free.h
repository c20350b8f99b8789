/* timeline_free.h - the free capacity of nodes at a later moment
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  reservations.c, timeline_displace.c, timeline_pack.c, timeline_plan.c. */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_FREE_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_FREE_H

#include "gpuqd/sched/timeline/timeline_int.h"

/* Compute the free capacity of nodes at t, as one job sees it: when everything ends in time, and
 * start reservations and reservations (but its own) begin. */
void timeline_free_at(struct cycle *c, uint32_t job, int64_t t, struct amounts *out);
/* The same without the amounts that reservations keep. */
void timeline_free_before_amounts(struct cycle *c, uint32_t job, int64_t t, struct amounts *out);
/* Return what a hold on a node leaves to a job that starts at t. */
struct spare timeline_spare(const struct cycle *c, const struct booked *b, uint32_t job, int64_t t);
/* Compute the minimum of that from t to end. */
void timeline_free_throughout(struct cycle *c, uint32_t job, int64_t t, int64_t end,
			      struct amounts *out);

/* True if this hold is in the way of a job that starts at t. */
bool timeline_bars(const struct cycle *c, const struct booked *b, uint32_t job, int64_t t);

/* Add a release, in its place in the order; and remove it. */
void timeline_give_back(struct cycle *c, const struct release *r);
void timeline_keep(struct cycle *c, const struct release *r);
void timeline_sort(struct cycle *c); /* the releases */

#endif
