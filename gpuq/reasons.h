/* reasons.h - reasons in words
 *
 * Touches  memory only.
 * Used by  cmd_status.c, cmd_why.c, cmd_plan.c, top.
 */
#ifndef GPUQ_REASONS_H
#define GPUQ_REASONS_H

#include <stdint.h>

#include "libgpuq/buf.h"
#include "libgpuq/val.h"

/* "Resources: 2 of 4 GPUs free, for 5:00", "LimitQueue lab: have 8, need 4, can be changed by
 * manager" */
void reason_text(struct gpuq_buf *out, const struct gpuq_val *reason, int64_t now_us);
/* Add the number that a map with `unit` has under the key, in units that people use: 64, 1.5, 512Gi */
void reason_amount(struct gpuq_buf *text, const struct gpuq_val *reason, const char *key);
/* Print all reasons of a job, each with the cluster's words behind it. */
void reason_lines(const struct gpuq_val *job, int64_t now_us, struct gpuq_buf *text);

#endif
