/* fairness.h - what gpuq-sim shares reports besides the division
 *
 * Owns     nothing; trees live in the caller's arena.
 * Touches  memory only.
 * Used by  gpuq-sim shares.
 */
#ifndef GPUQD_SIM_FAIRNESS_H
#define GPUQD_SIM_FAIRNESS_H

#include "gpuqd/sim/world.h"
#include "libgpuq/val.h"

/* Report users: {"ann": {"factor": 0.5}}, by name; for a user of several queues the best factor,
 * and "queues" with each of them. Overcommitted: [{"parent", "flavor", "quotas", "has"}], parent
 * null for the whole cluster. Returns 0 or the error of world_snapshot(). */
int fairness_tell(struct world *w, struct gpuq_arena *a, struct gpuq_val **users,
		  struct gpuq_val **overcommitted, struct gpuq_err *err);

/* Print the same as text: a table, and a warning for each. Empty parts are left out. */
void fairness_print(const struct gpuq_val *users, const struct gpuq_val *overcommitted);

#endif
