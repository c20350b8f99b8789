#include "gpuqd/sched/quota/overcommit.h"

#include <string.h>

#include "gpuqd/util/amount.h"

/* True if the quotas of the children of a queue, or of the top, exceed what there is for them. */
static bool is_one(const struct snapshot *s, uint32_t parent, uint32_t flavor,
		   struct overcommit *out)
{
	int64_t has = s->capacity[flavor], sum = 0;

	if (parent != SNAP_NONE && s->queues[parent].n_children == 0)
		return false;
	/* A quota that is a plain number counts for `default` too, which is only a name where all
	 * devices have flavors. */
	if (has == 0 && strcmp(s->flavors[flavor].name, "default") == 0)
		return false;
	if (parent != SNAP_NONE &&
	    s->shares[(size_t)parent * s->n_res + flavor].quota != GPUQ_UNLIMITED)
		has = s->shares[(size_t)parent * s->n_res + flavor].quota;
	else if (s->flavors[flavor].grows)
		return false;
	for (uint32_t q = 0; q < s->n_queues; q++) {
		const int64_t quota = s->shares[(size_t)q * s->n_res + flavor].quota;

		if (s->queues[q].parent == parent && quota != GPUQ_UNLIMITED)
			sum = amount_sum(sum, quota);
	}
	*out = (struct overcommit){ parent, flavor, sum, has };
	return sum > has;
}

bool overcommit_next(const struct snapshot *s, struct overcommit *at)
{
	/* SNAP_NONE + 1 is 0: from the top to the first queue, and before the first flavor. */
	uint32_t queue = at->queue, flavor = at->flavor + 1;

	for (;; queue++, flavor = 0) {
		for (; flavor < s->n_flavors; flavor++)
			if (is_one(s, queue, flavor, at))
				return true;
		if (queue != SNAP_NONE && queue + 1 >= s->n_queues)
			return false;
		if (queue == SNAP_NONE && s->n_queues == 0)
			return false;
	}
}
