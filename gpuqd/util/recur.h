/* recur.h - when a slice of the calendar that comes again comes next
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  site/site_calendar, snapshot/snapshot_take_calendar, sched/timeline, gpuq-sim.
 */
#ifndef GPUQD_UTIL_RECUR_H
#define GPUQD_UTIL_RECUR_H

#include <stddef.h>
#include <stdint.h>

#include "gpuqd/util/zone.h"

#define RECUR_MAX 64
#define RECUR_LEAST 2 /* this many are always known, however far away */

struct recur {
	int64_t start_us, duration_us; /* of the first one; duration_us > 0 */
	int64_t every_us; /* >= duration_us; 0 = once */
	int64_t until_us; /* none begins at or after it; 0 = no end */
	const struct zone *zone; /* periods of whole days keep its wall clock; NULL = UTC */
	const int64_t *except_us; /* days on which none begins, as they would begin in UTC */
	size_t n_except;
};

/* Return the start of the one that covers t_us, or else of the first after it; GPUQ_UNLIMITED if
 * none is left. */
int64_t recur_at(const struct recur *r, int64_t t_us);

/* Compute the starts of those that are not over at now_us and begin within a week; later ones are
 * returned when they are nearer. Ascending; returns their number. */
uint32_t recur_starts(const struct recur *r, int64_t now_us, int64_t starts_us[RECUR_MAX]);

#endif
