/* census.h - what every device is at this moment: exactly one of seven things
 *
 * Owns     the counting, and the check that it comes out even.
 * Touches  memory only.
 * Used by  state/view/view.c (status.get), flow/census_watch.c (freezes a node that does not), tests.
 *
 * A device of a node that is away or not ready, or that is not healthy, is lost. Of the
 * others, what pods of ours and of others have is allocated; of the rest, in this order:
 * held for a start that was promised there, draining, stranded (its node is left alone or
 * lacks cores, memory or slots), reserved by the calendar, else free.
 */
#ifndef GPUQD_STATE_VIEW_CENSUS_H
#define GPUQD_STATE_VIEW_CENSUS_H

#include "gpuqd/state/model.h"
#include "libgpuq/arena.h"

enum census_kind {
	CENSUS_ALLOCATED,
	CENSUS_HELD,
	CENSUS_RESERVED,
	CENSUS_FREE,
	CENSUS_STRANDED,
	CENSUS_DRAINING,
	CENSUS_LOST,
	N_CENSUS_KINDS
};

extern const char *const census_words[N_CENSUS_KINDS];

/* Why devices are stranded. */
#define N_CENSUS_CAUSES 5
extern const char *const census_causes[N_CENSUS_CAUSES];

/* In thousandths of devices; the kinds add up to total, the causes to what is stranded. */
struct census {
	int64_t milli[N_CENSUS_KINDS], total_milli;
	int64_t stranded_milli[N_CENSUS_CAUSES];
};

/* What stands on a device now; thousandths. */
struct census_slot {
	int64_t taken_milli;
	int64_t promised_milli;
};

/* By device; what others hold without saying which is taken to be the last free ones, as
 * the scheduler takes the first. slots: n_devices, zeroed. */
void census_slots(const struct node *n, struct census_slot *slots);

/* All nodes at now_us (for the calendar). False: no memory. */
bool census_take(const struct model *m, int64_t now_us, struct gpuq_arena *a, struct census *out);

/* Why free devices of a node are of no use: "cpu", "memory" or "pods", of which none is left
 * there for a pod that asks for some; "suspect", "frozen". NULL = they are of use. */
const char *census_stranded(const struct node *n, int64_t now_us);

/* Is each of its devices given away once at most, and does it exist? Returns 0, or
 * GPUQ_ECORRUPT and in err what is wrong with it. */
int census_check(const struct node *n, struct gpuq_err *err);

#endif
