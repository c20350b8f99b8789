/* cmd_import.h - gpuq import, for the table of commands
 *
 * Owns     nothing.
 * Touches  the terminal, the server.
 * Used by  cmd_completion.c, commands.c.
 */
#ifndef GPUQ_IMPORT_CMD_IMPORT_H
#define GPUQ_IMPORT_CMD_IMPORT_H

#include "gpuq/cli.h"

int cmd_import(struct cli *c);

#endif
