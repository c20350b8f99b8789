/* cmd_int.h - the commands that make jobs and act on them, for the table of commands
 *
 * Owns     nothing.
 * Touches  the terminal, the server.
 * Used by  cmd_attach.c, cmd_cancel.c, cmd_exec.c, cmd_forward.c, cmd_hold.c and others.
 */
#ifndef GPUQ_CMD_JOB_CMD_INT_H
#define GPUQ_CMD_JOB_CMD_INT_H

#include "gpuq/cli.h"

int cmd_attach(struct cli *c);
int cmd_cancel(struct cli *c);
int cmd_hold(struct cli *c);
int cmd_logs(struct cli *c);
int cmd_plan(struct cli *c);
int cmd_exec(struct cli *c);
int cmd_forward(struct cli *c);
int cmd_release(struct cli *c);
int cmd_requeue(struct cli *c);
int cmd_update(struct cli *c);
int cmd_run(struct cli *c);
int cmd_submit(struct cli *c);
int cmd_wait(struct cli *c);

#endif
