/* estimate.h - when will it start, and what keeps it until then
 *
 * Owns     nothing: estimates live in the caller's arena.
 * Touches  memory only.
 * Used by  gpuq-sim run --estimate; flow (why, plan).
 *
 * A sealed snapshot is lived on in virtual time: the same sched_cycle(), a clock that
 * jumps to the next moment at which something ends or becomes possible, nobody new, no
 * claims on what others hold. Everything is taken to run as long as it may, so that the
 * start is rather too late than too early; what has no walltime never ends.
 */
#ifndef GPUQD_CORE_ESTIMATE_H
#define GPUQD_CORE_ESTIMATE_H

#include <stdint.h>

#include "gpuqd/core/plan.h"
#include "gpuqd/core/snapshot.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"

#define ESTIMATE_EVENTS_MAX 2000

/* From at_us on this was the first reason why the job waited. */
struct estimate_change {
	int64_t at_us;
	struct plan_reason why;
};

struct estimate {
	uint32_t job; /* of the snapshot; of an array, its next element */
	int64_t start_us; /* GPUQ_UNLIMITED = no estimate */
	struct estimate_change *changes; /* until it starts, in order of time */
	uint32_t n_changes;
};

struct estimate_config {
	uint32_t max_events; /* 0 = ESTIMATE_EVENTS_MAX */
	/* By job of the snapshot: how long it is thought to run, at most its walltime;
	 * GPUQ_UNLIMITED = nobody knows. NULL = all as long as they may. */
	const int64_t *run_us;
};

/* Estimates for n pending jobs, jobs[i] in out[i]. s itself stays as it is. A cycle runs
 * for each event: the time this takes is that of so many cycles, and it stops as soon as
 * all that were asked for have started. Returns 0; GPUQ_EINVAL (not sealed, a job that
 * is not there or does not wait); GPUQ_ENOMEM, and then out is untouched. */
int estimate_starts(const struct snapshot *s, const struct estimate_config *config,
		    const uint32_t *jobs, uint32_t n, struct gpuq_arena *mem, struct estimate *out,
		    struct gpuq_err *err);

#endif
