/* ask_near.h - the pool whose machine comes nearest to a pod that none could hold
 *
 * Owns     nothing. Touches memory only.
 * Used by  flow/admit (a warning at submission), rpc (why).
 */
#ifndef GPUQD_STATE_ASKS_ASK_NEAR_H
#define GPUQD_STATE_ASKS_ASK_NEAR_H

#include <stdint.h>

#include "gpuqd/site/site.h"
#include "libgpuq/buf.h"
#include "libgpuq/spec.h"

struct ask_pod { /* as a group requests it */
	const struct gpuq_strlist *flavors; /* none = any */
	int64_t gpus_milli; /* of whole devices; 0 = none, or instances, which no machine tells */
	int64_t cpu_milli, memory_bytes;
	const struct gpuq_amount *resources;
	uint32_t n_resources;
};

/* Return the pool that grows of one of the flavors whose machine lacks least, and append what it has of that:
 * "pool dws-a100's machine has 8 gpus". NULL, and nothing is appended: none grows, or some machine would do. */
const struct site_pool *ask_near(const struct site *s, const struct ask_pod *pod,
				 struct gpuq_buf *out);

#endif
