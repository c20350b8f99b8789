#include "gpuqd/sched/preempt/minimise.h"

#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/preempt/gangs.h"
#include "gpuqd/sched/preempt/rules.h"
#include "gpuqd/sched/preempt/search.h"

#include <string.h>

#include "gpuqd/sched/place/pack.h"
#include "gpuqd/sched/preempt/search_set.h"

/* No more victims than needed, and none more expensive: a victim that is not needed is dropped, and
 * exchanged for a cheaper one of the same queue where that serves as well. An exact minimum would
 * be a knapsack problem with placement. */

#define EXCHANGED_MAX 32 /* larger sets of victims are not exchanged */

/* Return how many pods of the only group fit, over all nodes where it may run. */
static int64_t rooms(struct cycle *c, const struct claim *k, const struct need *one)
{
	const uint64_t *flavor = k->flavor == SNAP_NONE ? NULL : nodes_of_flavor(c, k->flavor);
	const struct amounts *avail = nodes_amounts(c);
	const uint32_t request = cycle_request_ix(c, k->job);
	const struct group_fit *fit = feasibility_of(c, request, 0);
	int64_t sum = 0;

	for (uint32_t w = 0; fit && w < cycle_words(c); w++) {
		uint64_t word = fit->nodes[w] & avail->usable[w];

		if (flavor)
			word &= flavor[w];
		while (word)
			sum += nodes_room(c, bits_pop(&word, w * 64), one, UINT32_MAX);
	}
	return sum;
}

/* Return how many fewer fit once the unit is put back. */
static int64_t rooms_lost(struct cycle *c, const struct claim *k, uint32_t unit,
			  const struct need *one)
{
	const uint64_t *flavor = k->flavor == SNAP_NONE ? NULL : nodes_of_flavor(c, k->flavor);
	const struct amounts *avail = nodes_amounts(c);
	const struct unit *u = &c->units->units[unit];
	const struct group_fit *fit = feasibility_of(c, cycle_request_ix(c, k->job), 0);
	uint64_t *seen = u->n_pods > 1 ? cycle_scratch(c, cycle_words(c), sizeof(*seen)) : NULL;
	int64_t before = 0, after = 0;

	for (int turn = 0; turn < 2; turn++) {
		if (seen)
			memset(seen, 0, cycle_words(c) * sizeof(*seen));
		for (uint32_t p = 0; fit && p < u->n_pods; p++) {
			const uint32_t node = c->s->allocs[c->units->pods[u->pod_first + p]].node;

			/* The same nodes that rooms() counts, each once. */
			if ((seen && bits_has(seen, node)) || !bits_has(fit->nodes, node) ||
			    !bits_has(avail->usable, node) || (flavor && !bits_has(flavor, node)))
				continue;
			if (seen)
				bits_add(seen, node);
			*(turn ? &after : &before) += nodes_room(c, node, one, UINT32_MAX);
		}
		if (turn == 0)
			gangs_put_back(c, unit);
	}
	gangs_take(c, unit);
	return before - after;
}

/* True if the set is allowed. It is unchanged either way. */
static bool valid_or_restored(struct cycle *c, struct claim *k, const struct victim *set,
			      uint32_t n)
{
	if (rules_valid(c, k))
		return true;
	search_restore(c, k, set, n);
	return false;
}

/* Drop victims that are not needed, the last taken first. While the set as a whole is not allowed,
 * fewer of it may be. *again = some may have become unnecessary by later drops, or changed places:
 * to be called again. */
