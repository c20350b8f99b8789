/* recur.h - when a slice of the calendar that comes again comes next
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  snapshot/snapshot_take_calendar, gpuq-sim.
 */
#ifndef GPUQD_UTIL_RECUR_H
#define GPUQD_UTIL_RECUR_H

#include <stdint.h>

#define RECUR_MAX 64
#define RECUR_LEAST 2 /* so many are always known, however far away */

/* Compute the starts of a slice that begins at start_us, lasts duration_us (> 0) and repeats
 * every every_us (>= duration_us; 0 = never): those that are not over at now_us and begin within
 * a week; later ones are returned when they are nearer. Ascending; returns their number. */
uint32_t recur_starts(int64_t start_us, int64_t duration_us, int64_t every_us, int64_t now_us,
		      int64_t starts_us[RECUR_MAX]);

#endif
