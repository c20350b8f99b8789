/* sched.h - one scheduling cycle
 *
 * Owns     the policy. Touches memory only: no clock, no files, no random numbers, no floats.
 * Used by  flow/schedule, gpuq-sim, tests, start estimates.
 *
 * The same snapshot gives the same plan on every machine, in whatever order its objects were added.
 * Work is bounded by counting, never by a clock. See gpuqd-scheduling(7). */
#ifndef GPUQD_SCHED_SCHED_H
#define GPUQD_SCHED_SCHED_H

#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"

/* Run one cycle. in must be sealed. The plan and everything it points to live in mem, except
 * strings of the snapshot, which must outlive the plan.
 * Returns 0, GPUQ_EINVAL (not sealed), GPUQ_ENOMEM; on failure *out is untouched. */
int sched_cycle(const struct snapshot *in, struct gpuq_arena *mem, struct plan *out,
		struct gpuq_err *err);

/* The same in steps, for a loop that must not be blocked for all of it. The plan is that of
 * sched_cycle(), however the steps were cut: a cycle sees its snapshot and nothing else, which must
 * live until the end, as mem must. */
struct sched_run;
int sched_begin(const struct snapshot *in, struct gpuq_arena *mem, struct sched_run **out,
		struct gpuq_err *err); /* as sched_cycle() */
/* Do about so much of it, in node visits (0 = all): the turn of one job at least, or the work that
 * is done for all of them at once. Returns whether there is more to do. */
bool sched_go_on(struct sched_run *r, uint64_t work);
/* Do the rest, and return the plan. Frees r; returns as sched_cycle(). */
int sched_end(struct sched_run *r, struct plan *out, struct gpuq_err *err);
void sched_drop(struct sched_run *r); /* abandon, at any step; NULL is allowed */

#endif
