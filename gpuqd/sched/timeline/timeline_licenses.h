/* timeline_licenses.h - licenses over time
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  timeline.c, timeline_pack.c, timeline_plan.c. */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_LICENSES_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_LICENSES_H

#include "gpuqd/sched/timeline/timeline_int.h"

/* Note that a job releases its licenses at end_us. */
void timeline_licenses_end(struct cycle *c, uint32_t job, int64_t end_us);
/* True if those that the job requests are free from t to end, beside start reservations. */
bool timeline_licenses_fit(const struct cycle *c, uint32_t job, int64_t t, int64_t end);
/* Return the first start reservation between t and end that would lack some, if the job held its
 * own; or NULL. */
const struct planned *timeline_licenses_clash(const struct cycle *c, uint32_t job, int64_t t,
					      int64_t end);
/* Return the first start reservation that lacks some unless that running job is gone by then; or
 * NULL. */
const struct planned *timeline_licenses_wanted(const struct cycle *c, uint32_t job);

#endif
