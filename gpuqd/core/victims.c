#include "gpuqd/core/claim.h"

#include <string.h>

#include "gpuqd/core/amount.h"
#include "gpuqd/core/sort.h"
#include "gpuqd/core/topology.h"
#include "libgpuq/limits.h"

/* The search for victims. Two ways: one after the other from the queue that is most over
 * its share, until the claimant fits; or, where its pods need several devices of one
 * node, node by node, always that whose clearing costs least. What turns out not to be
 * needed is given back, and a cheaper one of the same queue is taken where one serves as
 * well. An exact minimum would be a knapsack with placement. */

#define PACKS_MAX 256 /* tries to place the gang, for one claim */
#define UNITS_MAX 64 /* units taken one by one, beyond two for each device asked for */
#define ASIDE_MAX 64 /* units of a queue that are asked in vain, one after the other */
#define EXCHANGED_MAX 32 /* larger sets of victims are not improved upon */

/* ---- the set of victims ---- */

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

static void drop_to(struct cycle *c, struct claim *k, uint32_t n)
{
	while (k->n_victims > n)
		claim_drop_last(c, k);
}

void claim_drop_all(struct cycle *c, struct claim *k)
{
	drop_to(c, k, 0);
}

static void drop_at(struct cycle *c, struct claim *k, uint32_t i)
{
	put_back(c, &k->victims[i]);
	memmove(&k->victims[i], &k->victims[i + 1], (k->n_victims - i - 1) * sizeof(*k->victims));
	k->n_victims--;
}

/* Exactly these again. */
static void restore(struct cycle *c, struct claim *k, const struct victim *saved, uint32_t n)
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
		drop_to(c, k, before);
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
	drop_to(c, k, 0);
	k->plan = ++c->units->n_claims;
	c->units->units[unit].planned = k->plan;
	while (kept < n && claim_take(c, k, saved[kept].unit))
		kept++;
	taken = kept == n && claim_take(c, k, unit);
	k->plan = plan;
	if (!taken)
		restore(c, k, saved, n);
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
	if (!future_pack_strictly(c, k->job, k->flavor))
		return false;
	pack_undo(c, k->job);
	return true;
}

/* ---- one after the other ---- */

static bool looked_at(const struct claim *k, const struct unit *u)
{
	if (k->surplus &&
	    (!u->surplus || u->queue != k->surplus_leaf || u->priority > k->surplus_priority))
		return false;
	return !u->gone && !u->fixed && (u->queue == k->leaf ? k->own : k->others);
}

/* How much of its share a queue holds: is x to lose something before y? */
static int cmp_loser(const struct cycle *c, const struct claim *k, uint32_t x, uint32_t y)
{
	const uint32_t res = k->flavor == SNAP_NONE ? snap_cpu(c->s) : k->flavor;
	const int64_t held_x = stays(c, x, res), held_y = stays(c, y, res);
	const int64_t due_x = line_of(c, x, res, LINE_SHARE);
	const int64_t due_y = line_of(c, y, res, LINE_SHARE);
	const bool over_x = held_x > c->fair[(size_t)x * c->s->n_res + res];
	const bool over_y = held_y > c->fair[(size_t)y * c->s->n_res + res];
	__int128 a = (__int128)held_x * due_y, b = (__int128)held_y * due_x;

	if (over_x != over_y)
		return over_x ? -1 : 1;
	if (c->s->queues[x].rank != c->s->queues[y].rank)
		return sort_i64(c->s->queues[x].rank, c->s->queues[y].rank);
	if (a != b)
		return a > b ? -1 : 1;
	return sort_i64(y, x); /* the younger first */
}

/* The leaf that loses next, going down from the root; of two leaves, the queues below
 * their nearest common ancestor are compared. */
static int cmp_leaves(const struct cycle *c, const struct claim *k, uint32_t a, uint32_t b)
{
	uint32_t x, y;

	claim_below_common(c, a, b, &x, &y);
	return x == y ? 0 : cmp_loser(c, k, x, y);
}

/* The first of the leaf's units that may go; SNAP_NONE. */
static uint32_t first_legal(struct cycle *c, struct claim *k, uint32_t leaf)
{
	const struct units *all = c->units;
	uint32_t aside = 0;

	for (uint32_t i = all->line_first[leaf]; i < all->line_first[leaf + 1]; i++) {
		struct victim v;

		if (!looked_at(k, &all->units[all->line_units[i]]) ||
		    all->units[all->line_units[i]].refused == k->turn)
			continue;
		if (claim_legal(c, k, all->line_units[i], &v) != RULE_NONE &&
		    (v.simple || !k->outside || leaf == k->leaf))
			return all->line_units[i];
		if (++aside == ASIDE_MAX)
			break;
	}
	return SNAP_NONE;
}

