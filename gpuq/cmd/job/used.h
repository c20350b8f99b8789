/* used.h - what a job used, in words: CPU time, memory, I/O, GPUs
 *
 * Touches  standard output.
 * Used by  cmd_status.c, cmd_usage.c, attend.c, slurm_seff.c.
 */
#ifndef GPUQ_CMD_JOB_USED_H
#define GPUQ_CMD_JOB_USED_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/buf.h"
#include "libgpuq/val.h"

/* Return 100 * part / all, or -1 where one of them is not known. */
double used_percent(int64_t part, int64_t all);

/* Print a line for each thing that is known of an ended job; nothing else. text is empty afterwards. */
void used_lines(const struct gpuq_val *job, struct gpuq_buf *text);
/* Append what it requested far too much of, as a sentence; nothing where the request was near, or the site
 * does not want it (use_hints). */
void used_hint(const struct gpuq_val *job, struct gpuq_buf *text);

#endif
