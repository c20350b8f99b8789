/* lines.h - "Label   text" in two columns, for commands that describe one thing
 *
 * Touches  standard output.
 * Used by  cmd_status.c, cmd_why.c, cmd_plan.c, cmd_diag.c; its words by all.
 */
#ifndef GPUQ_LINES_H
#define GPUQ_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libgpuq/buf.h"
#include "libgpuq/val.h"

/* Where lines go from now on; NULL = standard output, as at first. */
void line_to(FILE *f);

/* Print label and text, cleaned, and on a terminal folded at its words; nothing for an empty text. text is empty afterwards. */
void line_print(const char *label, struct gpuq_buf *text);

/* The same with room for long labels: "scheduler.cycles". */
void line_wide(const char *label, struct gpuq_buf *text);

/* The value of key, when it says anything; else nothing. */
void line_value(const char *label, const struct gpuq_val *map, const char *key,
		struct gpuq_buf *text);

/* Neither absent nor null, and not an empty list or map. */
bool line_says(const struct gpuq_val *v);

/* Return the plural suffix "s" for n other than 1, else "". */
const char *line_s(int64_t n);

/* Append "1 GPU", "0.5 GPUs"; with the pods that have them: "8 GPUs in 4 pods". */
void line_gpus(struct gpuq_buf *text, const struct gpuq_val *gpus);
void line_pods(struct gpuq_buf *text, const struct gpuq_val *gpus, int64_t pods);

/* Append a span of time as a clock, "1:05:00"; "unlimited". */
void line_clock(struct gpuq_buf *text, int64_t us);

/* Append this many bytes, rounded: "1.5 GiB". */
void line_bytes(struct gpuq_buf *text, int64_t bytes);

/* "a b" that callers put before the n-th of several: the label once, then blanks. */
const char *line_label(const char *label, size_t n);

#endif
