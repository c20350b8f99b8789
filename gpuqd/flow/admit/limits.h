/* limits.h - what is refused at once, because it could never start or would be too many
 *
 * Owns     the limits of queues, qos, users and groups on one job and on jobs submitted.
 *          Those on what runs at once are the scheduler's (snapshot_take_caps.h, sched/quota/holdings.c).
 * Touches  memory only.
 * Used by  flow/admit/submit.c.
 */
#ifndef GPUQD_FLOW_ADMIT_LIMITS_H
#define GPUQD_FLOW_ADMIT_LIMITS_H

#include "gpuqd/flow/admit/draft_int.h"

/* d->spec, queue and qos are known. Returns 0, or GPUQ_ELIMIT: the limit that decided, what
 * it allows, what there is and what was asked for. */
int limits_check(const struct draft *d, struct gpuq_err *err);
/* May the user have so much stored? d->bytes are known. Operators may. */
int limits_check_stored(const struct draft *d, struct gpuq_err *err);

#endif
