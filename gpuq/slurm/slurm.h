/* slurm.h - the commands of Slurm, for people and scripts that know them
 *
 * Owns     the table of names. Options are in slurm_options, Slurm's words for states, reasons and
 *          times in slurm_words. Everything else is gpuq's: parser, filters, lists, calls.
 * Used by  commands.c, which hands over when the program is called by such a name.
 *
 * The names are symbolic links in a directory of their own (gpuq-slurm(7)), never in the
 * default path. Exit codes are Slurm's, and 255 when no server answers.
 */
#ifndef GPUQ_SLURM_SLURM_H
#define GPUQ_SLURM_SLURM_H

#include "gpuq/cli.h"
#include "gpuq/out.h"

#define SLURM_ALLOCATION "GPUQ_ALLOCATION" /* in what salloc runs: the job */

/* The command that argv[0] names, by what it is called with, or NULL. */
const struct command *slurm_find(int argc, char **argv);

/* All of them, ending with name == NULL. */
const struct command *slurm_commands(void);

#endif
