/* calendar_check.h - check of the reservations of a new site
 */
#ifndef GPUQD_FLOW_ADMIT_CALENDAR_CHECK_H
#define GPUQD_FLOW_ADMIT_CALENDAR_CHECK_H

#include <stdint.h>

#include "gpuqd/site/site.h"
#include "libgpuq/err.h"

struct model;

/* Check the reservations that `changes` (site_merge.h) adds or changes, one after the other, for
 * room beside the existing ones on the present nodes. Returns 0, or GPUQ_ECONFLICT: which
 * reservation fails, how much is left, what conflicts with it, and when it would fit. */
int calendar_check(const struct model *m, const struct site *s, const struct gpuq_val *changes,
		   int64_t now_us, struct gpuq_err *err);

#endif
