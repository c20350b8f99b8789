/* relocate.h - the interface between the parts of consolidation
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  preempt.c, relocate*.c, search_set.c. */
#ifndef GPUQD_SCHED_PREEMPT_RELOCATE_H
#define GPUQD_SCHED_PREEMPT_RELOCATE_H

#include "gpuqd/sched/preempt/preempt_int.h"

#define MOVED_MAX 4 /* jobs */
#define SETS_MAX 16 /* sets of jobs to relocate that are tried for one job */

/* Places of one job that are kept while those of others are searched. */
struct kept {
	uint32_t unit; /* of a relocated job; SNAP_NONE = of the preemptor */
	uint32_t flavor;
	struct snap_alloc *pods; /* their new places */
	uint32_t n_pods;
};

struct moving {
	struct claim *k; /* for which room is made */
	uint32_t movers[MOVED_MAX]; /* units */
	uint32_t n_movers;
	struct kept kept[MOVED_MAX + 1];
	uint32_t n_kept, n_packs;
	int64_t lost; /* work of the movers that is done again */
	uint32_t without_place; /* the job to relocate that found no place; SNAP_NONE */
	uint32_t homeless[SETS_MAX], n_homeless; /* those of the current node, not tried again */
};

/* relocate_settle.c: the surplus units of a relocated gang follow it up to here. */
uint32_t relocate_surplus_end(const struct cycle *c, uint32_t gang);
/* Tentatively remove a relocated job from its nodes, with its surplus; put it back. */
void relocate_take(struct cycle *c, uint32_t gang);
void relocate_put_back(struct cycle *c, uint32_t gang);
/* Keep the places found for the current job, of that unit (SNAP_NONE = the preemptor), while those
 * of others are searched; false: no memory. */
bool relocate_keep_places(struct cycle *c, struct moving *m, uint32_t job, uint32_t unit,
			  uint32_t flavor);
/* Release and forget all kept places. */
void relocate_give_up_places(struct cycle *c, struct moving *m);
/* Carry out the decision, with all places found and kept: relocated jobs and the claim's victims
 * are preempted, of both only those that are needed, and their new places are nominated. */
void relocate_settle(struct cycle *c, struct moving *m);

/* Make room by relocating others, none of which loses its place; the claim's victims, if it has
 * any, are preempted as well. */
bool relocate_for(struct cycle *c, struct claim *k);
/* True if there would be room. Nothing is changed. */
bool relocate_fits(struct cycle *c, struct claim *k);

#endif
