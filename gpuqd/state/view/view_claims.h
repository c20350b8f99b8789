/* view_claims.h - ResourceClaims that pods share, as clients see them
 *
 * Touches  memory only.
 * Used by  view_job.c.
 */
#ifndef GPUQD_STATE_VIEW_VIEW_CLAIMS_H
#define GPUQD_STATE_VIEW_VIEW_CLAIMS_H

#include "gpuqd/state/model.h"
#include "libgpuq/val.h"

/* Return the claims that the pod shares with others: their devices, the jobs of those, and whether this pod is charged
 * for them. */
struct gpuq_val *view_claims(struct gpuq_arena *a, const struct model *m, const struct pod *p);

#endif
