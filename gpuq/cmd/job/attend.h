/* attend.h - stay with submitted jobs until they have ended, and report
 *
 * Touches  the server, standard output (the job's), standard error.
 * Used by  cmd_submit.c (--wait), cmd_run.c, cmd_wait.c.
 */
#ifndef GPUQ_CMD_JOB_ATTEND_H
#define GPUQ_CMD_JOB_ATTEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuq/cli.h"
#include "gpuq/cmd/job/result.h"

struct stdio;

struct attend {
	const struct target *targets;
	size_t n_targets;
	int64_t timeout_us, start_timeout_us; /* 0 = none */
	bool keep; /* do not cancel a job that has not started in time */
	bool output; /* print the job's output (one target, no array) */
	bool prefix; /* the job has several pods */
	bool ours; /* a signal cancels the job, rather than leaving it alone */
	struct stdio *io; /* our input, and a terminal, are the job's (one target); NULL = not */
	bool quiet; /* no result line */
	bool json; /* the final job objects on standard output */
};

/* Read --timeout and --start-timeout into t. Returns false after a message if a value is wrong. */
bool attend_options(struct cli *c, struct attend *t, int *code);

/* Wait, print the result lines, return the exit code. */
int attend(struct cli *c, const struct attend *t);

#endif
