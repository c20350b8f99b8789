/* timeline.h - the future state of the cluster, as far as it is known
 *
 * Owns     when current holdings are released; start reservations and reservations, and the spare
 *          capacity of nodes when those begin.
 * Touches  memory only.
 * Used by  order.c, preempt/, sched.c and the files of timeline/, which share timeline_int.h.
 *
 * Start reservations name nodes and counts of devices, never devices: as long as the count holds at
 * every moment, the job that starts finds free ones. The free capacity of a node grows between
 * start reservations and is least where one begins: so these are the moments that are evaluated.
 * Spans of time are half open: [start, end). */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_H

#include "gpuqd/sched/place/nodes.h"

/* Return the number of blocked jobs of each flavor that get a start reservation, and the number of
 * those evaluated for one. */
static inline int64_t timeline_depth(const struct snap_config *config)
{
	return config->backfill_depth;
}

static inline int64_t timeline_tests(const struct snap_config *config)
{
	return config->max_job_test;
}

/* Return how long a job that starts at t may run: its time limit, or what its deadline leaves of it
 * where the job allows less. */
int64_t timeline_walltime(const struct cycle *c, uint32_t job, int64_t t);
/* Return when a job that starts at t is gone: that and its grace period. */
int64_t timeline_end(const struct cycle *c, uint32_t job, int64_t t);

/* Make the timeline from the snapshot and the actions so far; made on first use, and again after it
 * became stale. False, and `failed` is set, without memory. */
bool timeline_look_ahead(struct cycle *c);

/* Take (sign 1) or return (-1) what is on a node during [start, end) from the spare amounts of
 * holds that begin meanwhile. */
void timeline_spend(struct cycle *c, uint32_t node, int64_t start, int64_t end,
		    const struct need *n, int sign);

/* Return the shortest time limit that the job allows. */
int64_t timeline_least_us(const struct snap_job *j);
/* Note when a job that was started ends. */
void timeline_started(struct cycle *c, const struct plan_action *a);
/* Note that running or nominated work was changed otherwise, by actions in the plan: the timeline
 * is made again, and start reservations that have become wrong are planned anew. */
void timeline_changed(struct cycle *c);
/* Make the timeline again if needed, before a job is tentatively removed from its nodes, as the
 * timeline is to show the actual state. */
void timeline_refresh(struct cycle *c);
/* As nodes_shift(), for a running pod: holds that begin before its end have as much more to spare,
 * or less again. */
void timeline_shift(struct cycle *c, const struct snap_alloc *a, int sign);

#endif
