/* loop.h - the daemon's event loop: turns, one `now` per turn, hooks at its end
 *
 * Owns     the event_base and the hooks.
 * Touches  libevent, the clocks.
 * Used by  everything in the daemon that waits for something.
 *
 * A turn is one pass of libevent plus the hooks, in the order they were added:
 * commit, then let effects go, then look whether to schedule. All callbacks of a
 * turn see the same time.
 */
#ifndef GPUQD_BASE_LOOP_H
#define GPUQD_BASE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/base/clock.h"
#include "libgpuq/err.h"

struct event_base;
struct loop;

typedef void (*loop_fn)(void *arg);

int loop_new(struct loop **out, struct gpuq_err *err);
void loop_free(struct loop *l); /* after everything registered with it */
struct event_base *loop_base(struct loop *l);

int64_t loop_now_us(const struct loop *l); /* ledger time of this turn: clock.h */
int64_t loop_wall_us(const struct loop *l); /* wall time of this turn, us since 1970 */
int64_t loop_ahead_us(const struct loop *l); /* wall time less ledger time */
int64_t loop_mono_us(const struct loop *l); /* monotonic clock of this turn */

/* The relation of the clocks, read in this turn; what was stored is taken over by resume, and
 * the wall clock's steps by step. */
const struct clock *loop_clock(const struct loop *l);
void loop_clock_resume(struct loop *l, const struct clock *stored, int64_t newest_us);
void loop_clock_step(struct loop *l, int64_t by_us);

/* The monotonic clock itself, for how long something took. */
int64_t loop_clock_us(void);

/* How long turns took: their work, as the thread's own processor time, so that waiting and
 * other programs do not count. */
struct loop_stats {
	uint64_t turns;
	uint64_t over_10ms, over_50ms; /* turns above that */
	int64_t longest_us, last_slow_us; /* wall clock of the last one above 50 ms; 0 = never */
	const char *longest_part; /* that had most of the longest one; "" = there was none */
	int64_t longest_part_us; /* so much of it */
};
void loop_stats(const struct loop *l, struct loop_stats *out);
void loop_reset_stats(struct loop *l); /* count anew */

/* This turn has been long enough: what can wait for the next one should. */
bool loop_is_late(const struct loop *l);

/* Enter name: work until loop_leave() counts as name's (which must outlive the loop), unless
 * another part is entered in between. The convention is the file's name without ".c". Timers,
 * works, hooks and completions of threads are entered by the loop, under the file that
 * registered them. */
const char *loop_enter(struct loop *l, const char *name);
void loop_leave(struct loop *l, const char *before); /* what loop_enter() returned */
#ifdef __FILE_NAME__
#define LOOP_HERE __FILE_NAME__
#else
#define LOOP_HERE __FILE__
#endif

/* Time that a part of the daemon took of the turns. */
struct loop_part {
	const char *name;
	uint64_t turns; /* that it had some of */
	int64_t sum_us, most_us; /* of all of them; of one */
};
/* Into out, those first that had most of one turn; returns how many there are, at most room. */
size_t loop_parts(const struct loop *l, struct loop_part *out, size_t room);

/* Run fn at the end of each turn; hooks run in the order of registration. */
#define loop_add_hook(l, fn, arg) loop_add_hook_as(l, LOOP_HERE, fn, arg)
void loop_add_hook_as(struct loop *l, const char *name, loop_fn fn, void *arg);

/* Run fn(arg) once, after delay_us (>= 0). The handle may be cancelled until it ran;
 * fn must not free the loop. */
struct loop_timer;
#define loop_after(l, delay_us, fn, arg) loop_after_as(l, LOOP_HERE, delay_us, fn, arg)
struct loop_timer *loop_after_as(struct loop *l, const char *name, int64_t delay_us, loop_fn fn,
				 void *arg);
void loop_cancel(struct loop_timer *t); /* NULL is fine */

/* Work that is too long for one turn: step(arg) is called again and again, a few milliseconds
 * of each turn, until it says that there is no more (false), or until it is cancelled; then
 * the handle is gone. A step is short, and looks anew at what may have changed since the last
 * one. All works share what a turn has for them. May be cancelled in its own step. */
struct loop_work;
typedef bool (*loop_step_fn)(void *arg);
struct loop_work *loop_work_as(struct loop *l, const char *name, loop_step_fn step, void *arg);
#define loop_work(l, step, arg) loop_work_as(l, LOOP_HERE, step, arg)
void loop_work_cancel(struct loop_work *w); /* NULL is fine */

/* Run fn in the loop whenever the process gets signo. Returns 0 or GPUQ_ENOMEM. */
int loop_on_signal(struct loop *l, int signo, loop_fn fn, void *arg, struct gpuq_err *err);

/* Make the current or next turn end promptly and start another one (so that hooks run). */
void loop_kick(struct loop *l);

/* Until loop_stop(), whose code it returns; may then be called again. */
int loop_run(struct loop *l);
void loop_stop(struct loop *l, int code);

#endif
