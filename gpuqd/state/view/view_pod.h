/* view_pod.h - a pod with its devices, and claims that it shares, as clients see it
 *
 * Touches  memory only.
 * Used by  view_job.c.
 */
#ifndef GPUQD_STATE_VIEW_VIEW_POD_H
#define GPUQD_STATE_VIEW_VIEW_POD_H

#include "gpuqd/state/model.h"
#include "libgpuq/val.h"

/* Return a tree in a; NULL when it is exhausted. A device that the node no longer has is shown by its index alone. */
struct gpuq_val *view_pod(struct gpuq_arena *a, const struct model *m, const struct pod *p);

#endif
