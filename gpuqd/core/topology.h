/* topology.h - domains: racks, blocks, zones, and how many pods they hold
 *
 * Owns     the domains of each level that a request speaks of, and the trees they form.
 * Touches  memory only.
 * Used by  pack.c, roles.c, victims_node.c, why.c, topology*.c only.
 *
 * A gang that must share a domain gets the tightest that holds it; one that should share
 * one gets the narrowest level at which it can. Below that: the fewest domains, level by
 * level, the roomiest first until the rest fits in one, and for that the tightest. Pods
 * of one group are alike, so that what a domain holds is a number, and every greedy
 * choice can be completed.
 */
#ifndef GPUQD_CORE_TOPOLOGY_H
#define GPUQD_CORE_TOPOLOGY_H

#include "gpuqd/core/pack.h"

/* One kind of domain: nodes with the same label, and the same labels of all wider
 * levels. */
struct level {
	const char *name;
	uint32_t *domain_of; /* by node, in order of names; SNAP_NONE = in none */
	uint32_t n_domains;
};

/* One level of a tree: each domain lies in one domain of the rung above. */
struct rung {
	const struct level *level;
	uint32_t *domain_of; /* by node; children of one domain have neighbouring numbers */
	uint32_t n_domains;
	uint32_t *child_first; /* by domain of the rung above (one before the first rung),
				* and one more: its first child here */
	bool *loose; /* by domain: its nodes carry no such label */
};

/* Levels from wide to narrow. */
struct tree {
	struct rung *rungs;
	uint32_t n_rungs;
	uint32_t *nodes; /* by domain of the last rung, then name */
	uint32_t *node_first; /* by domain of the last rung, and one more */
};

/* A tree as one group's pods see it, and how many of them each domain holds. */
struct domain {
	uint64_t room; /* pods that fit, in whole slices; 0 when it has been used */
	uint64_t raw; /* pods that fit, slices or not */
	uint64_t free; /* whole devices */
};

struct measure {
	const struct tree *tree;
	uint32_t *size; /* by rung: so many pods stand together; 0 = no slices there */
	struct domain **at; /* by rung, domain */
};

/* topology_tree.c */

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

/* topology_count.c */

/* Domains of a tree with nothing in them yet, and where g's slices stand. False and
 * failed without memory. */
bool measure_init(struct cycle *c, const struct tree *tree, const struct snap_group *g,
		  struct measure *out);
/* Note what one node holds. */
void measure_node(struct measure *m, uint32_t node, uint64_t pods, uint64_t devices);
/* Sum up, from the narrowest rung; slices are rounded down where they stand. */
void measure_sum(struct measure *m);
/* The domain of that rung to go on with when so many pods are left, among the children
 * of some domains of the rung above (of 0 for the first rung): the tightest with room for
 * all of them, else the roomiest; then the one with fewer pods that fit, fewer free
 * devices, the lower name. Domains without label come last. SNAP_NONE = no room at all. */
uint32_t measure_pick(const struct measure *m, uint32_t rung, const uint32_t *parents,
		      uint32_t n_parents, uint64_t pods);

/* topology_why.c */

/* A measure of all that a group requires of domains, to be filled node by node and summed
 * up. False and failed without memory. */
bool topology_survey(struct cycle *c, const struct snap_group *g, struct measure *out);
/* Do its pods not fit, all in one domain where it requires that, each slice in one of its
 * own? Then *why says how many slices do on the widest level that lacks some (pods, where
 * it asks for no slices); more: the other levels that lack some follow in c->whys. */
bool topology_lacks(struct cycle *c, const struct snap_group *g, const struct measure *m,
		    enum gpuq_reason code, struct plan_reason *why, bool more);

/* topology.c */

/* Does the group say anything about domains? */
static inline bool topology_asked(const struct snap_group *g)
{
	return g->topology_required || g->topology_preferred || g->n_slices;
}

/* As pack_pods, within one domain of a level that g requires, slices each in one of
 * theirs, and within as few and as tight domains as g prefers. */
bool topology_pack(struct cycle *c, const struct snap_group *g, const struct batch *b,
		   struct masks *m);

/* Nodes of the domains of one level that hold all of b's pods, the tightest first. */
struct candidates {
	struct measure measure;
	uint32_t n_tried;
};

bool candidates_init(struct cycle *c, const struct snap_group *g, const char *level,
		     const struct batch *b, const struct masks *m, struct candidates *out);
/* The next of them in set, c->n_words words. False: there is none. */
bool candidates_next(struct cycle *c, struct candidates *k, const struct batch *b,
		     const struct masks *m, uint64_t *set);

/* roles.c */

/* The order in which groups of one job get their places: the one with the fewest places
 * to choose from first, in proportion to its pods; by_size: the one with the largest
 * pods. order has room for all of them. */
void roles_order(struct cycle *c, uint32_t job, uint32_t flavor, bool by_size, uint32_t *order);

/* As pack_groups; all groups that require or prefer one level share a domain of it. */
bool roles_pack(struct cycle *c, uint32_t job, uint32_t flavor);

#endif
