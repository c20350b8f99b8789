/* reservations_fit.h - is there enough of everything that the calendar promises?
 *
 * Owns     nothing. Touches memory only.
 * Used by  flow/admit/apply (a reservation is made or changed), gpuq-sim.
 *
 * What jobs run or will want does not matter here: a reservation takes precedence over
 * them. It does not fit where others that were there before it leave too little, of the
 * flavor and in the pool that it asks for, or stand on the nodes that it names. One that
 * asks for more than there is altogether waits for machines that are still to come: that
 * is no conflict. Maintenance is never in conflict: it says what is not there.
 */
#ifndef GPUQD_SCHED_TIMELINE_RESERVATIONS_FIT_H
#define GPUQD_SCHED_TIMELINE_RESERVATIONS_FIT_H

#include <stdbool.h>
#include <stdint.h>

#define CALENDAR_NONE UINT32_MAX

struct calendar_node {
	uint32_t flavor, pool; /* numbers of the caller's */
	int64_t milli;
};

struct calendar_entry {
	int64_t start_us, duration_us, every_us; /* every_us 0 = once */
	int64_t milli; /* an amount anywhere; 0 = the nodes */
	uint32_t flavor, pool; /* of an amount; CALENDAR_NONE = any */
	const uint32_t *nodes;
	uint32_t n_nodes;
	bool maintenance;
};

struct calendar_misfit {
	uint32_t with; /* one of the entries that are in its way: it begins last */
	int64_t at_us; /* when there is too little first */
	int64_t have_milli, need_milli; /* then, of what it asks for */
	int64_t earliest_us; /* start at or after its own, from which it fits; GPUQ_UNLIMITED =
			      * none was found */
};

/* Do the entries before `which` leave room for it, from now on? Returns true, or false with
 * *out. Of entries that come again as many occurrences are looked at as anybody plans for. */
bool reservations_fits(const struct calendar_node *nodes, uint32_t n_nodes,
		       const struct calendar_entry *entries, uint32_t which, int64_t now_us,
		       struct calendar_misfit *out);

#endif
