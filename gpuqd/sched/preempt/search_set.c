#include "gpuqd/sched/preempt/search_set.h"

#include "gpuqd/sched/place/pack.h"
#include "gpuqd/sched/preempt/entitlement.h"
#include "gpuqd/sched/preempt/gangs.h"
#include "gpuqd/sched/preempt/relocate.h"
#include "gpuqd/sched/preempt/rules.h"
#include "gpuqd/sched/preempt/search.h"

#include <string.h>

#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/sched/timeline/timeline_pack.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/util/sort.h"

/* The set of victims: units that are tentatively removed, and those removed with them. */

/* Add a victim and tentatively remove its pods. The units outside that justify it are marked, so
 * that search_take() does not take them without another look at it. */
static bool push_victim(struct cycle *c, struct claim *k, const struct victim *v)
{
	/* Its entitlement is that before it is removed. */
	const enum claim_depth depth = entitlement_depth_of(c, k, v->unit);
	struct victim *at =
		cycle_push(c, &k->victims.items, &k->victims.n, &k->victims.room, sizeof(*at), 1);

	if (!at)
		return false;
	*at = *v;
	at->depth = depth;
	for (int line = 0; line < N_LINES; line++)
		if (v->instead[line] != SNAP_NONE)
			c->units->units[v->instead[line]].justifies[line] = k->stamp.number;
	/* From now on units outside a line may have been inside it before. */
	if (!v->simple)
		claim_set(k, CLAIM_TANGLED, true);
	gangs_take(c, v->unit);
	return true;
}

/* Undo push_victim(), but for the modes of the claim: a claim once tangled stays so. */
static void put_back(struct cycle *c, const struct victim *v)
{
	gangs_put_back(c, v->unit);
	for (int line = 0; line < N_LINES; line++)
		if (v->instead[line] != SNAP_NONE)
			c->units->units[v->instead[line]].justifies[line] = 0;
}

void search_drop_last(struct cycle *c, struct claim *k)
{
	put_back(c, &k->victims.items[--k->victims.n]);
}

void search_drop_to(struct cycle *c, struct claim *k, uint32_t n)
{
	while (k->victims.n > n)
		search_drop_last(c, k);
}

void search_drop_all(struct cycle *c, struct claim *k)
{
	search_drop_to(c, k, 0);
}

void search_drop_at(struct cycle *c, struct claim *k, uint32_t i)
{
	put_back(c, &k->victims.items[i]);
	memmove(&k->victims.items[i], &k->victims.items[i + 1],
		(k->victims.n - i - 1) * sizeof(*k->victims.items));
	k->victims.n--;
}

int64_t search_gone_milli(const struct cycle *c, const struct claim *k)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < k->victims.n; i++)
		sum += c->units->units[k->victims.items[i].unit].gpus_milli;
	return sum;
}

/* Restore exactly these. */
void search_restore(struct cycle *c, struct claim *k, const struct victim *saved, uint32_t n)
{
	search_drop_all(c, k);
	for (uint32_t i = 0; i < n; i++)
		push_victim(c, k, &saved[i]);
}

/* The gang cannot justify the preemption of its own surplus: it is taken as well. */
static bool take_surplus(struct cycle *c, struct claim *k, uint32_t gang)
{
	struct units *all = c->units;
	uint32_t end = gang + 1;

	while (end < all->n_units && all->units[end].gang == gang)
		end++;
	/* The surplus follows its gang in the table. The last is taken first, as when a job
	 * shrinks. */
	for (uint32_t u = end; u-- > gang + 1;) {
		struct victim v;

		if (all->units[u].gone)
			continue;
		if (rules_legal(c, k, u, &v) == RULE_NONE ||
		    (claim_is(k, CLAIM_OUTSIDE) && !v.simple && v.rule != RULE_OWN) ||
		    !push_victim(c, k, &v))
			return false;
	}
	return all->units[gang].surplus_left == 0;
}

/* Take a gang together with all its surplus, or nothing. Meanwhile the gang, which leaves as well,
 * cannot justify the preemption of its own surplus. */
static bool take_gang(struct cycle *c, struct claim *k, uint32_t gang)
{
	const uint32_t before = k->victims.n, plan = k->stamp.plan;
	struct victim v;
	bool taken;

	if (!plan)
		k->stamp.plan = ++c->units->n_claims;
	c->units->units[gang].planned = k->stamp.plan;
	taken = take_surplus(c, k, gang) && rules_legal(c, k, gang, &v) != RULE_NONE &&
		push_victim(c, k, &v);
	k->stamp.plan = plan;
	if (!taken)
		search_drop_to(c, k, before);
	return taken;
}

