/* world_pools.h - nodes of a scenario that do not exist yet
 *
 * Owns     nothing: pools and requests are the world's.
 * Touches  memory only.
 * Used by  world*.c, outcome.c, expect_world.c.
 *
 * A request is made when the plan contains one; its nodes join after the pool's provision_delay or by
 * a step. A failed one is repeated after 1, 2 and 4 minutes; until then its nodes count as requested,
 * so that its jobs stay pending for them. The fourth failure ends it, and suspends its pool for half
 * an hour, during which its jobs use the next pool or flavor.
 */
#ifndef GPUQD_SIM_WORLD_POOLS_H
#define GPUQD_SIM_WORLD_POOLS_H

#include "gpuqd/sim/world.h"

/* Add the nodes of all pools to the table, which has room for them. */
int world_pools_make(struct world *w, struct gpuq_err *err);
/* Add the nodes that do not exist to a snapshot that is being built. */
void world_pools_add(void *world, struct snapshot *s);
/* Make and withdraw requests. *changed is set if any was. */
int world_pools_carry(struct world *w, const struct plan *p, bool *changed, struct gpuq_err *err);
/* Return the next instant after now at which something falls due; GPUQ_UNLIMITED = none. */
int64_t world_pools_next(const struct world *w);
int world_pools_fall_due(struct world *w, struct gpuq_err *err);
/* Run a step that concerns a pool. */
int world_pools_step(struct world *w, const struct sc_step *s, struct gpuq_err *err);
/* Count a pool's existing nodes, requested nodes and requests. */
struct pool_count {
	uint32_t nodes, asked, requests;
};
struct pool_count world_pools_count(const struct world *w, uint32_t pool);

#endif
