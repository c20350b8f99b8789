/* help.h - help, from the rows of the table of commands
 *
 * Touches  standard output.
 * Used by  commands.c, cmd/job/submission.
 */
#ifndef GPUQ_HELP_H
#define GPUQ_HELP_H

struct command;

/* Help of one command, or of gpuq when cmd is NULL. */
void help_print(const struct command *cmd);

#endif
