/* overcommit.h - quotas whose sum exceeds the capacity
 *
 * Owns     nothing. Touches memory only.
 * Used by  flow/quota_warn (when a site is read), gpuq-sim shares.
 *
 * Such quotas are allowed: they are served in queue order, and no queue may reclaim for its quota
 * from another that is within its own. */
#ifndef GPUQD_SCHED_QUOTA_OVERCOMMIT_H
#define GPUQD_SCHED_QUOTA_OVERCOMMIT_H

#include "gpuqd/snapshot/snapshot.h"

struct overcommit {
	uint32_t queue; /* the parent of the children; SNAP_NONE = those at the top */
	uint32_t flavor;
	int64_t sum_milli; /* of the children's quotas, unlimited ones left out */
	int64_t has_milli; /* the parent's quota; at the top the devices of the cluster, cut or not */
};

/* Find the next one after (queue, flavor) of *at; start with queue SNAP_NONE and flavor SNAP_NONE.
 * False when there are no more. Linear in the queues. */
bool overcommit_next(const struct snapshot *s, struct overcommit *at);

#endif
