/* apply_reserve.h - which user may put which reservation into the calendar
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  apply_access.c.
 */
#ifndef GPUQD_FLOW_ADMIT_APPLY_RESERVE_H
#define GPUQD_FLOW_ADMIT_APPLY_RESERVE_H

#include <stdint.h>

#include "libgpuq/err.h"
#include "libgpuq/val.h"

struct model;
struct site;

/* As apply_allowed() for one change of a reservation: managers reserve for their queues, within the quota of
 * the topmost queue that they manage; users who have the right, for themselves, within its limits. */
int apply_reserve_allowed(const struct model *m, const struct site *new_,
			  const struct gpuq_val *change, const char *who, int64_t now_us,
			  struct gpuq_err *err);

#endif
