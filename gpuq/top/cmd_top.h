/* cmd_top.h - gpuq top, for the table of commands
 *
 * Owns     nothing.
 * Touches  the terminal, the server.
 * Used by  commands.c, top_exec.c.
 */
#ifndef GPUQ_TOP_CMD_TOP_H
#define GPUQ_TOP_CMD_TOP_H

#include "gpuq/cli.h"

int cmd_top(struct cli *c);

#endif
