/* fairness.h - what gpuq-sim shares tells beside the division
 *
 * Owns     nothing; trees live in the caller's arena.
 * Touches  memory only.
 * Used by  gpuq-sim shares.
 */
#ifndef GPUQD_SIM_FAIRNESS_H
#define GPUQD_SIM_FAIRNESS_H

#include "gpuqd/sim/world.h"
#include "libgpuq/val.h"

/* Users: {"ann": {"factor": 0.5}}, by name; of one in several queues the best, and
 * "queues" with each of them. Overcommitted: [{"parent", "flavor", "quotas", "has"}],
 * parent null for the whole cluster. Returns 0 or as world_freeze() fails. */
int fairness_tell(struct world *w, struct gpuq_arena *a, struct gpuq_val **users,
		  struct gpuq_val **overcommitted, struct gpuq_err *err);

/* The same for people: a table, and a warning for each. Nothing where there is nothing. */
void fairness_print(const struct gpuq_val *users, const struct gpuq_val *overcommitted);

#endif
