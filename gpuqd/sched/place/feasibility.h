/* feasibility.h - the nodes on which the constraints of a group allow it to run
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  minimise.c, pack.c, reasons.c, relocate.c, score.c and others. */
#ifndef GPUQD_SCHED_PLACE_FEASIBILITY_H
#define GPUQD_SCHED_PLACE_FEASIBILITY_H

#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/quota/cycle.h"

/* The nodes where pods under some constraints may run, whatever is free there; made on first
 * use. */
struct group_fit {
	uint64_t *nodes; /* NULL = not made yet */
	uint32_t n_nodes;
	uint32_t n_weak; /* further ones, which isolate its devices less than it demands */
	uint64_t **tiers; /* the same nodes by preference, best first; NULL = all alike */
	uint32_t n_tiers;
};

/* The free capacity where pods under some constraints may run, on one flavor (feasibility.c). */
struct glance {
	uint32_t generation; /* actions + 1 when it was counted; 0 = never */
	int64_t devices, largest; /* free whole devices: in total, on one node */
	/* By number of devices, 0..max_whole: the most that a node with at least as many free
	 * has. */
	int64_t *cpu, *memory;
};

void feasibility_init(struct cycle *c);
const struct group_fit *feasibility_of(struct cycle *c, uint32_t request, uint32_t group);
/* Return the free devices where a group may run, counted again only after something was started. To
 * be called between jobs only, not while one is being placed. */
const struct glance *feasibility_glance(struct cycle *c, uint32_t request, uint32_t group,
					uint32_t flavor);
int64_t feasibility_glance_bound(const struct cycle *c, uint32_t request, uint32_t group,
				 uint32_t flavor);
/* The value of a label of the node, whose name counts as one (REQUIRE_NAME_KEY); NULL = it has none. */
const char *feasibility_label(const struct snapshot *s, uint32_t node, const char *key);
bool feasibility_tolerates(const struct snap_group *g, const struct snap_taint *t);
/* True if the labels and taints of the node allow the group there, whatever is free. */
bool feasibility_allows(const struct snapshot *s, const struct snap_group *g, uint32_t node);
/* True if the job names the node, or no nodes, and does not exclude it. */
bool feasibility_is_named(const struct snap_group *g, const char *node);
/* True if the node isolates its devices as much as the group demands. */
bool feasibility_isolates(const struct snap_group *g, const struct snap_node *n);
/* True if a pod could be on a node of the flavor if that shared its devices in another way: none of them
 * serves a part as the group requests it. */
bool feasibility_lacks_sharing(const struct cycle *c, const struct snap_group *g, uint32_t flavor);

/* True if no node counted then has enough cpu and memory beside the devices for one pod; these only
 * become fewer as well. */
bool feasibility_glance_rules_out(const struct cycle *c, uint32_t request, uint32_t group,
				  uint32_t flavor, const struct need *one);

#endif
