/* slurm_steps.h - numbers of steps, and names of steps in lists of jobs: 17.batch, 17.0
 *
 * Owns     the count of the steps of a job, which is a file: on the local cluster that of its pod, in salloc a memory
 *          file of that, elsewhere one of the pod's temporary directory.
 * Touches  this file.
 * Used by  slurm_sacct.c, slurm_step.c, slurm_salloc.c.
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

/* The path of the count, which programs of the job inherit. */
#define STEPS_COUNTER "GPUQ_STEP_COUNTER"

/* Begin to count, for the programs that this one starts: it holds the file. */
void steps_begin(void);
/* Return the number of a step that begins: 0, 1, 2...; -1 = there is no count here. */
long steps_next(void);

/* Read a list of --jobs. Returns 0 or GPUQ_ENOMEM. */
int steps_read(struct gpuq_arena *a, const char *list, struct steps_list *out);

#endif
