/* slurm_steps.h - names of steps in lists of jobs: 17.batch, 17.0
 *
 * Touches  memory only.
 * Used by  slurm_sacct.c.
 *
 * The only step of a job that is recorded is its script (17.batch).
 */
#ifndef GPUQ_SLURM_SLURM_STEPS_H
#define GPUQ_SLURM_SLURM_STEPS_H

#include <stdbool.h>

#include "libgpuq/arena.h"

struct steps_list {
	const char *jobs; /* without what names steps; "" = only steps that are not recorded */
	bool scripts_only; /* all that was named are scripts */
};

/* Read a list of --jobs. Returns 0 or GPUQ_ENOMEM. */
int steps_read(struct gpuq_arena *a, const char *list, struct steps_list *out);

#endif
