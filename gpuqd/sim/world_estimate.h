/* world_estimate.h - estimated starts of a scenario
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  gpuq-sim.
 */
#ifndef GPUQD_SIM_WORLD_ESTIMATE_H
#define GPUQD_SIM_WORLD_ESTIMATE_H

#include "gpuqd/sim/world.h"

/* Make estimates for all pending jobs, without changing anything. */
int world_estimate(struct world *w, struct gpuq_err *err);

#endif
