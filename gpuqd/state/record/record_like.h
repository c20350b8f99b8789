/* record_like.h - loads a job whose record is like the previous one as a copy of that job
 *
 * Owns     nothing; what is noted is kept in the model until the load has ended.
 * Touches  memory only.
 * Used by  record_job.c.
 */
#ifndef GPUQD_STATE_RECORD_RECORD_LIKE_H
#define GPUQD_STATE_RECORD_RECORD_LIKE_H

#include "gpuqd/state/model.h"
#include "gpuqd/util/varint.h"

/* True if it is like the previous record; the job has then been loaded. */
bool record_like_load(struct model *m, struct job_key key, const struct rec *r);
/* Note the record of j: the next ones may be like it. */
void record_like_note(struct model *m, const struct job *j, const struct rec *r);

#endif
