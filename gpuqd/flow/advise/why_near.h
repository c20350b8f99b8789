/* why_near.h - the part of the state that bears on one pending job
 *
 * Owns     nothing.
 * Touches  memory only. Any thread.
 * Used by  why.c, so that a try (why_try.h) costs what the part does.
 *
 * The part contains all jobs that run or have nominated placements, the job itself, all jobs that
 * the plan acts on, and of the others the first of each queue. The last of those gets so many
 * more elements that the queue requests as many devices as before. A change found on the part is
 * therefore a guess, to be confirmed on the whole state.
 */
#ifndef GPUQD_FLOW_ADVISE_WHY_NEAR_H
#define GPUQD_FLOW_ADVISE_WHY_NEAR_H

#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"

/* p: the plan of s, which was sealed from what `packed` holds. Append the part to `near`, packed
 * likewise; nothing if it would hardly be smaller than the whole. *n_objects: the objects that a
 * try on it visits. Returns 0, GPUQ_ENOMEM. */
int why_near(const struct snapshot *s, const struct plan *p, uint32_t job,
	     const struct gpuq_buf *packed, struct gpuq_buf *near, uint32_t *n_objects,
	     struct gpuq_err *err);

#endif
