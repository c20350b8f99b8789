/* relocate.h - what the parts of consolidation know of one another
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  move*.c only.
 */
#ifndef GPUQD_SCHED_PREEMPT_RELOCATE_H
#define GPUQD_SCHED_PREEMPT_RELOCATE_H

#include "gpuqd/sched/preempt/preempt.h"

#define MOVED_MAX 4 /* jobs */
#define SETS_MAX 16 /* sets of movers that are tried for one job */

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
	uint32_t without_place; /* the mover for which there was none; SNAP_NONE */
	uint32_t homeless[SETS_MAX], n_homeless; /* those of the node at hand, not tried again */
};

/* relocate_settle.c: the units that a mover's gang has beyond it follow the gang up to here. */
uint32_t relocate_surplus_end(const struct cycle *c, uint32_t gang);
/* Take a mover off its nodes, in thought, with all that it has; put it back. */
void relocate_take(struct cycle *c, uint32_t gang);
void relocate_put_back(struct cycle *c, uint32_t gang);
/* Keep the places that were found for the job at hand, of that unit (SNAP_NONE
 * = the claimant), while those of others are looked for; false: no memory. */
bool relocate_keep_places(struct cycle *c, struct moving *m, uint32_t job, uint32_t unit,
			  uint32_t flavor);
/* All that are kept are free again, and forgotten. */
void relocate_give_up_places(struct cycle *c, struct moving *m);
/* All places are found, and kept: movers leave, and so do the claim's victims, of both only
 * who has to; what they are to have is promised to them. */
void relocate_settle(struct cycle *c, struct moving *m);

/* Make room by moving others, of which none loses its place; the claim's victims,
 * if it has any, leave as well. */
bool relocate_for(struct cycle *c, struct claim *k);
/* Would it have room? Nothing is changed. */
bool relocate_fits(struct cycle *c, struct claim *k);

#endif
