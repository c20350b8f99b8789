/* move.h - what the parts of consolidation know of one another
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  move*.c only.
 */
#ifndef GPUQD_CORE_MOVE_H
#define GPUQD_CORE_MOVE_H

#include "gpuqd/core/claim.h"

#define MOVED_MAX 4 /* jobs */

/* Places of one job that are kept while those of others are looked for. */
struct kept {
	uint32_t unit; /* of a mover; SNAP_NONE = of the claimant */
	uint32_t flavor;
	struct snap_alloc *pods;
	uint32_t n_pods;
};

struct moving {
	struct claim *k;
	uint32_t movers[MOVED_MAX]; /* units */
	uint32_t n_movers;
	struct kept kept[MOVED_MAX + 1];
	uint32_t n_kept, n_packs;
	int64_t lost;
};

/* move_settle.c: keep the places that were found for the job at hand, of that unit (SNAP_NONE
 * = the claimant), while those of others are looked for; false: no memory. */
bool move_keep_places(struct cycle *c, struct moving *m, uint32_t job, uint32_t unit,
		      uint32_t flavor);
/* All that are kept are free again, and forgotten. */
void move_give_up_places(struct cycle *c, struct moving *m);
/* All places are found, and kept: movers leave, and so do the claim's victims, of both only
 * who has to; what they are to have is promised to them. */
void move_settle(struct cycle *c, struct moving *m);

#endif
