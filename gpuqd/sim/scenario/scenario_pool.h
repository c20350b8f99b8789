/* scenario_pool.h - pools of a scenario that can get nodes that do not exist yet
 *
 * Used by  scenario*.c only.
 */
#ifndef GPUQD_SIM_SCENARIO_SCENARIO_POOL_H
#define GPUQD_SIM_SCENARIO_SCENARIO_POOL_H

#include "gpuqd/sim/scenario/scenario.h"

extern const struct gpuq_schema scenario_pool;

/* Fill in what a pool's nodes are. */
void scenario_pool_machine(struct sc_pool *p);

#endif
