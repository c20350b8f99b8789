/* apply_access.h - which user may make which change of the site
 *
 * Owns     the rights over the keys of queues (those of the scheduler: site/policy_queue.h).
 * Touches  memory only.
 * Used by  apply.c; tests.
 */
#ifndef GPUQD_FLOW_ADMIT_APPLY_ACCESS_H
#define GPUQD_FLOW_ADMIT_APPLY_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/err.h"
#include "libgpuq/val.h"

struct model;
struct site;

/* Check that the user, who is no operator, may make these changes (of site_diff(), from the model's
 * site to new_). A manager may add, change and remove queues below a queue that they manage as far
 * as that takes nothing from other queues; of the managed queue itself they may change which users
 * have access and how. now_us is wall time. Returns 0 or GPUQ_EPERM. */
int apply_allowed(const struct model *m, const struct site *new_, const struct gpuq_val *changes,
		  const char *who, int64_t now_us, struct gpuq_err *err);

/* True if these changes could make the scheduler evict a job. */
bool apply_may_evict(const struct gpuq_val *changes);

#endif
