/* eligibility.h - what keeps a job from being considered at all
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  sched.c.
 */
#ifndef GPUQD_SCHED_ELIGIBILITY_H
#define GPUQD_SCHED_ELIGIBILITY_H

#include "gpuqd/sched/quota/cycle.h"

/* Things that keep a job from being looked at at all. Adds its reasons to whys
 * and returns true when there is one. */
bool eligibility_closed(struct cycle *c, uint32_t job);

#endif
