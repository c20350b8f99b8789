/* schedule.h - when to decide, on what, and what follows
 *
 * Owns     the debounce: one cycle soon after something changed, and at the next
 *          instant that matters by time alone; the cycle under way, which may take several
 *          turns of the loop: what changes meanwhile is the next one's.
 * Touches  the journal; calls the pure core (snapshot, sched_cycle).
 * Used by  daemon.c (makes it), flow/reconcile (tells it that the cluster is in view).
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

/* Nothing is placed until the cluster has been listed: foreign pods are not known. */
void schedule_ready(struct schedule *s, bool ready);
void schedule_kick(struct schedule *s); /* something changed */

/* Called after each cycle whose decisions are carried out; NULL = nobody is. The plan lives
 * until it returns. */
typedef void (*schedule_plan_fn)(void *arg, const struct snapshot *s, const struct plan *p);
void schedule_on_plan(struct schedule *s, schedule_plan_fn fn, void *arg);

/* How cycles went since the start, and what the next one is up to. */
struct schedule_stats {
	uint64_t n_cycles, n_failed;
	uint64_t n_cut_short; /* that reached the bound on their work */
	uint64_t n_places, n_evictions; /* decided */
	uint64_t n_dropped; /* actions that did not stand any more when they were carried out */
	int64_t last_us, most_us, sum_us; /* that cycles took, snapshot included */
	int64_t last_at_us; /* when the last one ended; wall clock, 0 = none yet */
	uint64_t last_steps; /* node visits of the last one */
	uint32_t n_jobs, n_reserved; /* that the last one saw; planned starts in it */
	int64_t wake_us; /* next instant that matters by time alone; GPUQ_UNLIMITED */
};
void schedule_stats(const struct schedule *s, struct schedule_stats *out);

/* From now on every cycle is recorded there; NULL = none is. It must outlive the schedule. */
void schedule_record(struct schedule *s, struct spool *to);

#endif
