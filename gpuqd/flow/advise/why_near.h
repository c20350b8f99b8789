/* why_near.h - the part of the state that bears on one waiting job
 *
 * Owns     nothing.
 * Touches  memory only. Any thread.
 * Used by  why.c, so that a try (why_try.h) costs what the part does.
 *
 * Whatever runs or was promised something is in it, the job itself, all that the plan does
 * something with, and of the others in each queue those that are served first. Behind them so
 * many elements like the last one stand that the queue asks for as many devices as before. What
 * is found on the part is therefore a guess that has to be confirmed on the whole state.
 */
#ifndef GPUQD_FLOW_ADVISE_WHY_NEAR_H
#define GPUQD_FLOW_ADVISE_WHY_NEAR_H

#include "gpuqd/sched/quota/plan.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/buf.h"
#include "libgpuq/err.h"

/* p: the plan of s, which was sealed from what `packed` holds. Append the part to `near`, packed
 * likewise; nothing where it would be hardly less than all. *n_objects: what a try on it looks
 * at. Returns 0, GPUQ_ENOMEM. */
int why_near(const struct snapshot *s, const struct plan *p, uint32_t job,
	     const struct gpuq_buf *packed, struct gpuq_buf *near, uint32_t *n_objects,
	     struct gpuq_err *err);

#endif
