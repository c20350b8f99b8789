/* wallclock.h - the wall clock, which may be set, and the ledger's time, which may not: base/clock.h
 *
 * Owns     how long the machine has slept.
 * Touches  the model through the journal.
 * Used by  daemon.c.
 */
#ifndef GPUQD_WALLCLOCK_H
#define GPUQD_WALLCLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/err.h"

struct journal;
struct loop;
struct loop_timer;
struct model;
struct schedule;

struct wallclock {
	struct loop *loop;
	struct journal *journal;
	struct schedule *schedule;
	struct loop_timer *timer;
	int64_t asleep_us; /* as the clock said last */
};

/* Go on where the database was left, be it that the clock was set meanwhile. */
int wallclock_resume(struct loop *l, struct model *m, bool empty, struct gpuq_err *err);
/* Look at the clock at the end of each turn; before the journal's own hook, which stores what the turn changed. */
void wallclock_hook(struct wallclock *w, struct loop *l);
/* Set where changes go, before the first turn. */
void wallclock_set(struct wallclock *w, struct journal *j, struct schedule *s);
/* Notice from now on that the machine slept. */
void wallclock_start(struct wallclock *w);
void wallclock_stop(struct wallclock *w); /* also one that was not started */

#endif
