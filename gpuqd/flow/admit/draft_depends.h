/* draft_depends.h - dependencies of a job that is submitted or changed
 *
 * Touches  the model, which it reads.
 * Used by  submit.c, update.c.
 */
#ifndef GPUQD_FLOW_ADMIT_DRAFT_DEPENDS_H
#define GPUQD_FLOW_ADMIT_DRAFT_DEPENDS_H

#include "gpuqd/flow/admit/draft_int.h"

/* Check that the jobs it depends on exist and do not depend on it in turn. */
int draft_check_depends(struct draft *d, struct gpuq_err *err);
/* Once the job is in the model: apply the starts and ends of its dependencies that happened before
 * it was submitted or its description was changed. */
void draft_tell_past(struct draft *d);

#endif
