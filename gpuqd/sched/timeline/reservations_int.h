/* reservations_int.h - what the files of reservations know of each of them
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  reservations.c, reservations_clear.c. i: index of a reservation. */
#ifndef GPUQD_SCHED_TIMELINE_RESERVATIONS_INT_H
#define GPUQD_SCHED_TIMELINE_RESERVATIONS_INT_H

#include "gpuqd/sched/quota/cycle.h"

/* Preempt jobs that are in the way of reservations that have begun. */
void reservations_clear(struct cycle *c);

/* True if it keeps nothing any more. */
bool reservations_over(const struct cycle *c, uint32_t i);
/* True if devices of that node can be part of the amount. */
bool reservations_counts_there(const struct cycle *c, const struct snap_reservation *r,
			       uint32_t node);
/* Return the devices of an amount that its owners have taken since it began, also in this cycle. */
int64_t reservations_taken(const struct cycle *c, uint32_t i);
/* Return the free devices that an amount keeps for them beside those. */
int64_t reservations_kept(const struct cycle *c, uint32_t i);

#endif
