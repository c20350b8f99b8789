/* record_job.h - jobs as stored bytes
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  model_apply.c.
 */
#ifndef GPUQD_STATE_RECORD_RECORD_JOB_H
#define GPUQD_STATE_RECORD_RECORD_JOB_H

#include "gpuqd/state/model.h"

void record_job(struct model *m, const struct job *j, struct batch *out);

#endif
