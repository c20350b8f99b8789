/* emit.h - a job that has its places becomes an action of the plan
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  sched.c, preempt.c, relocate_settle.c, timeline_starve.c.
 */
#ifndef GPUQD_SCHED_TIMELINE_EMIT_H
#define GPUQD_SCHED_TIMELINE_EMIT_H

#include "gpuqd/sched/quota/plan.h"

struct cycle;

/* The places of the job at hand as an action for the job's next element. A job that starts is
 * given its time and is entered in the timeline. */
void emit_next(struct cycle *c, enum plan_kind kind, uint32_t job, uint32_t flavor);
/* Count one element of the job as started. */
void emit_count(struct cycle *c, uint32_t job, uint32_t flavor);
/* The job at hand, of which the next element has its places, starts on them before its turn:
 * no queue's order is made yet, and no claim. */
void emit_start(struct cycle *c, uint32_t job, uint32_t flavor);

#endif
