/* left_out.h - pending jobs that the next cycle need not evaluate
 *
 * Owns     what is kept of a cycle that started and preempted nothing.
 * Touches  memory only.
 * Used by  flow/schedule, tests.
 *
 * A job that a cycle could not start cannot start in the next one either, if since then no capacity
 * was released, no limit or share has grown, and the job has not changed. The next snapshot may then
 * leave it out: it has the jobs that hold capacity, those with a start reservation, and those that are
 * new; snapshot.left_out has the requests of the others, which count in the shares of their queues.
 * If the plan for it decides nothing, and shares and start reservations are those of the previous
 * cycle, it is the plan for all jobs; otherwise it is dropped, and all jobs are evaluated.
 * See gpuqd-scheduling(7), BOUNDS. */
#ifndef GPUQD_SCHED_LEFT_OUT_H
#define GPUQD_SCHED_LEFT_OUT_H

#include "gpuqd/sched/quota/plan.h"

struct left_out {
	int64_t *wanted; /* by those without a start reservation: as snapshot.left_out */
	int64_t *fair, *demand; /* shares, and demand of all jobs, likewise */
	size_t n; /* of each */
	struct snap_key *reserved; /* jobs with a start reservation */
	uint32_t n_reserved;
};

/* Keep what the next cycle needs of a plan. Returns false, with out empty, if the plan decides something
 * or was cut short, so that all jobs must be evaluated again, or without memory. */
bool left_out_take(struct left_out *out, const struct snapshot *s, const struct plan *p);
/* True if the plan for a snapshot without those jobs is the plan for all jobs. */
bool left_out_confirmed(const struct left_out *l, const struct snapshot *s, const struct plan *p);
void left_out_done(struct left_out *l);

#endif
