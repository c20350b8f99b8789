/* topology_tree.h - the domains of each level, as trees
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  elastic.c, roles.c, search_node.c, topology.c, topology_count.c and others.
 */
#ifndef GPUQD_SCHED_PLACE_TOPOLOGY_TREE_H
#define GPUQD_SCHED_PLACE_TOPOLOGY_TREE_H

#include "gpuqd/sched/place/topology.h"

/* The level of that name: one of the site's, the node itself ("host", "node"), else a
 * label of its own. NULL and failed without memory. */
const struct level *topology_level(struct cycle *c, const char *name);

/* Position among the site's levels; n_levels = none of them. */
uint32_t topology_position(const struct cycle *c, const char *name);

/* The tree that g's pods go down: `front` (NULL = none), levels of g's slices that the
 * site does not list, then the site's levels from `first` on. The nodes themselves are
 * the last rung only where slices stand on them: packing takes as few nodes as can be
 * anyway. NULL and failed without memory. */
const struct tree *topology_tree(struct cycle *c, const struct snap_group *g, const char *front,
				 uint32_t first);

#endif