/* Take a unit outside that justified other victims: possible when those had another right. */
static bool take_justifier(struct cycle *c, struct claim *k, uint32_t unit)
{
	const uint32_t n = k->victims.n, plan = k->stamp.plan;
	struct victim *saved = cycle_scratch(c, n, sizeof(*saved));
	uint32_t kept = 0;
	bool taken;

	/* A plan within a plan is not tried. */
	if (!saved || plan)
		return false;
	memcpy(saved, k->victims.items, n * sizeof(*saved));
	search_drop_to(c, k, 0);
	k->stamp.plan = ++c->units->n_claims;
	c->units->units[unit].planned = k->stamp.plan;
	/* Take all victims again, without this unit as a justification. */
	while (kept < n && search_take(c, k, saved[kept].unit))
		kept++;
	taken = kept == n && search_take(c, k, unit);
	k->stamp.plan = plan;
	/* Each victim is restored with the right by which it was taken at first. */
	if (!taken)
		search_restore(c, k, saved, n);
	return taken;
}

bool search_take(struct cycle *c, struct claim *k, uint32_t unit)
{
	const struct unit *u = &c->units->units[unit];
	struct victim v;

	if (rules_legal(c, k, unit, &v) == RULE_NONE ||
	    (claim_is(k, CLAIM_OUTSIDE) && !v.simple && v.rule != RULE_OWN))
		return false;
	if (u->justifies[LINE_QUOTA] == k->stamp.number ||
	    u->justifies[LINE_SHARE] == k->stamp.number)
		return take_justifier(c, k, unit);
	/* A gang is taken with all its surplus, each unit by its own right. */
	if (!u->surplus && u->surplus_left > 0)
		return take_gang(c, k, unit);
	return push_victim(c, k, &v);
}

bool search_fits(struct cycle *c, struct claim *k)
{
	struct plan_reason why;

	/* The caller has a test of its own instead of that for the gang. */
	if (k->room.fits) {
		k->tries.packs++;
		return k->room.fits(c, k->room.ctx);
	}
	/* Limits are cheap to test; a placement is not. */
	if (!holdings_admits(c, k->job, k->flavor, &why))
		return false;
	k->tries.packs++;
	if (timeline_pack_strictly(c, k->job, k->flavor)) {
		pack_undo(c, k->job);
		return true;
	}
	/* Capacity may suffice and be fragmented: relocate others, a bounded number of times. */
	return claim_is(k, CLAIM_MOVERS) && k->tries.moves++ < MOVES_MAX && relocate_fits(c, k);
}

struct claim_cost search_cost_since(const struct cycle *c, const struct claim *k, uint32_t first)
{
	struct claim_cost cost = { .priority = INT64_MIN, .oldest_us = INT64_MAX };

	for (uint32_t i = first; i < k->victims.n; i++) {
		const struct victim *v = &k->victims.items[i];
		const struct unit *u = &c->units->units[v->unit];

		/* Devices beyond the fair share cost the queue nothing that it is entitled to. */
		if (v->depth < DEPTH_BEYOND)
			cost.depth_milli[v->depth] += u->gpus_milli;
		if (u->priority > cost.priority)
			cost.priority = u->priority;
		cost.last += u->evict_last;
		if (u->queue == k->leaf && u->in_line_us && u->in_line_us < cost.oldest_us)
			cost.oldest_us = u->in_line_us;
		cost.lost = amount_sum(cost.lost, u->lost);
		cost.gangs += !u->surplus;
		cost.gone_milli = amount_sum(cost.gone_milli, u->gpus_milli);
	}
	return cost;
}

/* Compare in order: devices from within quotas, from within fair shares, the highest priority,
 * victims to be preempted last, the longest pending, work lost, gangs broken, devices freed. */
int search_cmp_cost(const struct claim_cost *x, const struct claim_cost *y)
{
	int d = sort_i64(x->depth_milli[DEPTH_QUOTA], y->depth_milli[DEPTH_QUOTA]);

	if (d == 0)
		d = sort_i64(x->depth_milli[DEPTH_SHARE], y->depth_milli[DEPTH_SHARE]);
	if (d == 0)
		d = sort_i64(x->priority, y->priority);
	if (d == 0)
		d = sort_i64(x->last, y->last);
	if (d == 0)
		d = sort_i64(y->oldest_us, x->oldest_us);
	if (d == 0)
		d = sort_i64(x->lost, y->lost);
	if (d == 0)
		d = sort_i64(x->gangs, y->gangs);
	return d ? d : sort_i64(x->gone_milli, y->gone_milli);
}

bool search_looks_at(const struct claim *k, const struct unit *u)
{
	if (u->gone || u->fixed)
		return false;
	/* A search for surplus alone takes it from one queue only, up to a priority. */
	if (claim_is(k, CLAIM_SURPLUS) &&
	    (!u->surplus || u->queue != k->surplus.leaf || u->priority > k->surplus.priority))
		return false;
	return u->queue == k->leaf ? claim_is(k, CLAIM_OWN) : claim_is(k, CLAIM_OTHERS);
}
