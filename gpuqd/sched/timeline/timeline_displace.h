/* timeline_displace.h - starting where others have start reservations
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  sched.c. */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_DISPLACE_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_DISPLACE_H

#include "gpuqd/sched/quota/cycle.h"

/* As pack_job, where start reservations that are in the way can be had elsewhere at their times:
 * they are moved there. The job is to start at its places at once. */
bool timeline_displace(struct cycle *c, uint32_t job, uint32_t flavor);
/* As pack_job, for a job whose reservation has begun, on what that keeps: start reservations of
 * others in the way are planned again, for later. The job is to start at its places at once. */
bool timeline_enter(struct cycle *c, uint32_t job, uint32_t flavor);

#endif
