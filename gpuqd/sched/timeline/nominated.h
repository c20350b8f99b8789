/* nominated.h - places that were promised, and nodes once all that leaves has left
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, preempt.c, relocate_settle.c, sched.c.
 */
#ifndef GPUQD_SCHED_TIMELINE_NOMINATED_H
#define GPUQD_SCHED_TIMELINE_NOMINATED_H

#include "gpuqd/sched/quota/cycle.h"

/* Take promises of the snapshot into account. */
void nominated_init(struct cycle *c);
/* Start promised jobs whose places are free; release what cannot be kept. */
void nominated_serve(struct cycle *c);
/* Nodes as they will be; and as they are. */
void nominated_later_enter(struct cycle *c);
void nominated_later_leave(struct cycle *c);
/* Thousandths of a flavor's devices that are free later; while nodes stand so. */
int64_t nominated_later_free_milli(struct cycle *c, uint32_t flavor);
bool nominated_later_differs(
	const struct cycle *c); /* does anything leave that nobody was promised? */
/* A pod was told to leave in this cycle. */
void nominated_later_pod_leaves(struct cycle *c, const struct snap_alloc *a);
/* The places of the job at hand, found later and undone, are its own from now on. */
void nominated_places(struct cycle *c, uint32_t job);

#endif