static uint32_t next_victim(struct cycle *c, struct claim *k)
{
	uint32_t best = SNAP_NONE, leaf = SNAP_NONE;

	for (uint32_t q = 0; q < c->s->n_queues; q++) {
		uint32_t unit;

		if (c->units->line_first[q] == c->units->line_first[q + 1] ||
		    (q == k->leaf ? !k->own : !k->others) ||
		    (leaf != SNAP_NONE && cmp_leaves(c, k, leaf, q) <= 0))
			continue;
		unit = first_legal(c, k, q);
		if (unit == SNAP_NONE)
			continue;
		best = unit;
		leaf = q;
	}
	return best;
}

static bool one_by_one(struct cycle *c, struct claim *k)
{
	const int64_t need = k->flavor == SNAP_NONE ? 0 : k->need[k->flavor];
	const int64_t most = UNITS_MAX + 2 * (need / SNAP_MILLI);
	int64_t have = k->free_milli;

	k->turn = ++c->units->n_claims;
	for (uint32_t i = 0; i < k->n_victims; i++)
		have += c->units->units[k->victims[i].unit].gpus_milli;

	while (!c->failed && k->n_packs < PACKS_MAX) {
		const uint32_t before = k->n_victims;
		uint32_t unit;

		if (k->n_victims > 0 && have >= need && claim_fits(c, k))
			return true;
		/* Much more than it asks for did not help: it does not lie there. */
		if (k->n_victims > most)
			return false;
		unit = next_victim(c, k);
		if (unit == SNAP_NONE)
			return false;
		/* Aside until another has been taken: its surplus may not go, say. */
		if (!claim_take(c, k, unit)) {
			c->units->units[unit].refused = k->turn;
			continue;
		}
		k->turn = ++c->units->n_claims;
		for (uint32_t i = before; i < k->n_victims; i++)
			have += c->units->units[k->victims[i].unit].gpus_milli;
	}
	return false;
}

/* ---- node by node ---- */

/* What clearing a node for one more pod costs. */
struct spot {
	int64_t priority; /* the highest among the victims */
	int64_t oldest_us; /* the first in line of them, where that counts; else INT64_MAX */
	uint32_t gangs; /* that are broken */
	int64_t lost;
	uint32_t node;
};

static bool cheaper(const struct spot *x, const struct spot *y)
{
	if (x->priority != y->priority)
		return x->priority < y->priority;
	if (x->oldest_us != y->oldest_us)
		return x->oldest_us > y->oldest_us;
	if (x->gangs != y->gangs)
		return x->gangs < y->gangs;
	if (x->lost != y->lost)
		return x->lost < y->lost;
	return x->node < y->node;
}

static bool has_room(const struct cycle *c, const struct claim *k, uint32_t node,
		     const struct need *one)
{
	const bool exclusive = c->s->requests[c->s->jobs[k->job].request].exclusive;

	return bits_has(c->usable, node) && nodes_room(c, node, one, 1) == 1 &&
	       (!exclusive || c->tenants[node] == 0);
}

/* Surplus of the node that could go, the smallest that was not asked yet. */
static uint32_t smallest_on(const struct cycle *c, const struct claim *k, uint32_t node)
{
	const struct units *all = c->units;
	uint32_t best = SNAP_NONE;

	for (uint32_t i = all->node_first[node]; i < all->node_first[node + 1]; i++) {
		const struct unit *u = &all->units[all->node_units[i]];

		if (looked_at(k, u) && u->refused != k->turn &&
		    (best == SNAP_NONE || u->gpus_milli < all->units[best].gpus_milli))
			best = all->node_units[i];
	}
	return best;
}

/* Where surplus is to go instead of a gang, what opens most places for least goes first. */
static void clear_surplus(struct cycle *c, struct claim *k, uint32_t node, const struct need *one)
{
	uint32_t unit;

	k->turn = ++c->units->n_claims;
	while (!has_room(c, k, node, one) && (unit = smallest_on(c, k, node)) != SNAP_NONE) {
		c->units->units[unit].refused = k->turn;
		if (claim_take(c, k, unit))
			k->turn = ++c->units->n_claims;
	}
}

