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

/* Print the server's `start`: time, place, victims, reasons until then, assumptions and
 * accuracy. Nothing for NULL. */
void start_lines(const struct gpuq_val *start, int64_t now_us, struct gpuq_buf *text);

/* Add "2026-11-21 15:26:29, in 1:05:00". */
void start_when(struct gpuq_buf *text, const struct gpuq_val *at, int64_t now_us);

/* Return the GPU-hours of lost work of all victims. */
double start_lost_hours(const struct gpuq_val *start);

#endif
