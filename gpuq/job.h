/* job.h - the objects of one job
 *
 * Touches  the server.
 * Used by  status, logs, wait, submit, queue.
 */
#ifndef GPUQ_JOB_H
#define GPUQ_JOB_H

#include "gpuq/cli.h"

/* Call fn for the job's object; for those of an array's waiting line and of each of
 * its elements when index is -1. fn answers 0, or anything else to stop.
 * Returns 0, what fn answered, GPUQ_ENOENT (no such job) or another error. */
typedef int (*job_fn)(void *arg, const struct gpuq_val *job);
int job_for_each(struct cli *c, int64_t id, int64_t index, job_fn fn, void *arg,
		 struct gpuq_err *err);

/* The job's object with its spec, as it was submitted; of an array the array's. NULL with *err:
 * GPUQ_EPERM for users who may not see it. */
const struct gpuq_val *job_with_spec(struct cli *c, int64_t id, int64_t index,
				     struct gpuq_err *err);

/* "17" or "17_3". */
void job_name(int64_t id, int64_t index, char *out, size_t room);

#endif
