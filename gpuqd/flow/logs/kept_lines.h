/* kept_lines.h - lines that are kept with their times in front
 *
 * Owns     the time of the line that is being read.
 * Touches  memory only.
 * Used by  kept.c; tests.
 *
 * A line without a time, such as one whose beginning is not kept, goes with the one before it.
 */
#ifndef GPUQD_FLOW_LOGS_KEPT_LINES_H
#define GPUQD_FLOW_LOGS_KEPT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/buf.h"

#define KEPT_TIME_BYTES 40

struct kept_lines {
	int64_t since_us; /* older lines are left out; 0 = none is */
	bool timestamps; /* hand the times on, too */
	/* private */
	char time[KEPT_TIME_BYTES + 1];
	size_t n_time;
	bool in_text, skip;
};

void kept_lines_init(struct kept_lines *l, int64_t since_us, bool timestamps);

/* Append to out what of n bytes is to be handed on. */
void kept_lines_feed(struct kept_lines *l, const char *bytes, size_t n, struct gpuq_buf *out);
/* There are no more bytes: what looked like the beginning of a time was text. */
void kept_lines_end(struct kept_lines *l, struct gpuq_buf *out);

#endif
