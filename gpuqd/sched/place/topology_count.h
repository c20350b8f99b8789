/* topology_count.h - how many pods domains hold
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  reasons.c, topology.c, topology_why.c.
 */
#ifndef GPUQD_SCHED_PLACE_TOPOLOGY_COUNT_H
#define GPUQD_SCHED_PLACE_TOPOLOGY_COUNT_H

#include "gpuqd/sched/place/topology.h"

/* Prepare the domains of a tree, empty, and note the rungs of g's slices. False, and `failed` is
 * set, without memory. */
bool topology_measure_init(struct cycle *c, const struct tree *tree, const struct snap_group *g,
			   struct measure *out);
/* Note what one node holds. */
void topology_measure_node(struct measure *m, uint32_t node, uint64_t pods, uint64_t devices);
/* Sum up, from the narrowest rung; on rungs with slices rounded down to whole ones. */
void topology_measure_sum(struct measure *m);
/* Return the domain of that rung to continue with when this many pods are left, among the children of
 * some domains of the rung above (of 0 for the first rung): the tightest with room for all of them,
 * else the roomiest; then the one with fewer pods that fit, fewer free devices, the lower name.
 * Domains without label come last. SNAP_NONE = no room at all. */
uint32_t topology_measure_pick(const struct measure *m, uint32_t rung, const uint32_t *parents,
			       uint32_t n_parents, uint64_t pods);

#endif
