/* walltime.h - from ledger time to wall time, and back
 *
 * Owns     the list of members that are instants of the ledger.
 * Touches  nothing.
 * Used by  core and flow, where an instant that people name is compared with ledger time;
 *          rpc and the outbox, for what leaves.
 *
 * The model counts in ledger time (base/clock.h); `ahead_us` is what the wall clock is
 * ahead of it, mostly 0. A tree that leaves the daemon holds wall time, so instants that are wall
 * time by nature (those of a reservation) are put into one as ledger time.
 */
#ifndef GPUQD_UTIL_WALLTIME_H
#define GPUQD_UTIL_WALLTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/arena.h"
#include "libgpuq/units.h"
#include "libgpuq/val.h"

/* Return the instant moved by by_us; 0 (none) and GPUQ_UNLIMITED stay, all others stay positive. */
static inline int64_t walltime_moved(int64_t us, int64_t by_us)
{
	int64_t to;

	if (us <= 0 || us == GPUQ_UNLIMITED || __builtin_add_overflow(us, by_us, &to))
		return us;
	return to > 0 ? to : 1;
}

static inline int64_t walltime_of(int64_t ledger_us, int64_t ahead_us)
{
	return walltime_moved(ledger_us, ahead_us);
}

static inline int64_t walltime_to_ledger(int64_t wall_us, int64_t ahead_us)
{
	return walltime_moved(wall_us, -ahead_us);
}

/* True if a member of this name holds an instant of the ledger, where it holds a number. */
bool walltime_is_instant(const char *key);

/* Return v, a value of the member key (NULL: of none), with wall time for ledger time: v itself
 * where ahead_us is 0, else a tree of its own in a as far as they differ. */
const struct gpuq_val *walltime_tree(struct gpuq_arena *a, const char *key,
				     const struct gpuq_val *v, int64_t ahead_us);

#endif
