/* code.h - the directory that a job carries, on its way to the server
 *
 * Owns     what is remembered of a directory between two submissions: files of the user's cache.
 * Touches  the directory (through the program gpuq-pack), the cache, the server.
 * Used by  submission.c.
 */
#ifndef GPUQ_CMD_JOB_CODE_H
#define GPUQ_CMD_JOB_CODE_H

#include "gpuq/cli.h"
#include "libgpuq/spec.h"

/* Make sure that the server has the directory which spec->code names, if it names one, and fill in the rest of it.
 * With dry_run nothing is sent. Returns 0, or why it cannot be carried. */
int code_carry(struct cli *c, struct gpuq_spec *spec, bool dry_run, struct gpuq_err *err);

#endif
