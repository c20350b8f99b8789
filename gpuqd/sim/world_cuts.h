/* world_cuts.h - nodes of a scenario that are given another layout of MIG instances
 *
 * Owns     nothing: the layout that a node has been given is the world's.
 * Touches  memory only.
 * Used by  world*.c, outcome.c.
 *
 * The decisions are those of gpuqd (sched/cut.h). A node has its layout after the pool's delay, or by a
 * step; by another step its manager fails.
 */
#ifndef GPUQD_SIM_WORLD_CUTS_H
#define GPUQD_SIM_WORLD_CUTS_H

#include "gpuqd/sim/world.h"

/* Return the pool that has the node cut; NULL = none does. */
const struct sc_pool *world_cuts_pool(const struct world *w, const struct sim_node *n);
/* Give a node the devices or instances of its layout, and the labels that tell them. In a; false: no memory. */
bool world_cuts_fact(const struct world *w, const struct sim_node *n, struct gpuq_arena *a,
		     struct node_fact *f);
/* Begin the cuts of a plan. *changed is set if there was any. */
int world_cuts_carry(struct world *w, const struct snapshot *s, const struct plan *p, bool *changed,
		     struct gpuq_err *err);
/* Return the next instant after now at which a node has its layout; GPUQ_UNLIMITED = none. */
int64_t world_cuts_next(const struct world *w);
int world_cuts_fall_due(struct world *w, struct gpuq_err *err);
/* Run a step by which a node has its layout, or does not get it. */
int world_cuts_step(struct world *w, const struct sc_step *s, struct gpuq_err *err);

#endif
