#include "gpuqd/sched/preempt/shortage.h"

#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/preempt/rules.h"
#include "gpuqd/sched/quota/holdings.h"

/* Cpu and memory mostly have no quota: then queues are entitled to their fair share of them, as of
 * devices without a quota. That matters to a job that lacks cpu or memory and not devices; to a job
 * that lacks devices it does not matter how much cpu other queues hold. */

/* True if the queue holds more cpu or memory than its fair share, where no quota counts them. */
static bool over_share(const struct cycle *c, const struct claim *k, uint32_t queue)
{
	for (uint32_t res = c->s->n_flavors; res < c->s->n_res; res++) {
		const size_t at = (size_t)queue * c->s->n_res + res;

		if (k->need[res] > 0 && c->s->shares[at].quota == GPUQ_UNLIMITED &&
		    holdings_stays(c, queue, res) > holdings_fair(c, queue)[res])
			return true;
	}
	return false;
}

/* True if the preemptor may lack something other than devices; without looking at nodes. */
static bool has_devices(const struct cycle *c, const struct claim *k)
{
	return k->flavor == SNAP_NONE || k->free_milli >= cycle_request(c, k->job)->gpus_milli;
}

bool shortage_possible(const struct cycle *c, const struct claim *k)
{
	if (!has_devices(c, k) || !rules_to_share(c) || claim_is(k, CLAIM_GROWTH) ||
	    c->s->queues[k->leaf].reclaim == SNAP_RECLAIM_NEVER)
		return false;
	for (uint32_t q = k->leaf; q != SNAP_NONE; q = c->s->queues[q].parent) {
		const uint32_t parent = c->s->queues[q].parent;

		for (uint32_t y = c->kids.first[parent == SNAP_NONE ? c->s->n_queues : parent];
		     y != SNAP_NONE; y = c->kids.next[y])
			if (y != q && over_share(c, k, y))
				return true;
	}
	return false;
}

/* True if there is room for all pods of the group, as far as devices and these amounts go. */
static bool has_rooms(struct cycle *c, const struct claim *k, uint32_t group, uint8_t amounts)
{
	const uint64_t *flavor = k->flavor == SNAP_NONE ? NULL : nodes_of_flavor(c, k->flavor);
	const struct amounts *avail = nodes_amounts(c);
	const uint32_t request = cycle_request_ix(c, k->job);
	const struct snap_group *g = &c->s->requests[request].groups[group];
	const struct group_fit *fit = feasibility_of(c, request, group);
	struct need one = nodes_need(g);
	uint32_t left = g->pods_min;

	if (!(amounts & SHORT_CPU))
		one.cpu = 0;
	if (!(amounts & SHORT_MEMORY))
		one.memory = 0;
	for (uint32_t w = 0; fit && left > 0 && w < cycle_words(c); w++) {
		uint64_t word = fit->nodes[w] & avail->usable[w];

		if (flavor)
			word &= flavor[w];
		while (word && left > 0)
			left -= nodes_room(c, bits_pop(&word, w * 64), &one, left);
	}
	return left == 0;
}

/* True if each group has room by itself. */
static bool all_have_rooms(struct cycle *c, const struct claim *k, uint8_t amounts)
{
	const struct snap_request *r = cycle_request(c, k->job);

	for (uint32_t g = 0; g < r->n_groups; g++)
		if (!has_rooms(c, k, g, amounts))
			return false;
	return true;
}

uint8_t shortage_of(struct cycle *c, const struct claim *k)
{
	uint8_t lacks = 0;

	if (!has_devices(c, k) || !rules_to_share(c) ||
	    (k->need[snap_cpu(c->s)] == 0 && k->need[snap_memory(c->s)] == 0) ||
	    !all_have_rooms(c, k, 0))
		return 0;
	if (!all_have_rooms(c, k, SHORT_CPU))
		lacks |= SHORT_CPU;
	if (!all_have_rooms(c, k, SHORT_MEMORY))
		lacks |= SHORT_MEMORY;
	/* Each has room, but not on the same nodes. */
	if (!lacks && !all_have_rooms(c, k, SHORT_CPU | SHORT_MEMORY))
		lacks = SHORT_CPU | SHORT_MEMORY;
	return lacks;
}
