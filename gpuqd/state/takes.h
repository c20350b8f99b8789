/* takes.h - countable resources that a pod takes, as the cluster makes it
 *
 * Touches  memory only.
 * Used by  state/ (accounting, refusals), state/view/, snapshot/.
 */
#ifndef GPUQD_STATE_TAKES_H
#define GPUQD_STATE_TAKES_H

#include "gpuqd/state/model.h"

/* Put what a pod of the group takes in that queue: what it requests, defaults of its namespace, and the overhead of
 * its runtime. Returns how many; the names live as long as the model. */
size_t takes_amounts(const struct model *m, const struct queue *q, const struct request_group *g,
		     struct gpuq_amount out[GPUQ_RESOURCES_MAX]);
/* Return the first device among the overhead of a runtime, which each kubelet counts as taken and none allocates;
 * NULL = there is none. */
const char *takes_overhead_device(const struct model *m, const char *runtime);

#endif
