/* pack.h - what packing and topology share
 *
 * Used by  pack.c, topology.c, why.c only.
 */
#ifndef GPUQD_CORE_PACK_H
#define GPUQD_CORE_PACK_H

#include "gpuqd/core/cycle.h"

/* Where a search may look: in sets of nodes, ANDed with these (NULL = all nodes). */
struct masks {
	const uint64_t *fit, *flavor, *tier, *domain, *also;
	const uint64_t *skip; /* without these */
};

/* The part of word w of a set that a search may look at. */
static inline uint64_t masks_of(const struct masks *m, uint64_t word, uint32_t w)
{
	if (m->fit)
		word &= m->fit[w];
	if (m->flavor)
		word &= m->flavor[w];
	if (m->tier)
		word &= m->tier[w];
	if (m->domain)
		word &= m->domain[w];
	if (m->also)
		word &= m->also[w];
	if (m->skip)
		word &= ~m->skip[w];
	return word;
}

/* Alike pods of one group that are to be placed: pods of them, numbered from index. */
struct batch {
	struct need one;
	uint32_t group, index, pods;
};

/* Give all of them places, wherever the masks allow. False: some may have been taken,
 * and are to be undone by the caller. */
bool pack_pods(struct cycle *c, const struct batch *b, struct masks *m);

/* What one pod of the group takes, as the present cycle (or its planning) counts it. */
struct need pack_need(const struct cycle *c, const struct snap_group *g);

/* topology.c */

/* One kind of domain: nodes with the same label, and the same labels of all wider
 * levels. */
struct level {
	const char *name;
	uint32_t *domain_of; /* by node, in order of names; SNAP_NONE = in none */
	uint32_t n_domains;
};

/* The level of that name: one of the site's, the node itself ("host", "node"), else a
 * label of its own. NULL and failed without memory. */
const struct level *topology_level(struct cycle *c, const char *name);

/* As pack_pods, within one domain of a level that g requires, and within as few and as
 * tight domains as g prefers. */
bool topology_pack(struct cycle *c, const struct snap_group *g, const struct batch *b,
		   struct masks *m);

/* The set of nodes of the n-th best domain of a level for such pods (the tightest that
 * holds them all first) in out, c->n_words words. False: there is no n-th. */
bool topology_nth(struct cycle *c, const struct level *l, const struct batch *b,
		  const struct masks *m, uint32_t n, uint64_t *out);

#endif
