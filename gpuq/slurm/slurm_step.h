/* slurm_step.h - srun inside a job
 *
 * Touches  the server, processes of this pod.
 * Used by  slurm.c.
 */
#ifndef GPUQ_SLURM_SLURM_STEP_H
#define GPUQ_SLURM_SLURM_STEP_H

#include "gpuq/cli.h"

/* True if srun has a command to run; otherwise it is done, and *code is its exit code: --mpi=list,
 * wrong usage. */
bool slurm_srun_command(const struct cli *c, int *code);

int slurm_step(struct cli *c); /* srun inside a job: the tasks of this pod */

#endif
