/* queues_grant.h - gpuq queues grant
 *
 * Touches  the server, standard output.
 * Used by  cmd_queues.c.
 */
#ifndef GPUQ_CMD_SITE_QUEUES_GRANT_H
#define GPUQ_CMD_SITE_QUEUES_GRANT_H

#include "gpuq/cli.h"

/* gpuq queues grant QUEUE MINUTES. */
int queues_grant(struct cli *c);

#endif
