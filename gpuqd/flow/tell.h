/* tell.h - what a cycle found out about waiting jobs, into the model
 *
 * Owns     nothing. Touches the journal.
 * Used by  schedule.c, after every cycle.
 *
 * With 100,000 jobs that wait, next to nothing changes for nearly all of them from one
 * cycle to the next: an event is made only for what does.
 */
#ifndef GPUQD_FLOW_TELL_H
#define GPUQD_FLOW_TELL_H

#include "gpuqd/core/plan.h"
#include "gpuqd/core/snapshot.h"
#include "libgpuq/arena.h"

struct journal;

/* Reasons, priority and planned start of every job of the snapshot that still waits with the
 * plan, where the model knows something else. mem: scratch. */
void tell_jobs(struct journal *j, const struct snapshot *sn, const struct plan *p,
	       struct gpuq_arena *mem);

#endif
