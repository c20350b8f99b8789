/* target.h - the pod that a command speaks with: a job's id, --pod, --container
 *
 * Touches  standard error when they are wrong.
 * Used by  cmd_exec.c, cmd_attach.c, cmd_forward.c.
 */
#ifndef GPUQ_CMD_JOB_TARGET_H
#define GPUQ_CMD_JOB_TARGET_H

#include "gpuq/cli.h"

/* The params {id, index, pod, container} for the job that text names; NULL after a
 * message, with the exit code in *code. */
struct gpuq_val *target_params(struct cli *c, const char *text, int *code);

#endif
