/* submission.h - from the command line to jobs that the server has taken
 *
 * Owns     the specs of one submission and the key under which they were sent.
 * Touches  the job file, the submitter's surroundings (directory, umask, environment),
 *          the server.
 * Used by  cmd_submit.c, cmd_run.c, cmd_resubmit.c, again.c.
 */
#ifndef GPUQ_CMD_JOB_SUBMISSION_H
#define GPUQ_CMD_JOB_SUBMISSION_H

#include <stdbool.h>

#include "gpuq/cli.h"
#include "gpuq/cmd/job/result.h"
#include "libgpuq/spec.h"

struct submission {
	struct gpuq_specs specs;
	const struct gpuq_val *jobs; /* the server's answer, a list of job objects */
};

/* Read the file (or the command behind "--") that the arguments name, with the
 * options of the job over it. Arguments behind a script are the script's; behind
 * another file they are options still. Returns -1 to go on, else the exit code, and
 * then the reason has been said. */
int submission_read(struct cli *c, struct submission *s);

/* Send them: all are taken or none. Returns as submission_read. */
int submission_send(struct cli *c, struct submission *s, bool dry_run);

/* Send what was read, print it and, with --wait, wait for it. Returns the exit code. (cmd_submit.c) */
int submission_go(struct cli *c, struct submission *s);

/* Make --output the job's, unless it is the form of a dry run. */
int submission_output(struct cli *c, struct gpuq_err *err);

/* All of them as the parameters of a call, {specs, context}; NULL with *err. */
struct gpuq_val *submission_params(struct cli *c, const struct submission *s, struct gpuq_err *err);

/* The jobs as targets to wait for, in the arena; NULL without memory. */
struct target *submission_targets(struct cli *c, const struct submission *s, size_t *n);

/* Exit code of a refusal: 1, or 249 for commands that wait. */
int submission_refused(const struct cli *c);

#endif