/* Take units off the node until one more pod has room; those that prove needless stay.
 * False: nothing has changed. */
static bool clear_node(struct cycle *c, struct claim *k, uint32_t node, const struct need *one)
{
	const struct units *all = c->units;
	const uint32_t before = k->n_victims;
	bool progress = !k->surplus;

	if (k->surplus)
		clear_surplus(c, k, node, one);
	while (!has_room(c, k, node, one) && progress && !c->failed) {
		progress = false;
		for (uint32_t i = all->node_first[node];
		     i < all->node_first[node + 1] && !has_room(c, k, node, one); i++)
			if (looked_at(k, &all->units[all->node_units[i]]))
				progress |= claim_take(c, k, all->node_units[i]);
	}
	if (!has_room(c, k, node, one)) {
		drop_to(c, k, before);
		return false;
	}
	for (uint32_t i = k->n_victims; i-- > before;) {
		const struct victim v = k->victims[i];
		const struct unit *u = &all->units[v.unit];

		if (u->surplus && all->units[u->gang].gone)
			continue;
		unit_put_back(c, v.unit);
		if (has_room(c, k, node, one)) {
			unit_take(c, v.unit);
			drop_at(c, k, i);
		} else {
			unit_take(c, v.unit);
		}
	}
	return true;
}

static void cost_since(const struct cycle *c, const struct claim *k, uint32_t before,
		       struct spot *spot)
{
	spot->priority = INT64_MIN;
	spot->oldest_us = INT64_MAX;
	spot->gangs = 0;
	spot->lost = 0;
	for (uint32_t i = before; i < k->n_victims; i++) {
		const struct unit *u = &c->units->units[k->victims[i].unit];

		if (u->priority > spot->priority)
			spot->priority = u->priority;
		if (u->queue == k->leaf && u->in_line_us && u->in_line_us < spot->oldest_us)
			spot->oldest_us = u->in_line_us;
		spot->gangs += !u->surplus;
		spot->lost = amount_sum(spot->lost, u->lost);
	}
}

static bool price(struct cycle *c, struct claim *k, uint32_t node, const struct need *one,
		  struct spot *spot)
{
	const uint32_t before = k->n_victims;

	c->steps++;
	if (!clear_node(c, k, node, one))
		return false;
	spot->node = node;
	cost_since(c, k, before, spot);
	drop_to(c, k, before);
	return true;
}

/* A heap of spots, the cheapest at 0. */
static void sift_up(struct spot *heap, uint32_t at)
{
	for (; at > 0 && cheaper(&heap[at], &heap[(at - 1) / 2]); at = (at - 1) / 2) {
		const struct spot t = heap[at];

		heap[at] = heap[(at - 1) / 2];
		heap[(at - 1) / 2] = t;
	}
}

static void sift_down(struct spot *heap, uint32_t n)
{
	for (uint32_t at = 0;;) {
		uint32_t least = at, kid = 2 * at + 1;

		for (uint32_t i = kid; i < kid + 2 && i < n; i++)
			if (cheaper(&heap[i], &heap[least]))
				least = i;
		if (least == at)
			return;
		const struct spot t = heap[at];

		heap[at] = heap[least];
		heap[least] = t;
		at = least;
	}
}

/* Clear places for all pods of one group, the cheapest first. Each is occupied, in
 * thought, so that the next does not count on it. */
static bool clear_group(struct cycle *c, struct claim *k, uint32_t group, const uint64_t *domain)
{
	const struct snap_job *j = &c->s->jobs[k->job];
	const struct snap_group *g = &c->s->requests[j->request].groups[group];
	const struct group_fit *fit = fit_of(c, j->request, group);
	const struct need one = pack_need(c, g);
	struct spot *heap = cycle_scratch(c, c->s->n_nodes, sizeof(*heap));
	uint32_t n = 0, left = g->pods_min;

	if (!heap || !fit)
		return false;
	for (uint32_t w = 0; w < c->n_words; w++) {
		uint64_t word = fit->nodes[w] & c->ready[w] & ~c->skip[w];

		if (k->flavor != SNAP_NONE)
			word &= c->flavors[k->flavor][w];
		if (domain)
			word &= domain[w];
		while (word) {
			heap[n].node = bits_pop(&word, w * 64);
			if (price(c, k, heap[n].node, &one, &heap[n]))
				sift_up(heap, n++);
		}
	}
	while (left > 0 && n > 0 && !c->failed) {
		const struct spot top = heap[0];
		struct spot now;

		/* Others that were taken meanwhile may have made it dearer. */
		if (!price(c, k, top.node, &one, &now)) {
			heap[0] = heap[--n];
		} else if (n > 1 && cheaper(&top, &now)) {
			heap[0] = now;
		} else {
			clear_node(c, k, top.node, &one);
			nodes_take(c, top.node, &one, group, 0);
			left--;
			if (price(c, k, top.node, &one, &now))
				heap[0] = now;
			else
				heap[0] = heap[--n];
		}
		sift_down(heap, n);
	}
	return left == 0;
}