static bool give_back(struct cycle *c, struct claim *k, bool *again)
{
	const struct snap_request *r = cycle_request(c, k->job);
	const struct need one = nodes_need(&r->groups[0]);
	const bool countable =
		!k->room.fits && !claim_is(k, CLAIM_MOVERS) && r->n_groups == 1 && !r->exclusive;
	int64_t spare = countable ? rooms(c, k, &one) - r->groups[0].pods_min : 0;
	struct victim *saved = cycle_scratch(c, k->victims.n, sizeof(*saved));
	struct victim *fewer = cycle_scratch(c, k->victims.n, sizeof(*fewer));
	bool refused = false, allowed;

	*again = false;
	claim_set(k, CLAIM_REORDERED, false);
	if (!saved || !fewer)
		return false;
	memcpy(saved, k->victims.items, k->victims.n * sizeof(*saved));
	allowed = valid_or_restored(c, k, saved, k->victims.n);
	for (uint32_t i = k->victims.n; i-- > 0 && !c->failed && k->tries.packs < PACKS_MAX;) {
		const struct unit *u = &c->units->units[k->victims.items[i].unit];
		const uint32_t n = k->victims.n;
		int64_t lost = 0;

		/* Without any victim it was tried before, but not with just those relocated. */
		if (n == 1 && !claim_is(k, CLAIM_MOVERS))
			break;
		if (u->surplus && c->units->units[u->gang].gone)
			continue;
		if (countable) {
			lost = rooms_lost(c, k, k->victims.items[i].unit, &one);
			if (lost > spare)
				continue;
		}
		memcpy(saved, k->victims.items, n * sizeof(*saved));
		search_drop_at(c, k, i);
		memcpy(fewer, k->victims.items, (n - 1) * sizeof(*fewer));
		if (!search_fits(c, k)) {
			search_restore(c, k, saved, n);
			continue;
		}
		if (valid_or_restored(c, k, fewer, n - 1)) {
			allowed = true;
		} else if (allowed) {
			/* After later drops the result may differ. */
			refused = true;
			search_restore(c, k, saved, n);
			continue;
		}
		spare -= lost;
		*again = refused || claim_is(k, CLAIM_REORDERED);
	}
	return !c->failed;
}

bool minimise_fewer(struct cycle *c, struct claim *k)
{
	bool again = true;

	while (again)
		if (!give_back(c, k, &again))
			return false;
	return true;
}

/* Exchange a victim for a unit that costs less and would serve as well, searched from unit `after`
 * on. */
static bool exchange_one(struct cycle *c, struct claim *k, uint32_t i, struct victim *saved)
{
	const struct units *all = c->units;
	const uint32_t n = k->victims.n, unit = k->victims.items[i].unit;
	const struct unit *u = &all->units[unit];

	if (u->surplus && all->units[u->gang].gone)
		return false;
	for (uint32_t o = all->line_first[u->queue]; o < all->line_first[u->queue + 1]; o++) {
		const struct unit *other = &all->units[all->line_units[o]];

		if (!search_looks_at(k, other) || other->surplus != u->surplus ||
		    other->evict_last > u->evict_last || other->priority > u->priority ||
		    other->lost >= u->lost || other->in_line_us < u->in_line_us ||
		    (!other->surplus && other->surplus_left > 0))
			continue;
		if (k->tries.packs >= PACKS_MAX)
			return false;
		memcpy(saved, k->victims.items, n * sizeof(*saved));
		search_drop_at(c, k, i);
		if (search_take(c, k, all->line_units[o]) && search_fits(c, k) && rules_valid(c, k))
			return true;
		search_restore(c, k, saved, n);
	}
	return false;
}

/* True if some were exchanged. */
static bool exchange(struct cycle *c, struct claim *k)
{
	struct victim *saved = cycle_scratch(c, (size_t)k->victims.n + 1, sizeof(*saved));
	bool any = false;

	if (!saved || k->victims.n > EXCHANGED_MAX)
		return false;
	for (uint32_t i = 0; i < k->victims.n && !c->failed; i++)
		any |= exchange_one(c, k, i, saved);
	return any;
}

bool minimise_improve(struct cycle *c, struct claim *k)
{
	bool found;

	k->tries.packs = 0;
	found = minimise_fewer(c, k);
	/* Units that were preempted with a gang which now stays need not be. */
	if (exchange(c, k))
		found = minimise_fewer(c, k);
	return found && rules_valid(c, k) && search_fits(c, k);
}
