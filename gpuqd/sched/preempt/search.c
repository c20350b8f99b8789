#include "gpuqd/sched/preempt/search.h"
#include "gpuqd/sched/preempt/search_node.h"

#include <string.h>

#include "gpuqd/sched/preempt/entitlement.h"
#include "gpuqd/sched/preempt/gangs.h"
#include "gpuqd/sched/preempt/minimise.h"
#include "gpuqd/sched/preempt/rules.h"
#include "gpuqd/sched/preempt/search_set.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/util/sort.h"

/* The search for victims. Two ways: one after the other from the queue that is furthest over its
 * share, until the preemptor fits; or node by node (search_node.c). The result is then reduced
 * (minimise.c). */

#define UNITS_MAX 64 /* units taken one by one, beyond two for each device requested */
#define ASIDE_MAX 64 /* units of a queue that are refused, one after the other */

/* ---- one after the other ---- */

/* Compare the parts of their shares that queues hold: < 0: x loses before y. */
static int cmp_loser(const struct cycle *c, const struct claim *k, uint32_t x, uint32_t y)
{
	const uint32_t res = entitlement_measure(c, k);
	const int64_t held_x = holdings_stays(c, x, res), held_y = holdings_stays(c, y, res);
	const int64_t due_x = entitlement_line_of(c, x, res, LINE_SHARE);
	const int64_t due_y = entitlement_line_of(c, y, res, LINE_SHARE);
	const bool over_x = held_x > holdings_fair(c, x)[res];
	const bool over_y = held_y > holdings_fair(c, y)[res];
	__int128 a = (__int128)held_x * due_y, b = (__int128)held_y * due_x;

	if (over_x != over_y)
		return over_x ? -1 : 1;
	if (c->s->queues[x].rank != c->s->queues[y].rank)
		return sort_i64(c->s->queues[x].rank, c->s->queues[y].rank);
	return (a < b) - (a > b);
}

/* Compare two leaves: the one that loses next, going down from the root; the queues below their
 * nearest common ancestor are compared. 0: they are equal. */
static int cmp_leaves(const struct cycle *c, const struct claim *k, uint32_t a, uint32_t b)
{
	uint32_t x, y;

	rules_below_common(c, a, b, &x, &y);
	return cmp_loser(c, k, x, y);
}

/* For units of two leaves that are equal: true if y is to be preempted before x. One to be
 * preempted last comes after the other, else that of the younger queue comes first. */
static bool goes_first(const struct cycle *c, uint32_t y, uint32_t x)
{
	const struct unit *a = &c->units->units[x], *b = &c->units->units[y];
	uint32_t side_a, side_b;

	if (a->evict_last != b->evict_last)
		return a->evict_last;
	rules_below_common(c, a->queue, b->queue, &side_a, &side_b);
	return side_b > side_a;
}

/* Return the first of the leaf's units that may be preempted; SNAP_NONE. */
static uint32_t first_legal(struct cycle *c, struct claim *k, uint32_t leaf)
{
	const struct units *all = c->units;
	uint32_t aside = 0;

	for (uint32_t i = all->line_first[leaf]; i < all->line_first[leaf + 1]; i++) {
		struct victim v;

		if (!search_looks_at(k, &all->units[all->line_units[i]]) ||
		    all->units[all->line_units[i]].refused == k->stamp.turn)
			continue;
		if (rules_legal(c, k, all->line_units[i], &v) != RULE_NONE &&
		    (v.simple || !claim_is(k, CLAIM_OUTSIDE) || leaf == k->leaf))
			return all->line_units[i];
		if (++aside == ASIDE_MAX)
			break;
	}
	return SNAP_NONE;
}

/* Return the unit that is preempted next: of the queue that is farthest beyond its entitlement the
 * first one that a rule allows. */
static uint32_t next_victim(struct cycle *c, struct claim *k)
{
	uint32_t best = SNAP_NONE, leaf = SNAP_NONE;

	for (uint32_t q = 0; q < c->s->n_queues; q++) {
		uint32_t unit;
		int d = 1;

		if (c->units->line_first[q] == c->units->line_first[q + 1] ||
		    !claim_is(k, q == k->leaf ? CLAIM_OWN : CLAIM_OTHERS))
			continue;
		if (leaf != SNAP_NONE)
			d = cmp_leaves(c, k, leaf, q);
		if (d < 0)
			continue;
		unit = first_legal(c, k, q);
		if (unit == SNAP_NONE || (d == 0 && !goes_first(c, unit, best)))
			continue;
		best = unit;
		leaf = q;
	}
	return best;
}

