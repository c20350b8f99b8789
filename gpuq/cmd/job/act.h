/* act.h - do one thing to many jobs: cancel, hold, release, requeue, update
 *
 * Touches  the server, standard output.
 * Used by  cmd_cancel.c, cmd_hold.c, cmd_update.c.
 */
#ifndef GPUQ_CMD_JOB_ACT_H
#define GPUQ_CMD_JOB_ACT_H

#include "gpuq/cli.h"

/* Call method with the ids of the arguments and the filters; extra (may be NULL)
 * holds parameters of its own. done is the verb of what happened ("Cancelled"),
 * would the one of a dry run ("Would cancel"). Returns the exit code. */
int act(struct cli *c, const char *method, const struct gpuq_val *extra, const char *done,
	const char *would);

#endif
