/* sched.h - one scheduling cycle
 *
 * Owns     the policy. Touches memory only: no clock, no files, no dice, no floats.
 * Used by  flow/schedule, gpuq-sim, tests, start estimates.
 *
 * The same snapshot gives the same plan on every machine, whatever order its objects
 * were added in. Work is bounded by counting, never by a clock.
 */
#ifndef GPUQD_SCHED_SCHED_H
#define GPUQD_SCHED_SCHED_H

#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"

/* Decide. in must be sealed. The plan and everything it points to live in mem, except
 * strings of the snapshot, which must outlive the plan.
 * Returns 0, GPUQ_EINVAL (not sealed), GPUQ_ENOMEM; on failure *out is untouched. */
int sched_cycle(const struct snapshot *in, struct gpuq_arena *mem, struct plan *out,
		struct gpuq_err *err);

#endif
