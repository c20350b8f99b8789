#include "gpuqd/core/victims.h"

#include <string.h>

/* The set of victims: who is taken into it, in thought, and who goes with him. */

static bool push_victim(struct cycle *c, struct claim *k, const struct victim *v)
{
	struct victim *at =
		cycle_push(c, &k->victims, &k->n_victims, &k->room_victims, sizeof(*at), 1);

	if (!at)
		return false;
	*at = *v;
	for (int line = 0; line < N_LINES; line++)
		if (v->instead[line] != SNAP_NONE)
			c->units->units[v->instead[line]].justifies[line] = k->number;
	k->tangled |= !v->simple;
	unit_take(c, v->unit);
	return true;
}

static void put_back(struct cycle *c, const struct victim *v)
{
	unit_put_back(c, v->unit);
	for (int line = 0; line < N_LINES; line++)
		if (v->instead[line] != SNAP_NONE)
			c->units->units[v->instead[line]].justifies[line] = 0;
}

void claim_drop_last(struct cycle *c, struct claim *k)
{
	put_back(c, &k->victims[--k->n_victims]);
}

void claim_drop_to(struct cycle *c, struct claim *k, uint32_t n)
{
	while (k->n_victims > n)
		claim_drop_last(c, k);
}

void claim_drop_all(struct cycle *c, struct claim *k)
{
	claim_drop_to(c, k, 0);
}

void claim_drop_at(struct cycle *c, struct claim *k, uint32_t i)
{
	put_back(c, &k->victims[i]);
	memmove(&k->victims[i], &k->victims[i + 1], (k->n_victims - i - 1) * sizeof(*k->victims));
	k->n_victims--;
}

int64_t claim_gone_milli(const struct cycle *c, const struct claim *k)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < k->n_victims; i++)
		sum += c->units->units[k->victims[i].unit].gpus_milli;
	return sum;
}

/* Exactly these again. */
void claim_restore(struct cycle *c, struct claim *k, const struct victim *saved, uint32_t n)
{
	claim_drop_all(c, k);
	for (uint32_t i = 0; i < n; i++)
		push_victim(c, k, &saved[i]);
}

/* The gang cannot be what lets its own surplus be taken: it goes as well. */
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
		if (claim_legal(c, k, u, &v) == RULE_NONE ||
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
	taken = take_surplus(c, k, gang) && claim_legal(c, k, gang, &v) != RULE_NONE &&
		push_victim(c, k, &v);
	k->plan = plan;
	if (!taken)
		claim_drop_to(c, k, before);
	return taken;
}

/* What stands outside and let others be taken for that can go as well when they had
 * another right. */
static bool take_justifier(struct cycle *c, struct claim *k, uint32_t unit)
{
	const uint32_t n = k->n_victims, plan = k->plan;
	struct victim *saved = cycle_scratch(c, n, sizeof(*saved));
	uint32_t kept = 0;
	bool taken;

	if (!saved || plan)
		return false;
	memcpy(saved, k->victims, n * sizeof(*saved));
	claim_drop_to(c, k, 0);
	k->plan = ++c->units->n_claims;
	c->units->units[unit].planned = k->plan;
	while (kept < n && claim_take(c, k, saved[kept].unit))
		kept++;
	taken = kept == n && claim_take(c, k, unit);
	k->plan = plan;
	if (!taken)
		claim_restore(c, k, saved, n);
	return taken;
}

bool claim_take(struct cycle *c, struct claim *k, uint32_t unit)
{
	const struct unit *u = &c->units->units[unit];
	struct victim v;

	if (claim_legal(c, k, unit, &v) == RULE_NONE)
		return false;
	if (u->justifies[LINE_QUOTA] == k->number || u->justifies[LINE_SHARE] == k->number)
		return take_justifier(c, k, unit);
	/* A gang goes with all that goes beyond it, each by its own right. */
	if (!u->surplus && u->surplus_left > 0)
		return take_gang(c, k, unit);
	return push_victim(c, k, &v);
}

bool claim_fits(struct cycle *c, struct claim *k)
{
	struct plan_reason why;

	if (k->fits) {
		k->n_packs++;
		return k->fits(c, k->fits_ctx);
	}
	if (!ledger_admits(c, k->job, k->flavor, &why))
		return false;
	k->n_packs++;
	if (future_pack_strictly(c, k->job, k->flavor)) {
		pack_undo(c, k->job);
		return true;
	}
	return k->movers && k->n_moves++ < MOVES_MAX && move_fits(c, k);
}

bool claim_looks_at(const struct claim *k, const struct unit *u)
{
	if (k->surplus &&
	    (!u->surplus || u->queue != k->surplus_leaf || u->priority > k->surplus_priority))
		return false;
	return !u->gone && !u->fixed && (u->queue == k->leaf ? k->own : k->others);
}
