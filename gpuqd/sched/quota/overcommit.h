/* overcommit.h - quotas that promise more than there is
 *
 * Owns     nothing. Touches memory only.
 * Used by  flow/quota_warn (when a site is read), gpuq-sim shares.
 *
 * Such quotas are allowed: they are then served in order of service, and no queue is owed
 * anything by another that stands inside its own.
 */
#ifndef GPUQD_SCHED_QUOTA_OVERCOMMIT_H
#define GPUQD_SCHED_QUOTA_OVERCOMMIT_H

#include "gpuqd/snapshot/snapshot.h"

struct overcommit {
	uint32_t queue; /* whose children they are; SNAP_NONE = those at the top */
	uint32_t flavor;
	int64_t sum_milli; /* of the children's quotas, unlimited ones left out */
	int64_t has_milli; /* the parent's quota; at the top the devices of the cluster */
};

/* The next one behind (queue, flavor) of *at; start with queue SNAP_NONE and flavor
 * SNAP_NONE. False when there is none. Linear in the queues. */
bool overcommit_next(const struct snapshot *s, struct overcommit *at);

#endif
