/* pack_int.h - how the current job is packed, as the files that do it see it
 *
 * Owns     the tables' shape; pack.c makes them.
 * Touches  memory only.
 * Used by  nodes.c, pack.c, roles.c, score.c. */
#ifndef GPUQD_SCHED_PLACE_PACK_INT_H
#define GPUQD_SCHED_PLACE_PACK_INT_H

#include "gpuqd/sched/place/pack.h"

struct pack {
	/* The current job. */
	uint32_t request, flavor;
	bool spread; /* it prefers empty nodes */
	uint64_t *skip; /* scratch: nodes that it excludes */
	bool skips; /* there are some */
	const uint64_t *barred; /* further such nodes; NULL = none (reservations) */
	bool withholding; /* the capacity that start reservations count on is kept free */
	const uint64_t *domain; /* the domain that the whole job must be in; NULL = none yet */
	const uint64_t *near; /* a preferred domain inside `domain`; NULL = none */
	uint32_t n_tries; /* domains tried for all of its roles together */

	uint32_t *rank_nodes, *rank_scratch; /* scratch, n_nodes each */
	uint32_t *rank_room, *rank_left, *rank_count;

	struct charges *charges; /* charges.c: what limits leave to the current job */

	/* score.c */
	enum pack_policy policy;
	bool unhurried; /* score as many nodes as it takes */
	struct grading *grading; /* NULL until a single pod is placed */
	int64_t part_cpu; /* scratch: cpu that comes with the current part */
};

#endif