/* Take victims until the job fits. Bounded, since each try places the whole job. */
static bool one_by_one(struct cycle *c, struct claim *k)
{
	const int64_t need = k->flavor == SNAP_NONE ? 0 : k->need[k->flavor];
	const int64_t most = UNITS_MAX + 2 * (need / SNAP_MILLI);
	int64_t have = k->free_milli + search_gone_milli(c, k);

	k->stamp.turn = ++c->units->n_claims;
	while (!c->failed && k->tries.packs < PACKS_MAX) {
		const uint32_t before = k->victims.n;
		uint32_t unit;

		if (k->victims.n > 0 && have >= need && search_fits(c, k))
			return true;
		/* Much more than the request did not help: it is fragmented. */
		if (k->victims.n > most) {
			k->told.bound = PLAN_BOUND_VICTIMS;
			k->told.bound_most = most;
			return false;
		}
		unit = next_victim(c, k);
		if (unit == SNAP_NONE)
			return false;
		/* Set aside until another has been taken: its surplus may be refused, say. */
		if (!search_take(c, k, unit)) {
			c->units->units[unit].refused = k->stamp.turn;
			continue;
		}
		k->stamp.turn = ++c->units->n_claims;
		for (uint32_t i = before; i < k->victims.n; i++)
			have += c->units->units[k->victims.items[i].unit].gpus_milli;
	}
	k->told.bound = PLAN_BOUND_PLACEMENTS;
	k->told.bound_most = PACKS_MAX;
	return false;
}

/* ---- the search ---- */

/* True if its pods need more than one device of a node, so that freed devices must lie together. */
static bool wants_node(const struct snap_request *r)
{
	for (uint32_t g = 0; g < r->n_groups; g++)
		if (r->groups[g].gpus_milli > SNAP_MILLI)
			return true;
	return r->exclusive || search_required_level(r);
}

/* True if the victims from one on rely on nothing but their own queue being beyond its
 * entitlement. */
static bool all_outside(const struct claim *k, uint32_t from)
{
	for (uint32_t i = from; i < k->victims.n; i++)
		if (!k->victims.items[i].simple && k->victims.items[i].rule != RULE_OWN)
			return false;
	return true;
}

/* Find the leaf of the first gang preempted, from victim *at on, and the highest priority of its
 * preempted gangs; false: there is none. */
static bool next_broken(const struct cycle *c, const struct victim *set, uint32_t n, uint32_t *at,
			uint32_t *leaf, int64_t *priority)
{
	const struct units *all = c->units;
	bool known;

	do {
		while (*at < n && all->units[set[*at].unit].surplus)
			++*at;
		if (*at == n)
			return false;
		*leaf = all->units[set[(*at)++].unit].queue;
		known = false;
		for (uint32_t i = 0; i + 1 < *at; i++)
			known |= !all->units[set[i].unit].surplus &&
				 all->units[set[i].unit].queue == *leaf;
	} while (known);
	*priority = INT64_MIN;
	for (uint32_t i = 0; i < n; i++) {
		const struct unit *u = &all->units[set[i].unit];

		if (!u->surplus && u->queue == *leaf && u->priority > *priority)
			*priority = u->priority;
	}
	return true;
}

/* True if some unit of the queue is more than its job's minimum. */
static bool has_surplus(const struct cycle *c, uint32_t leaf, int64_t priority)
{
	const struct units *all = c->units;

	for (uint32_t i = all->line_first[leaf]; i < all->line_first[leaf + 1]; i++) {
		const struct unit *u = &all->units[all->line_units[i]];

		if (u->surplus && u->priority <= priority)
			return true;
	}
	return false;
}

/* Find surplus: one after the other; only units outside; node by node, the small ones first or the
 * large ones. */
