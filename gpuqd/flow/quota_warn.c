#include "gpuqd/flow/quota_warn.h"

#include <inttypes.h>

#include "gpuqd/base/log.h"
#include "gpuqd/sched/quota/overcommit.h"

bool quota_warn(const struct snapshot *s)
{
	struct overcommit at = { .queue = SNAP_NONE, .flavor = SNAP_NONE };
	int64_t devices = 0;

	for (uint32_t f = 0; f < s->n_flavors; f++)
		devices += s->capacity[f];
	if (devices == 0)
		return false;
	while (overcommit_next(s, &at))
		log_warn("site.overcommitted",
			 "parent=%s flavor=%s quotas=%" PRId64 ".%03d has=%" PRId64
			 ".%03d: the quotas below exceed it",
			 at.queue == SNAP_NONE ? "-" : s->queues[at.queue].name,
			 s->flavors[at.flavor].name, at.sum_milli / 1000,
			 (int)(at.sum_milli % 1000), at.has_milli / 1000,
			 (int)(at.has_milli % 1000));
	return true;
}
