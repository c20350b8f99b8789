/* eligibility.h - conditions that keep a job from being considered
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  sched.c. */
#ifndef GPUQD_SCHED_ELIGIBILITY_H
#define GPUQD_SCHED_ELIGIBILITY_H

#include "gpuqd/sched/quota/cycle.h"

/* Add the reasons that keep the job from being considered to whys; true when there is one. */
bool eligibility_closed(struct cycle *c, uint32_t job);

#endif