static bool find_surplus(struct cycle *c, struct claim *k, uint32_t from)
{
	static const struct {
		bool outside, by_node, largest;
	} ways[] = {
		{ 0 },
		{ .outside = true },
		{ .by_node = true },
		{ .by_node = true, .largest = true },
	};
	bool found = false;

	for (size_t i = 0; !found && i < sizeof(ways) / sizeof(ways[0]) && !c->failed; i++) {
		search_drop_to(c, k, k->victims.n < from ? k->victims.n : from);
		k->tries.packs = 0;
		claim_set(k, CLAIM_OUTSIDE, ways[i].outside);
		claim_set(k, CLAIM_LARGEST, ways[i].largest);
		found = (ways[i].by_node ? search_clear_nodes(c, k) : one_by_one(c, k)) &&
			minimise_improve(c, k);
	}
	claim_set(k, CLAIM_OUTSIDE | CLAIM_LARGEST, false);
	return found;
}

/* Spare gangs where surplus of no higher priority in the same queue would do. */
static void spare_gangs(struct cycle *c, struct claim *k, uint32_t from)
{
	const uint32_t n = k->victims.n;
	struct victim *saved = NULL;
	uint32_t at = from;
	bool found = false;

	while (!found && !c->failed &&
	       next_broken(c, saved ? saved : k->victims.items, n, &at, &k->surplus.leaf,
			   &k->surplus.priority)) {
		if (!has_surplus(c, k->surplus.leaf, k->surplus.priority))
			continue;
		if (!saved) {
			saved = cycle_scratch(c, n, sizeof(*saved));
			if (!saved)
				return;
			memcpy(saved, k->victims.items, n * sizeof(*saved));
		}
		claim_set(k, CLAIM_SURPLUS, true);
		found = find_surplus(c, k, from);
		claim_set(k, CLAIM_SURPLUS, false);
	}
	if (found || !saved)
		return;
	search_restore(c, k, saved, n);
	search_fits(c, k); /* the places as they are now */
}

/* True if as much is free as the job requests, or would be: what it lacks is on certain nodes. */
static bool is_elsewhere(struct cycle *c, const struct claim *k, uint32_t before)
{
	const int64_t need = k->flavor == SNAP_NONE ? 0 : k->need[k->flavor];

	return k->victims.n > before && k->free_milli + search_gone_milli(c, k) >= need;
}

bool search_victims(struct cycle *c, struct claim *k)
{
	const struct snap_request *r = cycle_request(c, k->job);
	const uint32_t before = k->victims.n;
	bool found, astray, elsewhere = false;

	/* Pods of at most one device find room wherever that much is free, unless they are for certain nodes. */
	if (!gangs_index(c) || (claim_is(k, CLAIM_MOVERS) && !wants_node(r)))
		return false;
	k->tries.packs = 0;
	/* Where others may be relocated as well, no single node could be cleared. */
	found = wants_node(r) && !claim_is(k, CLAIM_MOVERS) && search_clear_nodes(c, k);
	if (!found) {
		search_drop_to(c, k, before);
		k->tries.packs = 0;
		found = one_by_one(c, k);
		elsewhere = !found && !wants_node(r) && !claim_is(k, CLAIM_MOVERS) &&
			    is_elsewhere(c, k, before);
	}
	astray = claim_is(k, CLAIM_OTHERS) && !all_outside(k, before);
	found = found && minimise_improve(c, k);
	/* Units inside a line may have been taken first, and left their queue too little for more:
	 * try once more without them. */
	if (!found && astray) {
		search_drop_to(c, k, k->victims.n < before ? k->victims.n : before);
		k->tries.packs = 0;
		claim_set(k, CLAIM_OUTSIDE, true);
		found = one_by_one(c, k) && minimise_improve(c, k);
		claim_set(k, CLAIM_OUTSIDE, false);
	}
	/* The first victims of their queue were on other nodes than the job, and it may lose no more. */
	if (!found && elsewhere) {
		search_drop_to(c, k, k->victims.n < before ? k->victims.n : before);
		k->tries.packs = 0;
		found = search_clear_nodes(c, k) && minimise_improve(c, k);
	}
	if (found && k->victims.n > before)
		spare_gangs(c, k, before);
	else if (!found)
		search_drop_to(c, k, k->victims.n < before ? k->victims.n : before);
	return found;
}
