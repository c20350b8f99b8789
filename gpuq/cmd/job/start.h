/* start.h - an estimated start in words
 *
 * Touches  standard output.
 * Used by  cmd_why.c, cmd_plan.c.
 */
#ifndef GPUQ_CMD_JOB_START_H
#define GPUQ_CMD_JOB_START_H

#include <stdint.h>

#include "libgpuq/buf.h"
#include "libgpuq/val.h"

/* Lines for what the server's `start` says: when, where, who leaves, what it waits for
 * until then, what that assumes and how good such answers were. Nothing for NULL. */
void start_lines(const struct gpuq_val *start, int64_t now_us, struct gpuq_buf *text);

/* GPU-hours that would have to be done again, of all who leave. */
double start_lost_hours(const struct gpuq_val *start);

#endif
