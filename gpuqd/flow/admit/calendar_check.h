/* calendar_check.h - may this site have these reservations?
 *
 * Owns     nothing. Touches memory only.
 * Used by  flow/admit/apply.c, before a change of the site is tried.
 */
#ifndef GPUQD_FLOW_ADMIT_CALENDAR_CHECK_H
#define GPUQD_FLOW_ADMIT_CALENDAR_CHECK_H

#include <stdint.h>

#include "gpuqd/site/site.h"
#include "libgpuq/err.h"

struct model;

/* Those that `changes` (site_merge.h) adds or changes, one after the other: do the others,
 * which were there before, leave room for them on the nodes there are? Returns 0, or
 * GPUQ_ECONFLICT: which one, how much is left, what is in its way, and when it would fit. */
int calendar_check(const struct model *m, const struct site *s, const struct gpuq_val *changes,
		   int64_t now_us, struct gpuq_err *err);

#endif
