/* world_happen.h - pods that end once they are evicted
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  gpuq-sim, world_cycle.c.
 */
#ifndef GPUQD_SIM_WORLD_HAPPEN_H
#define GPUQD_SIM_WORLD_HAPPEN_H

#include "gpuqd/sim/world.h"

/* Remove evicted pods; any: there were some. */
int world_release(struct world *w, bool *any, struct gpuq_err *err);

#endif
