/* schedule.h - when to decide, on what, and what follows
 *
 * Owns     the debounce: one cycle soon after a change, and at the next instant that matters
 *          by time alone; the cycle in progress, which may take several turns of the loop:
 *          changes meanwhile are for the next one.
 * Touches  the journal; calls the pure core (snapshot, sched_cycle).
 * Used by  daemon.c (makes it), flow/reconcile (reports that the cluster is in view).
 */
#ifndef GPUQD_FLOW_SCHEDULE_H
#define GPUQD_FLOW_SCHEDULE_H

#include <stdbool.h>

#include "gpuqd/state/model.h"
#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/err.h"

struct journal;
struct schedule;
struct spool;

int schedule_new(struct journal *j, struct schedule **out, struct gpuq_err *err);
void schedule_free(struct schedule *s);

/* No job is placed until the cluster has been listed: foreign pods are not known before. */
void schedule_ready(struct schedule *s, bool ready);
bool schedule_is_ready(const struct schedule *s);
void schedule_kick(struct schedule *s); /* report a change */

/* Called after each cycle whose decisions are carried out; NULL = no call. The plan lives until it
 * returns. */
typedef void (*schedule_plan_fn)(void *arg, const struct snapshot *s, const struct plan *p);
void schedule_on_plan(struct schedule *s, schedule_plan_fn fn, void *arg);

/* Statistics of cycles since the start, and the next one. */
struct schedule_stats {
	uint64_t n_cycles, n_failed;
	uint64_t n_cut_short; /* that reached the bound on their work */
	uint64_t n_places, n_evictions; /* decided */
	uint64_t n_dropped; /* actions that no longer applied when they were carried out */
	int64_t last_us, most_us, sum_us; /* time of cycles, snapshot included */
	int64_t last_at_us; /* when the last one ended; wall clock, 0 = none yet */
	uint64_t last_steps; /* node visits of the last one */
	uint32_t n_jobs, n_reserved; /* in the last one; start reservations in it */
	int64_t wake_us; /* next instant that matters by time alone; GPUQ_UNLIMITED */
};
void schedule_stats(const struct schedule *s, struct schedule_stats *out);

/* Record every cycle there from now on; NULL = none. It must outlive the schedule. */
void schedule_record(struct schedule *s, struct spool *to);

#endif
