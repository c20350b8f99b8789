/* slurm_show.h - scontrol show
 *
 * Touches  the server, standard output.
 * Used by  slurm_scontrol.c.
 */
#ifndef GPUQ_SLURM_SLURM_SHOW_H
#define GPUQ_SLURM_SLURM_SHOW_H

#include "gpuq/cli.h"

int slurm_show(struct cli *c, int n, char **words); /* scontrol show WORDS */

#endif