static bool clear_groups(struct cycle *c, struct claim *k, const uint64_t *domain)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[k->job].request];
	bool done[GPUQ_GROUPS_MAX] = { false }, cleared = true;

	c->n_places = c->n_place_devices = 0;
	/* The largest pods first: they find the fewest places. */
	for (uint32_t i = 0; cleared && i < r->n_groups; i++) {
		uint32_t next = SNAP_NONE;

		for (uint32_t g = 0; g < r->n_groups; g++)
			if (!done[g] && (next == SNAP_NONE ||
					 r->groups[g].gpus_milli > r->groups[next].gpus_milli))
				next = g;
		done[next] = true;
		cleared = clear_group(c, k, next, domain);
	}
	while (c->n_places > 0) {
		const struct need one = pack_need(c, &r->groups[c->places[c->n_places - 1].group]);

		nodes_undo(c, &one);
	}
	return cleared && claim_fits(c, k);
}

#define DOMAINS_MAX 16

/* Inside one domain of the level that the job requires: the one that costs least. */
static bool clear_domains(struct cycle *c, struct claim *k, const char *name)
{
	const struct level *l = topology_level(c, name);
	const uint32_t before = k->n_victims;
	uint64_t *set = cycle_scratch(c, c->n_words, sizeof(*set));
	struct spot best = { .node = SNAP_NONE }, spot;
	uint32_t tried = 0, best_domain = SNAP_NONE;

	if (!l || !set)
		return false;
	for (uint32_t d = 0; d < l->n_domains && !c->failed && tried < DOMAINS_MAX; d++) {
		bool found;

		memset(set, 0, c->n_words * sizeof(*set));
		for (uint32_t node = 0; node < c->s->n_nodes; node++)
			if (l->domain_of[node] == d)
				bits_add(set, node);
		found = clear_groups(c, k, set);
		tried += found;
		cost_since(c, k, before, &spot);
		spot.node = d;
		if (found && (best_domain == SNAP_NONE || cheaper(&spot, &best))) {
			best = spot;
			best_domain = d;
		}
		drop_to(c, k, before);
	}
	if (best_domain == SNAP_NONE)
		return false;
	memset(set, 0, c->n_words * sizeof(*set));
	for (uint32_t node = 0; node < c->s->n_nodes; node++)
		if (l->domain_of[node] == best_domain)
			bits_add(set, node);
	return clear_groups(c, k, set);
}

static const char *required_level(const struct snap_request *r)
{
	for (uint32_t g = 0; g < r->n_groups; g++)
		if (r->groups[g].topology_required)
			return r->groups[g].topology_required;
	return NULL;
}

static bool node_by_node(struct cycle *c, struct claim *k)
{
	const struct snap_job *j = &c->s->jobs[k->job];
	const char *level = required_level(&c->s->requests[j->request]);

	memset(c->skip, 0, c->n_words * sizeof(*c->skip));
	for (uint32_t i = 0; i < j->n_exclude; i++)
		bits_add(c->skip, j->exclude[i]);
	return level ? clear_domains(c, k, level) : clear_groups(c, k, NULL);
}

/* ---- no more than needed, and no dearer ---- */

/* Room for pods of the only group, over all nodes it may stand on. */
static int64_t rooms(struct cycle *c, const struct claim *k, const struct need *one)
{
	const uint32_t request = c->s->jobs[k->job].request;
	const struct group_fit *fit = fit_of(c, request, 0);
	int64_t sum = 0;

	for (uint32_t w = 0; fit && w < c->n_words; w++) {
		uint64_t word = fit->nodes[w] & c->usable[w];

		if (k->flavor != SNAP_NONE)
			word &= c->flavors[k->flavor][w];
		while (word)
			sum += nodes_room(c, bits_pop(&word, w * 64), one, UINT32_MAX);
	}
	return sum;
}

