/* slurm_submit.h - what sbatch, salloc and srun take from where they are called
 *
 * Touches  the environment, the server.
 * Used by  slurm_salloc.c, slurm_step.c.
 */
#ifndef GPUQ_SLURM_SLURM_SUBMIT_H
#define GPUQ_SLURM_SLURM_SUBMIT_H

#include "gpuq/cli.h"

/* Put what the environment says (PREFIX_PARTITION...) behind the options of the job, and the
 * job's name (may be NULL) behind that. */
bool slurm_environment(struct cli *c, const char *prefix, const char *name);

/* Jobs are processes of this machine. Needs a connection. */
bool slurm_is_local(const struct cli *c);

#endif
