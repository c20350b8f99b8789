/* nominated.h - nominated placements, and nodes once everything that is ending has ended
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, preempt.c, relocate_settle.c, sched.c. */
#ifndef GPUQD_SCHED_TIMELINE_NOMINATED_H
#define GPUQD_SCHED_TIMELINE_NOMINATED_H

#include "gpuqd/sched/quota/cycle.h"

/* Take the nominated placements of the snapshot into account. */
void nominated_init(struct cycle *c);
/* Start jobs whose nominated places are free; release placements that cannot be kept. */
void nominated_serve(struct cycle *c);
/* Switch nodes to their later state; and back. */
void nominated_later_enter(struct cycle *c);
void nominated_later_leave(struct cycle *c);
/* Return the thousandths of a flavor's devices that are free later; in that state only. */
int64_t nominated_later_free_milli(struct cycle *c, uint32_t flavor);
bool nominated_later_differs(
	const struct cycle *c); /* true if pods are ending, which frees places later */
/* Note that a pod was signalled in this cycle. */
void nominated_later_pod_leaves(struct cycle *c, const struct snap_alloc *a);
/* Nominate the places of the current job, found in the later state and undone, for it. */
void nominated_places(struct cycle *c, uint32_t job);

#endif
