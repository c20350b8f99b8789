/* draft_depends.h - the jobs that a job waits for
 *
 * Touches  the model, which it reads.
 * Used by  submit.c, update.c.
 */
#ifndef GPUQD_FLOW_ADMIT_DRAFT_DEPENDS_H
#define GPUQD_FLOW_ADMIT_DRAFT_DEPENDS_H

#include "gpuqd/flow/admit/draft_int.h"

/* draft_depends.c: those that it waits for are there, and do not wait for it. */
int draft_check_depends(struct draft *d, struct gpuq_err *err);
/* Once the job is in the model: tell it of those that started or ended before it came, or was
 * described anew. */
void draft_tell_past(struct draft *d);

#endif
