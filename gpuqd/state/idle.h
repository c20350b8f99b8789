/* idle.h - how long the devices of a job have been idle
 *
 * Owns     windows of one attempt: which of them were idle, one after the other.
 * Touches  memory only.
 * Used by  state/model (measurements), flow/dispatch (the idle rule), sim.
 *
 * Time since the attempt's start is cut into windows. A window is idle when some measurement
 * found all devices of the job idle, and none found a device busy. A window without a
 * measurement of all devices is not idle: a job that is not measured is not stopped.
 */
#ifndef GPUQD_STATE_IDLE_H
#define GPUQD_STATE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

enum idle_use {
	IDLE_UNKNOWN, /* no data for some device */
	IDLE_NOTHING, /* all of them idle */
	IDLE_BUSY, /* one of them busy */
};

struct idle_clock {
	int64_t start_us, window_us; /* of the attempt; length of a window, > 0 */
};

struct idle {
	bool any; /* there was a measurement; else nothing below counts */
	bool nothing, busy; /* measured in the open window */
	bool partial; /* the open window began before the first measurement */
	int64_t open_us; /* when that window began */
	int64_t since_us; /* when the first of the adjacent idle windows before it began */
	bool idle; /* there is one */
};

/* Add a measurement. at_us does not run backwards; one before the start counts as at it. */
void idle_measured(struct idle *i, const struct idle_clock *c, int64_t at_us, enum idle_use use);

/* Add the same use all the time from from_us on and before to_us. */
void idle_steady(struct idle *i, const struct idle_clock *c, int64_t from_us, int64_t to_us,
		 enum idle_use use);

/* Return the length of the adjacent whole idle windows up to now; 0 = none. */
int64_t idle_for_us(const struct idle *i, const struct idle_clock *c, int64_t now_us);

/* Return when idle_for_us() reaches limit_us if the devices stay idle from the last measurement on;
 * GPUQ_UNLIMITED where there are no measurements yet. */
int64_t idle_due_us(const struct idle *i, const struct idle_clock *c, int64_t limit_us);

#endif
