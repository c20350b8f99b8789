/* futile.h - searches for victims that failed, and those that would
 *
 * Owns     the requests that failed since the last decision (cycle.futile).
 * Touches  memory only.
 * Used by  preempt.c.
 *
 * The search for victims is the most expensive part of a cycle. Where it found none for a job, it
 * is not repeated for one of the same queue, priority and devices that requests no less and was
 * submitted no earlier: a queue of jobs that differ in cpus and times costs one search, not one
 * each. */
#ifndef GPUQD_SCHED_PREEMPT_FUTILE_H
#define GPUQD_SCHED_PREEMPT_FUTILE_H

#include "gpuqd/sched/preempt/preempt_int.h"

/* True if the search would fail. k gets the same reasons as the search that was made. */
bool futile_known(const struct cycle *c, uint32_t job, struct claim *k);
/* Note that every search for the job failed. */
void futile_note(struct cycle *c, uint32_t job, const struct claim *k);

#endif
