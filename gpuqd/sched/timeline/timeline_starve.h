/* timeline_starve.h - starving jobs: pending for too long
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  reservations.c, sched.c. */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_STARVE_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_STARVE_H

#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/timeline/timeline.h"

/* Note how long a job that could start has been pending. */
void timeline_note_waiting(struct cycle *c, uint32_t job);
bool timeline_any_starving(const struct cycle *c);

/* Start the starving jobs, or give them start reservations, before all others. */
void timeline_starving(struct cycle *c);

#endif
