/* logs.h - the output of a job on standard output
 *
 * Owns     how far each pod's output has been printed, so that a stream that broke
 *          goes on where it was, without a line lost or printed twice.
 * Touches  the server, standard output.
 * Used by  cmd_logs.c, attend.c (gpuq run).
 *
 * One pod's output is printed byte by byte; of several pods, line by line with the
 * pod's number in front. On a terminal it passes term_log, unless raw.
 */
#ifndef GPUQ_CMD_JOB_LOGS_H
#define GPUQ_CMD_JOB_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuq/cmd/job/follow.h"
#include "gpuq/term.h"

struct log_pod {
	char name[64], label[280]; /* as it came, and as it is shown */
	int64_t attempt;
	int64_t offset_bytes; /* in its attempt's output, of what is not printed yet */
	struct term_log clean;
	struct gpuq_buf line; /* begun, with several pods */
};

struct logs {
	struct log_pod *pods;
	size_t n_pods;
	int64_t pod; /* only this one; -1 = all */
	int64_t tail_lines; /* -1 = from the beginning */
	int64_t attempt; /* only this one; -1 = the present one, and those that follow */
	int64_t since_us; /* 0 = from the beginning */
	bool follow, raw, prefix, timestamps;
};

/* Print until the stream ends: FOLLOW_MET (at the end of what there is, or of the
 * job with l->follow), or as follow_wait. f has one target. */
enum follow_end logs_print(struct logs *l, struct follow *f, struct gpuq_err *err);

void logs_done(struct logs *l);

#endif