/* What putting the unit back takes from those rooms. */
static int64_t rooms_lost(struct cycle *c, const struct claim *k, uint32_t unit,
			  const struct need *one)
{
	const struct unit *u = &c->units->units[unit];
	const struct group_fit *fit = fit_of(c, c->s->jobs[k->job].request, 0);
	int64_t before = 0, after = 0;

	for (int turn = 0; turn < 2; turn++) {
		uint32_t last = SNAP_NONE;

		for (uint32_t p = 0; fit && p < u->n_pods; p++) {
			const uint32_t node = c->s->allocs[c->units->pods[u->pod_first + p]].node;

			/* The same nodes that rooms() counts on. */
			if (node == last || !bits_has(fit->nodes, node) ||
			    !bits_has(c->usable, node) ||
			    (k->flavor != SNAP_NONE && !bits_has(c->flavors[k->flavor], node)))
				continue;
			last = node;
			*(turn ? &after : &before) += nodes_room(c, node, one, UINT32_MAX);
		}
		if (turn == 0)
			unit_put_back(c, unit);
	}
	unit_take(c, unit);
	return before - after;
}

/* Is the set allowed? It is left as it is either way. */
static bool valid_or_restored(struct cycle *c, struct claim *k, const struct victim *set,
			      uint32_t n)
{
	if (claim_valid(c, k))
		return true;
	restore(c, k, set, n);
	return false;
}

/* Give back, the last taken first, whoever need not go. As long as the set as a whole is
 * not allowed, less of it may be. *again = some could stay only because of what was given
 * back after they were asked, or changed places: to be asked once more. */
static bool give_back(struct cycle *c, struct claim *k, bool *again)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[k->job].request];
	const struct need one = pack_need(c, &r->groups[0]);
	const bool countable = !k->fits && r->n_groups == 1 && !r->exclusive;
	int64_t spare = countable ? rooms(c, k, &one) - r->groups[0].pods_min : 0;
	struct victim *saved = cycle_scratch(c, k->n_victims, sizeof(*saved));
	struct victim *fewer = cycle_scratch(c, k->n_victims, sizeof(*fewer));
	bool refused = false, allowed;

	*again = false;
	k->reordered = false;
	if (!saved || !fewer)
		return false;
	memcpy(saved, k->victims, k->n_victims * sizeof(*saved));
	allowed = valid_or_restored(c, k, saved, k->n_victims);
	for (uint32_t i = k->n_victims; i-- > 0 && !c->failed && k->n_packs < PACKS_MAX;) {
		const struct unit *u = &c->units->units[k->victims[i].unit];
		const uint32_t n = k->n_victims;
		int64_t lost = 0;

		if (n == 1)
			break;
		if (u->surplus && c->units->units[u->gang].gone)
			continue;
		if (countable) {
			lost = rooms_lost(c, k, k->victims[i].unit, &one);
			if (lost > spare)
				continue;
		}
		memcpy(saved, k->victims, n * sizeof(*saved));
		drop_at(c, k, i);
		memcpy(fewer, k->victims, (n - 1) * sizeof(*fewer));
		if (!claim_fits(c, k)) {
			restore(c, k, saved, n);
			continue;
		}
		if (valid_or_restored(c, k, fewer, n - 1)) {
			allowed = true;
		} else if (allowed) {
			/* Without others that are given back later it may be different. */
			refused = true;
			restore(c, k, saved, n);
			continue;
		}
		spare -= lost;
		*again = refused || k->reordered;
	}
	return !c->failed;
}

static bool minimise(struct cycle *c, struct claim *k)
{
	bool again = true;

	while (again)
		if (!give_back(c, k, &again))
			return false;
	return true;
}

/* A unit that costs less and would serve as well; from unit `after` on in the line. */
static bool exchange_one(struct cycle *c, struct claim *k, uint32_t i, struct victim *saved)
{
	const struct units *all = c->units;
	const uint32_t n = k->n_victims, unit = k->victims[i].unit;
	const struct unit *u = &all->units[unit];

	if (u->surplus && all->units[u->gang].gone)
		return false;
	for (uint32_t o = all->line_first[u->queue]; o < all->line_first[u->queue + 1]; o++) {
		const struct unit *other = &all->units[all->line_units[o]];

		if (!looked_at(k, other) || other->surplus != u->surplus ||
		    other->evict_last > u->evict_last || other->priority > u->priority ||
		    other->lost >= u->lost || other->in_line_us < u->in_line_us ||
		    (!other->surplus && other->surplus_left > 0))
			continue;
		if (k->n_packs >= PACKS_MAX)
			return false;
		memcpy(saved, k->victims, n * sizeof(*saved));
		drop_at(c, k, i);
		if (claim_take(c, k, all->line_units[o]) && claim_fits(c, k) && claim_valid(c, k))
			return true;
		restore(c, k, saved, n);
	}
	return false;
}

