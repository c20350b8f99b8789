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

#endif
