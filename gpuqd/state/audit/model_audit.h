/* model_audit.h - the consistency check of the model
 *
 * Touches  memory only.
 * Used by  gpuqd --audit (after a load), tests (after random events).
 *
 * Counters, lists and references that follow from jobs and pods are counted anew and compared
 * with what the model keeps. The cost is one walk over all jobs and pods.
 */
#ifndef GPUQD_STATE_AUDIT_MODEL_AUDIT_H
#define GPUQD_STATE_AUDIT_MODEL_AUDIT_H

#include "gpuqd/state/model.h"

/* Return 0, or GPUQ_ECORRUPT with the first thing found that does not add up: the job, queue,
 * user or node, the figure kept, and the figure counted. */
int model_audit(const struct model *m, struct gpuq_err *err);

#endif
