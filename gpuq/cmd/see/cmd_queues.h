/* cmd_queues.h - the list of queues, for others that show it
 *
 * Touches  the server, standard output.
 * Used by  cmd_status.c (the table), top_data.c (the columns).
 */
#ifndef GPUQ_CMD_SEE_CMD_QUEUES_H
#define GPUQ_CMD_SEE_CMD_QUEUES_H

#include "gpuq/cli.h"
#include "gpuq/out.h"

/* The table of queues, for `gpuq status` too. Returns the exit code. */
int queues_print(struct cli *c);
extern const struct out_def queue_list;

#endif
