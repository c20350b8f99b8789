/* timeline_licenses.h - what timeline_licenses.c does for others
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  timeline.c, timeline_pack.c, timeline_plan.c.
 */
#ifndef GPUQD_SCHED_TIMELINE_TIMELINE_LICENSES_H
#define GPUQD_SCHED_TIMELINE_TIMELINE_LICENSES_H

#include "gpuqd/sched/timeline/timeline.h"

/* A job gives its licenses back at end_us. */
void timeline_licenses_end(struct cycle *c, uint32_t job, int64_t end_us);
/* Are those that the job asks for free from t to end, beside what is planned? */
bool timeline_licenses_fit(const struct cycle *c, uint32_t job, int64_t t, int64_t end);
/* The first planned start between t and end that would lack some, if the job held its own; or
 * NULL. */
const struct planned *timeline_licenses_clash(const struct cycle *c, uint32_t job, int64_t t,
					      int64_t end);
/* The first planned start that lacks some unless that running job is gone by then; or NULL. */
const struct planned *timeline_licenses_wanted(const struct cycle *c, uint32_t job);

#endif
