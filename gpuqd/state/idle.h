/* idle.h - how long the devices of a job have lain idle
 *
 * Owns     windows of one attempt: which of them were idle, one after the other.
 * Touches  memory only.
 * Used by  state/model (what was measured), flow/dispatch (the idle rule), sim.
 *
 * Time since the attempt's start is cut into windows. A window is idle when it was measured
 * that all devices of the job did nothing, and never that one of them did something. A
 * window in which that was not measured is not idle: who is not seen is not stopped.
 */
#ifndef GPUQD_STATE_IDLE_H
#define GPUQD_STATE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

enum idle_use {
	IDLE_UNKNOWN, /* of some device nothing is known */
	IDLE_NOTHING, /* all of them did nothing */
	IDLE_BUSY, /* one of them did something */
};

struct idle_clock {
	int64_t start_us, window_us; /* of the attempt; how long a window is, > 0 */
};

struct idle {
	bool any; /* something was measured; else nothing below counts */
	bool nothing, busy; /* was measured in the window that is open */
	bool partial; /* the open window began before anybody looked */
	int64_t open_us; /* when that window began */
	int64_t since_us; /* when the first of the idle windows just before it began */
	bool idle; /* there is one */
};

/* One measurement. at_us does not run backwards; one before the start counts as at it. */
void idle_measured(struct idle *i, const struct idle_clock *c, int64_t at_us, enum idle_use use);

/* The same use all the time from from_us on and before to_us. */
void idle_steady(struct idle *i, const struct idle_clock *c, int64_t from_us, int64_t to_us,
		 enum idle_use use);

/* Whole idle windows in a row up to now, as a time; 0 = none. */
int64_t idle_for_us(const struct idle *i, const struct idle_clock *c, int64_t now_us);

/* When idle_for_us() reaches limit_us if nothing is done from the last measurement on;
 * GPUQ_UNLIMITED where no measurements yet. */
int64_t idle_due_us(const struct idle *i, const struct idle_clock *c, int64_t limit_us);

#endif
