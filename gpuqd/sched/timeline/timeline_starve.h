/* timeline_starve.h - jobs that have waited too long
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  reservations.c, sched.c.
 */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_STARVE_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_STARVE_H

#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/timeline/timeline.h"

/* A job could start: note how long it waits. */
void timeline_note_waiting(struct cycle *c, uint32_t job);

/* Jobs that have waited too long start, or get their planned starts, before all others. */
void timeline_starving(struct cycle *c);

#endif
