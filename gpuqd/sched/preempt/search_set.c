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

static bool push_victim(struct cycle *c, struct claim *k, const struct victim *v)
{
	const enum claim_depth depth = entitlement_depth_of(c, k, v->unit);
	struct victim *at =
		cycle_push(c, &k->victims, &k->n_victims, &k->room_victims, sizeof(*at), 1);

	if (!at)
		return false;
	*at = *v;
	at->depth = depth;
	for (int line = 0; line < N_LINES; line++)
		if (v->instead[line] != SNAP_NONE)
			c->units->units[v->instead[line]].justifies[line] = k->number;
	k->tangled |= !v->simple;
	gangs_take(c, v->unit);
	return true;
}

static void put_back(struct cycle *c, const struct victim *v)
{
	gangs_put_back(c, v->unit);
	for (int line = 0; line < N_LINES; line++)
		if (v->instead[line] != SNAP_NONE)
			c->units->units[v->instead[line]].justifies[line] = 0;
}

void search_drop_last(struct cycle *c, struct claim *k)
{
	put_back(c, &k->victims[--k->n_victims]);
}

void search_drop_to(struct cycle *c, struct claim *k, uint32_t n)
{
	while (k->n_victims > n)
		search_drop_last(c, k);
}

void search_drop_all(struct cycle *c, struct claim *k)
{
	search_drop_to(c, k, 0);
}

void search_drop_at(struct cycle *c, struct claim *k, uint32_t i)
{
	put_back(c, &k->victims[i]);
	memmove(&k->victims[i], &k->victims[i + 1], (k->n_victims - i - 1) * sizeof(*k->victims));
	k->n_victims--;
}

int64_t search_gone_milli(const struct cycle *c, const struct claim *k)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < k->n_victims; i++)
		sum += c->units->units[k->victims[i].unit].gpus_milli;
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
	for (uint32_t u = end; u-- > gang + 1;) {
		struct victim v;

		if (all->units[u].gone)
			continue;
		if (rules_legal(c, k, u, &v) == RULE_NONE ||
		    (k->outside && !v.simple && v.rule != RULE_OWN) || !push_victim(c, k, &v))
			return false;
	}
	return all->units[gang].surplus_left == 0;
}

static bool take_gang(struct cycle *c, struct claim *k, uint32_t gang)
{
	const uint32_t before = k->n_victims, plan = k->plan;
	struct victim v;
	bool taken;

	if (!plan)
		k->plan = ++c->units->n_claims;
	c->units->units[gang].planned = k->plan;
	taken = take_surplus(c, k, gang) && rules_legal(c, k, gang, &v) != RULE_NONE &&
		push_victim(c, k, &v);
	k->plan = plan;
	if (!taken)
		search_drop_to(c, k, before);
	return taken;
}

/* Take a unit outside that justified other victims: possible when those had another right. */
static bool take_justifier(struct cycle *c, struct claim *k, uint32_t unit)
{
	const uint32_t n = k->n_victims, plan = k->plan;
	struct victim *saved = cycle_scratch(c, n, sizeof(*saved));
	uint32_t kept = 0;
	bool taken;

	if (!saved || plan)
		return false;
	memcpy(saved, k->victims, n * sizeof(*saved));
	search_drop_to(c, k, 0);
	k->plan = ++c->units->n_claims;
	c->units->units[unit].planned = k->plan;
	while (kept < n && search_take(c, k, saved[kept].unit))
		kept++;
	taken = kept == n && search_take(c, k, unit);
	k->plan = plan;
	if (!taken)
		search_restore(c, k, saved, n);
	return taken;
}

bool search_take(struct cycle *c, struct claim *k, uint32_t unit)
{
	const struct unit *u = &c->units->units[unit];
	struct victim v;

	if (rules_legal(c, k, unit, &v) == RULE_NONE ||
	    (k->outside && !v.simple && v.rule != RULE_OWN))
		return false;
	if (u->justifies[LINE_QUOTA] == k->number || u->justifies[LINE_SHARE] == k->number)
		return take_justifier(c, k, unit);
	/* A gang is taken with all its surplus, each unit by its own right. */
	if (!u->surplus && u->surplus_left > 0)
		return take_gang(c, k, unit);
	return push_victim(c, k, &v);
}

bool search_fits(struct cycle *c, struct claim *k)
{
	struct plan_reason why;

	if (k->fits) {
		k->n_packs++;
		return k->fits(c, k->fits_ctx);
	}
	if (!holdings_admits(c, k->job, k->flavor, &why))
		return false;
	k->n_packs++;
	if (timeline_pack_strictly(c, k->job, k->flavor)) {
		pack_undo(c, k->job);
		return true;
	}
	return k->movers && k->n_moves++ < MOVES_MAX && relocate_fits(c, k);
}

struct claim_cost search_cost_since(const struct cycle *c, const struct claim *k, uint32_t first)
{
	struct claim_cost cost = { .priority = INT64_MIN, .oldest_us = INT64_MAX };

	for (uint32_t i = first; i < k->n_victims; i++) {
		const struct victim *v = &k->victims[i];
		const struct unit *u = &c->units->units[v->unit];

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
	if (k->surplus &&
	    (!u->surplus || u->queue != k->surplus_leaf || u->priority > k->surplus_priority))
		return false;
	return !u->gone && !u->fixed && (u->queue == k->leaf ? k->own : k->others);
}
