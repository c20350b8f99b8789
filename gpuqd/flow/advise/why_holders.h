/* why_holders.h - whose jobs hold the devices that a pending job could use, and why they may stay
 *
 * Owns     nothing. Touches memory only. Any thread.
 * Used by  why.c.
 */
#ifndef GPUQD_FLOW_ADVISE_WHY_HOLDERS_H
#define GPUQD_FLOW_ADVISE_WHY_HOLDERS_H

#include "gpuqd/flow/advise/why_change.h"

/* Return maps of queue, users, jobs, gpus and why, one for each queue and reason, in the order of the
 * queues. why: not_preemptible, own_queue, unlimited_quota, quota, not_reclaimable, min_runtime,
 * fair_share; room: they may be preempted, but that would not let this job start. */
struct gpuq_val *why_holders(const struct why_case *c);

#endif
