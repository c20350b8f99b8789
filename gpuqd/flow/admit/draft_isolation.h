/* draft_isolation.h - whether the site can keep a job's devices apart from others as demanded
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  flow/admit/submit.c.
 */
#ifndef GPUQD_FLOW_ADMIT_DRAFT_ISOLATION_H
#define GPUQD_FLOW_ADMIT_DRAFT_ISOLATION_H

#include "gpuqd/state/model.h"

/* Check the demand of the job and of its queue. GPUQ_ERANGE: a request of that kind never has so much, or
 * there are nodes with devices and none of them, nor a pool, gives it. */
int draft_isolation(const struct model *m, const struct queue *q, const struct gpuq_spec *spec,
		    struct gpuq_err *err);

#endif
