/* command.h - the table of commands
 *
 * Owns     nothing; the table, with its options, is in commands.c.
 * Used by  main.c, which runs a row; help, completion and opt.c, which follow from the rows; the
 *          files of cmd/, import/ and top/, for the functions that the rows name.
 *
 * A command is a row of the table and a function of command.def in a file of its own; the
 * function returns the exit code.
 */
#ifndef GPUQ_COMMAND_H
#define GPUQ_COMMAND_H

#include <stdbool.h>

#include "gpuq/opt.h"

struct cli;

struct command {
	const char *name, *alias; /* alias may be NULL */
	const char *summary; /* half a line, for `gpuq help` */
	const char *synopsis; /* what follows the options */
	const struct opt *opts; /* its own; may be NULL */
	const struct opt *groups[OPT_GROUPS_MAX]; /* shared; ends with NULL or is full */
	bool job_options; /* takes gpuq_spec_options too */
	bool waits; /* wrong usage is 255 rather than 2 */
	bool stop_first; /* options end at the first argument */
	bool terminal; /* -it is --stdin --tty: the letters are sbatch's */
	bool slurm; /* is called by that name, not behind gpuq */
	bool any_words; /* nothing is an option: it answers all alike */
	bool takes_jobs; /* arguments are job ids (completion) */
	int min_args, max_args; /* max -1 = any number */
	int (*run)(struct cli *c);
};

#define COMMAND(name) int cmd_##name(struct cli *c);
#include "gpuq/command.def"
#undef COMMAND

/* Run argv as one command; returns the exit code. */
int cli_main(int argc, char **argv);

extern const struct command commands[]; /* ends with name == NULL */

const struct command *commands_slurm(void); /* the names of Slurm, likewise */

/* By name or alias; NULL. */
const struct command *command_find(const char *name);

#endif
