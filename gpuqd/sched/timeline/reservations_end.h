/* reservations_end.h - the jobs that still run when a reservation ends
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  reservations.c, timeline.c, timeline_free.c, timeline_parts.c. */
#ifndef GPUQD_SCHED_TIMELINE_RESERVATIONS_END_H
#define GPUQD_SCHED_TIMELINE_RESERVATIONS_END_H

#include "gpuqd/sched/quota/cycle.h"

/* True if the job owns the reservation (SNAP_NONE: false) and may start in it at t, as far as its
 * end is concerned. */
bool reservations_admits(const struct cycle *c, uint32_t reservation, uint32_t job, int64_t t);

/* Find the jobs that reservations which have begun will end; after their nodes were entered. */
void reservations_find_ends(struct cycle *c);
/* Return when a running job is ended since its reservation ends; GPUQ_UNLIMITED = never. */
int64_t reservations_ends(const struct cycle *c, uint32_t job);
/* Signal the jobs whose time has come. */
void reservations_end(struct cycle *c);

#endif
