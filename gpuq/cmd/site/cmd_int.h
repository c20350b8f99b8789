/* cmd_int.h - the commands for operators, for the table of commands
 *
 * Owns     nothing.
 * Touches  the terminal, the server.
 * Used by  cmd_apply.c, cmd_backup.c, cmd_completion.c, cmd_diag.c, cmd_doctor.c and others.
 */
#ifndef GPUQ_CMD_SITE_CMD_INT_H
#define GPUQ_CMD_SITE_CMD_INT_H

#include "gpuq/cli.h"

int cmd_apply(struct cli *c);
int cmd_backup(struct cli *c);
int cmd_diag(struct cli *c);
int cmd_doctor(struct cli *c);
int cmd_drain(struct cli *c);
int cmd_recover(struct cli *c);
int cmd_export(struct cli *c);
int cmd_reservations(struct cli *c);
int cmd_reserve(struct cli *c);
int cmd_resume(struct cli *c);
int cmd_version(struct cli *c);

/* gpuq queues grant QUEUE MINUTES. */
int queues_grant(struct cli *c);

#endif
