/* emit.h - a job with places becomes an action of the plan
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  sched.c, preempt.c, relocate_settle.c, timeline_starve.c. */
#ifndef GPUQD_SCHED_TIMELINE_EMIT_H
#define GPUQD_SCHED_TIMELINE_EMIT_H

#include "gpuqd/sched/quota/plan.h"

struct cycle;

/* Emit the places of the current job as an action for its next element. A job that starts gets its
 * time limit and is entered in the timeline. */
void emit_next(struct cycle *c, enum plan_kind kind, uint32_t job, uint32_t flavor);
/* Count one element of the job as started. */
void emit_count(struct cycle *c, uint32_t job, uint32_t flavor);
/* Start the current job, whose next element has its places, before its turn: the queue order does
 * not exist yet, and no job has preempted others. */
void emit_start(struct cycle *c, uint32_t job, uint32_t flavor);

#endif
