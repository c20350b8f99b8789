/* limits.h - limits that refuse a job at submission
 *
 * Owns     the limits of queues, qos, users and groups on one job and on jobs submitted.
 *          Limits on what runs at once are the scheduler's (snapshot_take_caps.h,
 *          sched/quota/holdings.c).
 * Touches  memory only.
 * Used by  flow/admit/submit.c.
 */
#ifndef GPUQD_FLOW_ADMIT_LIMITS_H
#define GPUQD_FLOW_ADMIT_LIMITS_H

#include "gpuqd/flow/admit/draft_int.h"

/* Check the limits; d->spec, queue and qos are known. Returns 0, or GPUQ_ELIMIT with the limit that
 * decided, what it allows, what exists and what was requested. */
int limits_check(const struct draft *d, struct gpuq_err *err);
/* Check the bytes stored for the user; d->bytes are known. Operators have no limit. */
int limits_check_stored(const struct draft *d, struct gpuq_err *err);

#endif
