/* world_jobs.h - jobs that arrive while a scenario runs
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  gpuq-sim, world_events.c.
 */
#ifndef GPUQD_SIM_WORLD_JOBS_H
#define GPUQD_SIM_WORLD_JOBS_H

#include "gpuqd/sim/world.h"

/* Add a new job, pending since now. */
int world_submit(struct world *w, const struct sc_job *spec, struct gpuq_err *err);

#endif
