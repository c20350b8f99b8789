/* again.h - a job as it was submitted, and once more
 *
 * Touches  the server.
 * Used by  cmd_resubmit.c, gpuq/slurm (scontrol requeue, write batch_script).
 */
#ifndef GPUQ_CMD_JOB_AGAIN_H
#define GPUQ_CMD_JOB_AGAIN_H

#include "gpuq/cli.h"
#include "gpuq/cmd/job/submission.h"

/* Read a job into a submission: with the elements that job names (17_3), or with failed only those
 * that ended without completing. Options of the command line win over what was submitted then; its
 * dependencies, and instants that have passed, are left out. s->specs.n is 0 where nothing failed.
 * Returns 0 or an error code. */
int again_read(struct cli *c, const char *job, bool failed, struct submission *s,
	       struct gpuq_err *err);

#endif
