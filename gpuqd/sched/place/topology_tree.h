/* topology_tree.h - the domains of each level, as trees
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, roles.c, search_node.c, topology.c, topology_count.c and others.
 */
#ifndef GPUQD_SCHED_PLACE_TOPOLOGY_TREE_H
#define GPUQD_SCHED_PLACE_TOPOLOGY_TREE_H

#include "gpuqd/sched/place/topology.h"

/* Return the level of that name: one of the site's, the node itself ("host", "node"), else a label
 * of its own. NULL, and `failed` is set, without memory. */
const struct level *topology_level(struct cycle *c, const char *name);

/* Return the position among the site's levels; n_levels = not one of them. */
uint32_t topology_position(const struct cycle *c, const char *name);

/* Return the tree that g's pods go down: `front` (NULL = none), levels of g's slices that the site
 * does not list, then the site's levels from `first` on. The nodes themselves are the last rung
 * only where slices require them: packing uses as few nodes as possible anyway. NULL, and `failed`
 * is set, without memory. */
const struct tree *topology_tree(struct cycle *c, const struct snap_group *g, const char *front,
				 uint32_t first);

#endif
