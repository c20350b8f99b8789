/* nodes_int.h - the free capacity of nodes, as the files that choose among them see it
 *
 * Owns     the tables' shape; nodes.c makes and changes them.
 * Touches  memory only.
 * Used by  the files of place/ alone. */
#ifndef GPUQD_SCHED_PLACE_NODES_INT_H
#define GPUQD_SCHED_PLACE_NODES_INT_H

#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/snapshot/links.h"

/* Nodes with the same number of free whole devices. */
struct bucket {
	uint64_t *set; /* NULL until it gets its first node */
	uint32_t n;
	uint32_t from; /* all words of the set before this one are 0 */
};

struct nodes {
	uint32_t n_words; /* of a set of nodes */
	struct amounts now;
	uint32_t max_whole;
	uint64_t *ready; /* ready by state */
	uint64_t *gpuless; /* has no devices at all, nor instances */
	uint64_t *migs; /* has instances of some profile */
	uint64_t **flavors; /* nodes of each flavor */
	struct links *links; /* by snapshot.joints; without devices = table not made yet */
	int64_t cpu_per_device, mib_per_device; /* of the cluster, per 1024 devices */
	bool planning; /* nodes are in the state of a later moment */
	bool counting; /* ...and whole devices are counted there, not named */
};

#endif
