/* slurm_step.h - srun inside a job
 *
 * Touches  the server, processes of this pod.
 * Used by  slurm.c.
 */
#ifndef GPUQ_SLURM_SLURM_STEP_H
#define GPUQ_SLURM_SLURM_STEP_H

#include "gpuq/cli.h"

int slurm_step(struct cli *c); /* srun inside a job: the tasks of this pod */

#endif
