/* cmd_int.h - the commands that show, for the table of commands and for one another
 *
 * Owns     nothing.
 * Touches  the terminal, the server.
 * Used by  cmd_completion.c, cmd_events.c, cmd_history.c, cmd_nodes.c, cmd_prio.c and others.
 */
#ifndef GPUQ_CMD_SEE_CMD_INT_H
#define GPUQ_CMD_SEE_CMD_INT_H

#include "gpuq/cli.h"
#include "gpuq/cols_job.h"

int cmd_completion(struct cli *c);
int cmd_events(struct cli *c);
int cmd_history(struct cli *c);
int cmd_nodes(struct cli *c);
int cmd_prio(struct cli *c);
int cmd_queue(struct cli *c);
int cmd_queues(struct cli *c);
int cmd_report(struct cli *c);
int cmd_shares(struct cli *c);
int cmd_status(struct cli *c);
int cmd_usage(struct cli *c);
int cmd_why(struct cli *c);

/* A job in full, as gpuq why prints it: the server's answer, and it in words on f. */
int why_get(struct cli *c, int64_t id, int64_t index, struct gpuq_val **v, struct gpuq_err *err);
void why_print(const struct gpuq_val *v, FILE *f);

/* The table of queues, for `gpuq status` too. Returns the exit code. */
int queues_print(struct cli *c);
extern const struct out_def node_list;
extern const struct out_def queue_list;

#endif
