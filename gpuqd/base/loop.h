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

#include <stdint.h>

#include "libgpuq/err.h"

struct event_base;
struct loop;

typedef void (*loop_fn)(void *arg);

int loop_new(struct loop **out, struct gpuq_err *err);
void loop_free(struct loop *l); /* after everything registered with it */
struct event_base *loop_base(struct loop *l);

int64_t loop_now_us(const struct loop *l); /* wall clock of this turn, us since 1970 */
int64_t loop_mono_us(const struct loop *l); /* monotonic clock of this turn */

/* The monotonic clock itself, for how long something took. */
int64_t loop_clock_us(void);

/* How long turns took: their work, as the thread's own processor time, so that waiting and
 * other programs do not count. */
struct loop_stats {
	uint64_t turns;
	uint64_t over_10ms, over_50ms; /* turns above that */
	int64_t longest_us, last_slow_us; /* wall clock of the last one above 50 ms; 0 = never */
};
void loop_stats(const struct loop *l, struct loop_stats *out);

/* Run fn at the end of each turn; hooks run in the order of registration. */
void loop_add_hook(struct loop *l, loop_fn fn, void *arg);

/* Run fn(arg) once, after delay_us (>= 0). The handle may be cancelled until it ran;
 * fn must not free the loop. */
struct loop_timer;
struct loop_timer *loop_after(struct loop *l, int64_t delay_us, loop_fn fn, void *arg);
void loop_cancel(struct loop_timer *t); /* NULL is fine */

/* Run fn in the loop whenever the process gets signo. Returns 0 or GPUQ_ENOMEM. */
int loop_on_signal(struct loop *l, int signo, loop_fn fn, void *arg, struct gpuq_err *err);

/* Make the current or next turn end promptly and start another one (so that hooks run). */
void loop_kick(struct loop *l);

/* Until loop_stop(), whose code it returns; may then be called again. */
int loop_run(struct loop *l);
void loop_stop(struct loop *l, int code);

#endif
