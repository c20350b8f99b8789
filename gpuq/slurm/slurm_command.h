/* slurm_command.h - the functions that the table of Slurm's commands names
 *
 * Owns     nothing; the table is in slurm.c.
 * Used by  slurm.c, and the files that have the functions.
 */
#ifndef GPUQ_SLURM_SLURM_COMMAND_H
#define GPUQ_SLURM_SLURM_COMMAND_H

#include "gpuq/cli.h"
#include "gpuq/command.h"

#define COMMAND(name) int slurm_##name(struct cli *c);
#include "gpuq/slurm/slurm.def"
#undef COMMAND

#endif
