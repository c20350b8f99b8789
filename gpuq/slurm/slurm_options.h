/* slurm_options.h - the options of the commands of Slurm
 *
 * Touches  memory only.
 * Used by  slurm.c.
 */
#ifndef GPUQ_SLURM_SLURM_OPTIONS_H
#define GPUQ_SLURM_SLURM_OPTIONS_H

#include "gpuq/opt.h"

/* Their options; each table ends with name == NULL. */
extern const struct opt slurm_common_opts[], slurm_which_opts[];
extern const struct opt sbatch_opts[], salloc_opts[], srun_opts[], step_opts[];
extern const struct opt squeue_opts[], scancel_opts[], sinfo_opts[], sacct_opts[];
extern const struct opt scontrol_opts[], sshare_opts[], sprio_opts[], seff_opts[], sacctmgr_opts[];

#endif