/* True = some were. */
static bool exchange(struct cycle *c, struct claim *k)
{
	struct victim *saved = cycle_scratch(c, (size_t)k->n_victims + 1, sizeof(*saved));
	bool any = false;

	if (!saved || k->n_victims > EXCHANGED_MAX)
		return false;
	for (uint32_t i = 0; i < k->n_victims && !c->failed; i++)
		any |= exchange_one(c, k, i, saved);
	return any;
}

/* ---- the search ---- */

static bool wants_node(const struct snap_request *r)
{
	for (uint32_t g = 0; g < r->n_groups; g++)
		if (r->groups[g].gpus_milli > SNAP_MILLI)
			return true;
	return r->exclusive || required_level(r);
}

static bool all_outside(const struct claim *k, uint32_t from)
{
	for (uint32_t i = from; i < k->n_victims; i++)
		if (!k->victims[i].simple && k->victims[i].rule != RULE_OWN)
			return false;
	return true;
}

bool claim_improve(struct cycle *c, struct claim *k)
{
	bool found;

	k->n_packs = 0;
	found = minimise(c, k);
	/* What went with a gang that now stays need not go. */
	if (exchange(c, k))
		found = minimise(c, k);
	return found && claim_valid(c, k) && claim_fits(c, k);
}

/* The leaf of the first gang to leave, from victim *at on, and the highest priority of its
 * gangs that do; false: there is none. */
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

/* One after the other; only those that stand outside; where small ones open most. */
static bool find_surplus(struct cycle *c, struct claim *k, uint32_t from)
{
	static const struct {
		bool outside, by_node;
	} ways[] = { { false, false }, { true, false }, { false, true } };
	bool found = false;

	for (size_t i = 0; !found && i < sizeof(ways) / sizeof(ways[0]) && !c->failed; i++) {
		drop_to(c, k, k->n_victims < from ? k->n_victims : from);
		k->n_packs = 0;
		k->outside = ways[i].outside;
		found = (ways[i].by_node ? node_by_node(c, k) : one_by_one(c, k)) &&
			claim_improve(c, k);
	}
	k->outside = false;
	return found;
}

/* No gang is broken where surplus of no higher priority in the same queue would do. */
static void spare_gangs(struct cycle *c, struct claim *k, uint32_t from)
{
	const uint32_t n = k->n_victims;
	struct victim *saved = NULL;
	uint32_t at = from;
	bool found = false;

	while (!found && !c->failed &&
	       next_broken(c, saved ? saved : k->victims, n, &at, &k->surplus_leaf,
			   &k->surplus_priority)) {
		if (!has_surplus(c, k->surplus_leaf, k->surplus_priority))
			continue;
		if (!saved) {
			saved = cycle_scratch(c, n, sizeof(*saved));
			if (!saved)
				return;
			memcpy(saved, k->victims, n * sizeof(*saved));
		}
		k->surplus = true;
		found = find_surplus(c, k, from);
		k->surplus = false;
	}
	if (found || !saved)
		return;
	restore(c, k, saved, n);
	claim_fits(c, k); /* places as they are now */
}

bool victims_find(struct cycle *c, struct claim *k)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[k->job].request];
	const uint32_t before = k->n_victims;
	bool found, astray;

	if (!units_index(c))
		return false;
	k->n_packs = 0;
	found = wants_node(r) && node_by_node(c, k);
	if (!found) {
		drop_to(c, k, before);
		k->n_packs = 0;
		found = one_by_one(c, k);
	}
	astray = k->others && !all_outside(k, before);
	found = found && claim_improve(c, k);
	/* What stands inside may have gone first, and left its queue too little for more:
	 * once more without. */
	if (!found && astray) {
		drop_to(c, k, k->n_victims < before ? k->n_victims : before);
		k->n_packs = 0;
		k->outside = true;
		found = one_by_one(c, k) && claim_improve(c, k);
		k->outside = false;
	}
	if (found && k->n_victims > before)
		spare_gangs(c, k, before);
	else if (!found)
		drop_to(c, k, k->n_victims < before ? k->n_victims : before);
	return found;
}
