/* futile.h - claims that failed, and those that would
 *
 * Owns     what was asked for in vain since something was decided last (cycle.futile).
 * Touches  memory only.
 * Used by  preempt.c.
 *
 * The search for victims is the dearest part of a cycle. Where it found nobody for a job, it is
 * not made again for one of the same queue, priority and devices that asks for no less and has
 * waited no longer: a queue of jobs that differ in cpus and times costs one search, not one each.
 */
#ifndef GPUQD_SCHED_PREEMPT_FUTILE_H
#define GPUQD_SCHED_PREEMPT_FUTILE_H

#include "gpuqd/sched/preempt/preempt.h"

/* Would it be in vain? k is told why, as the search that was made was. */
bool futile_known(const struct cycle *c, uint32_t job, struct claim *k);
/* All was tried for the job, in vain. */
void futile_note(struct cycle *c, uint32_t job, const struct claim *k);

#endif
