/* fgd.h - what is left on a node, and how much of it the expected pods cannot use
 *
 * Owns     the kinds of pods that are expected (the mix) and two measures of waste: the published
 *          one of fragmentation gradient descent, and the one gpuqd places by.
 * Touches  memory only.
 * Used by  score.c; tests.
 *
 * Source of the published measure: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing
 * Workloads with Fragmentation Gradient Descent", USENIX ATC 2023. */
#ifndef GPUQD_SCHED_PLACE_FGD_H
#define GPUQD_SCHED_PLACE_FGD_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/snapshot/snapshot.h"

#define FGD_KINDS_MAX 64u /* evaluated by either measure */
#define FGD_WHOLE_MIX 10000 /* weights of all kinds together, about */

/* Equivalent pods. */
struct fgd_kind {
	uint32_t whole; /* devices */
	uint32_t parts; /* else: devices of which it takes a part */
	int32_t part; /* thousandths of each of those, 1..1000 */
	int64_t cpu, memory;
	int64_t weight; /* how often it is expected, of FGD_WHOLE_MIX */
	/* The cluster's devices per device that it may use, in thousandths: 1000 = it may use
	 * any. */
	int64_t scarcity;
	const uint64_t *nodes; /* where it may run; NULL = everywhere */
};

/* The free resources of a node. Amounts may be GPUQ_UNLIMITED. */
struct fgd_left {
	int64_t cpu, memory;
	uint32_t whole; /* devices not in use */
	uint32_t n_parts; /* devices that are partly taken */
	int16_t parts[SNAP_DEVICES_MAX]; /* thousandths left of each of those: 1..999 */
};

/* Return the free thousandths in total. */
int64_t fgd_free(const struct fgd_left *l);

/* Return the published measure F: thousandths of a device that kinds cannot use, weighted: all that
 * is free where a kind needs no devices or does not fit at all, else what is free on devices too
 * full for it. In thousandths / FGD_WHOLE_MIX. */
int64_t fgd_fragments(const struct fgd_kind *kinds, uint32_t n, const struct fgd_left *l,
		      uint32_t node);

/* Return the published score of a placement that changed F by (before - after): the integer part of
 * 100 / (1 + exp(-d / 1000)), d in the unit of fgd_fragments. 0..100, exact. */
uint32_t fgd_score(int64_t d);

/* Add up, by node, the penalty that kinds which may not use a node at all add to our measure for each
 * thousandth that is free there: their weight, multiplied by how much scarcer their own nodes are
 * than the cluster. It keeps other pods off those nodes. Does not depend on what is free. */
void fgd_bar(const struct fgd_kind *kinds, uint32_t n, uint32_t n_nodes, int64_t *sums);

/* Return our measure: what would stay free if one kind alone filled the node. Devices that are left
 * because cpu or memory ran out count in full; those that are left because the kind's size does not
 * divide what is free count a tenth (another kind may use them). barred_weight: fgd_bar(). In
 * tenths of thousandths / FGD_WHOLE_MIX. */
int64_t fgd_stranded(const struct fgd_kind *kinds, uint32_t n, const struct fgd_left *l,
		     uint32_t node, int64_t barred_weight);

/* True if cpu or memory could run out on such a node before its devices do, for some mix of the
 * kinds. False: nothing can be stranded, and best fit alone is as good. */
bool fgd_may_strand(const struct fgd_kind *kinds, uint32_t n, const struct fgd_left *l);

#endif
