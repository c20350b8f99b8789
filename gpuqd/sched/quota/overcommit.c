#include "gpuqd/sched/quota/overcommit.h"

#include <string.h>

#include "gpuqd/snapshot/cost.h"
#include "gpuqd/util/amount.h"

/* Return the cards of a node that are cut into instances, in thousandths, as far as they are the cluster's to
 * allocate; which instances share one is not known: they are cut as full as can be. */
static int64_t cut_cards(const struct snap_node *n)
{
	int64_t exact = 0, cards = 0, foreign = 0;

	for (uint32_t m = 0; m < n->n_mig; m++) {
		const int64_t milli = cost_of_profile(n->mig[m].profile), count = n->mig[m].count;
		const int64_t slots = cost_instances(n->mig[m].profile, "");
		const int64_t least = (count + slots - 1) / slots;

		/* A seventh is rounded up where it is charged; seven of them are a card. */
		exact += cost_exact(n->mig[m].profile, count);
		cards = least > cards ? least : cards;
		foreign += milli * n->mig[m].foreign;
	}
	exact = (exact + COST_EXACT - 1) / COST_EXACT;
	cards = (exact > cards ? exact : cards) * SNAP_MILLI;
	return cards > foreign ? cards - foreign : 0;
}

/* Return the devices of a flavor that quotas divide, cut or not: what instances leave of their card is among
 * them, though no job can have it. */
static int64_t devices_of(const struct snapshot *s, uint32_t flavor)
{
	int64_t milli = s->capacity[flavor];

	for (uint32_t i = 0; i < s->n_nodes; i++) {
		const struct snap_node *n = &s->nodes[i];

		if (n->flavor != flavor || n->state != SNAP_READY || n->n_mig == 0)
			continue;
		milli += cut_cards(n);
		for (uint32_t m = 0; m < n->n_mig; m++)
			if (n->mig[m].count > n->mig[m].foreign)
				milli -= cost_of_profile(n->mig[m].profile) *
					 (n->mig[m].count - n->mig[m].foreign);
	}
	return milli;
}

/* True if the quotas of the children of a queue, or of the top, exceed what there is for them. */
static bool is_one(const struct snapshot *s, uint32_t parent, uint32_t flavor,
		   struct overcommit *out)
{
	int64_t has, sum = 0;

	if (parent != SNAP_NONE && s->queues[parent].n_children == 0)
		return false;
	has = devices_of(s, flavor);
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
