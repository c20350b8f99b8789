/* provisioning.h - the nodes that were requested for a job, in words
 *
 * Touches  standard output, through lines.h.
 * Used by  cmd_status.c, cmd_why.c.
 */
#ifndef GPUQ_CMD_SEE_PROVISIONING_H
#define GPUQ_CMD_SEE_PROVISIONING_H

#include "libgpuq/buf.h"
#include "libgpuq/val.h"

/* Print what the job's `provisioning` tells; nothing for a job that waits for no such nodes. */
void provisioning_lines(const struct gpuq_val *job, int64_t now_us, struct gpuq_buf *text);
/* Print the pools that grow, of status.get, a line each: "dws-t4 0 of 1, asked 1". */
void provisioning_pools(const struct gpuq_val *status, struct gpuq_buf *text);

#endif
