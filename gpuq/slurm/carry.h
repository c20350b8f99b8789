/* carry.h - gpuq copied to where it runs in any image
 *
 * Owns     nothing.
 * Touches  the folder that it copies to.
 * Used by  slurm_submit.c (srun --carry-to, in an init container of gpuqd's); mpi_server.c.
 *
 * The folder gets: lib/ with gpuq, its libraries and loader; gpuq and srun, which run it by these; enter, which runs a
 * command with the folder at the end of its path; and the module of PMIx with the components of libpmix.
 */
#ifndef GPUQ_SLURM_CARRY_H
#define GPUQ_SLURM_CARRY_H

#define CARRY_COMPONENTS "lib/pmix" /* beside gpuq */

/* Copy it. Returns an exit code. */
int carry_to(const char *dir);

#endif
