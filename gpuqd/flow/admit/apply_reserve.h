/* apply_reserve.h - the rights over the calendar
 *
 * Owns     nothing. Touches memory only.
 * Used by  apply_access.c. */
#ifndef GPUQD_FLOW_ADMIT_APPLY_RESERVE_H
#define GPUQD_FLOW_ADMIT_APPLY_RESERVE_H

#include <stdint.h>

#include "libgpuq/err.h"
#include "libgpuq/val.h"

struct model;
struct site;

/* Check that the user, who is no operator, may make this change of a reservation (one of
 * site_diff()): managers reserve for their queues, within the quota of the topmost queue that they
 * manage; users who have the right, for themselves, within its limits. now_us is wall time.
 * Returns 0 or GPUQ_EPERM. */
int apply_reserve_allowed(const struct model *m, const struct site *new_,
			  const struct gpuq_val *change, const char *who, int64_t now_us,
			  struct gpuq_err *err);

#endif
