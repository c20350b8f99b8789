/* topology.h - domains: racks, blocks, zones, and how many pods they hold
 *
 * Owns     the domains of each level that a request mentions, and the trees they form.
 * Touches  memory only.
 * Used by  pack.c, roles.c, search_node.c, reasons.c, topology*.c only.
 *
 * A gang that requires a shared domain gets the tightest that holds it; one that prefers a shared
 * domain gets the narrowest level at which it can. Below that: the fewest domains, level by level,
 * the roomiest first until the rest fits in one, and for that the tightest. Pods of one group are
 * equal, so that the capacity of a domain is a number, and every greedy choice can be completed. */
#ifndef GPUQD_SCHED_PLACE_TOPOLOGY_H
#define GPUQD_SCHED_PLACE_TOPOLOGY_H

#include "gpuqd/sched/place/pack.h"

/* One kind of domain: nodes with the same label, and the same labels of all wider
 * levels. */
struct level {
	const char *name; /* the label's key, or "host" */
	uint32_t *domain_of; /* by node, in order of names; SNAP_NONE = in none */
	uint32_t n_domains;
};

/* One level of a tree: each domain is in one domain of the rung above. */
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
	struct rung *rungs; /* from wide to narrow */
	uint32_t n_rungs;
	uint32_t *nodes; /* by domain of the last rung, then name */
	uint32_t *node_first; /* by domain of the last rung, and one more */
};

/* A tree as seen by one group's pods, and how many of them each domain holds. */
struct domain {
	uint64_t room; /* pods that fit, in whole slices; 0 when it has been used */
	uint64_t raw; /* pods that fit, slices or not */
	uint64_t free; /* whole devices */
};

struct measure {
	const struct tree *tree; /* that was measured */
	uint32_t *size; /* by rung: number of pods in one slice; 0 = no slices there */
	struct domain **at; /* by rung, domain */
};

/* True if the group has constraints or preferences on domains. */
static inline bool topology_asked(const struct snap_group *g)
{
	return g->topology_required || g->topology_preferred || g->n_slices;
}

/* As pack_pods, within one domain of a level that g requires, slices each in one of theirs, and
 * within as few and as tight domains as g prefers. */
bool topology_pack(struct cycle *c, const struct snap_group *g, const struct batch *b,
		   struct masks *m);

/* Nodes of the domains of one level that hold all of b's pods, the tightest first. */
struct candidates {
	struct measure measure;
	uint32_t n_tried; /* domains given out so far */
};

bool topology_candidates_init(struct cycle *c, const struct snap_group *g, const char *level,
			      const struct batch *b, const struct masks *m, struct candidates *out);
/* Write the nodes of the next domain to set, c->n_words words. False: no domain is left. */
bool topology_candidates_next(struct cycle *c, struct candidates *k, const struct batch *b,
			      const struct masks *m, uint64_t *set);

#endif
