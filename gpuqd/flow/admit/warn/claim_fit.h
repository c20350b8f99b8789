/* claim_fit.h - whether the devices of a node could serve the claims of a pod, if nothing ran there
 *
 * Owns     nothing. Touches memory only.
 * Used by  place_warn.c.
 */
#ifndef GPUQD_FLOW_ADMIT_WARN_CLAIM_FIT_H
#define GPUQD_FLOW_ADMIT_WARN_CLAIM_FIT_H

#include "gpuqd/devices/dra/dra_ask.h"
#include "gpuqd/state/model.h"
#include "libgpuq/buf.h"
#include "libgpuq/limits.h"

/* The claims of a group that are to be allocated. */
struct claim_fit {
	const struct dra *d;
	struct dra_spec specs[GPUQ_CLAIMS_MAX];
	size_t n; /* 0 = there are none, or their objects are not all there yet */
};

void claim_fit_of(const struct model *m, const struct queue *q, const struct gpuq_group *g,
		  struct gpuq_arena *a, struct claim_fit *out);
/* True if the node has the devices for all of them. */
bool claim_fit_on(const struct claim_fit *c, const char *node);
/* Append what keeps each of them from all nodes that may_be admits: "; 8 of class x requested, 4 on the largest node". */
void claim_fit_tell(const struct claim_fit *c, const struct model *m,
		    bool (*may_be)(const void *arg, const struct node *n), const void *arg,
		    struct gpuq_buf *out);

#endif
