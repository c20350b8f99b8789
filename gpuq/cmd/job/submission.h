/* submission.h - from the command line to accepted jobs
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
	const struct gpuq_val *jobs; /* the server's reply, a list of job objects */
};

/* Read the file (or the command after "--") that the arguments name, and apply the
 * options of the job. Arguments after a script are the script's; after other files
 * options may follow. Returns -1 to go on, else the exit code, with the reason
 * printed. */
int submission_read(struct cli *c, struct submission *s);

/* Send them; all are accepted or none. Returns as submission_read. */
int submission_send(struct cli *c, struct submission *s, bool dry_run);

/* Send what was read, print it and, with --wait, wait for it. Returns the exit code. (cmd_submit.c) */
int submission_go(struct cli *c, struct submission *s);

/* Make --output the job's, unless it is the form of a dry run. */
int submission_output(struct cli *c, struct gpuq_err *err);

/* Return all of them as the parameters of a call, {specs, context}; NULL with *err. */
struct gpuq_val *submission_params(struct cli *c, struct submission *s, struct gpuq_err *err);

/* Return the jobs as targets to wait for, in the arena; NULL without memory. */
struct target *submission_targets(struct cli *c, const struct submission *s, size_t *n);

/* Return the exit code of a refusal: 1, or 249 for commands that wait. */
int submission_refused(const struct cli *c);

#endif
