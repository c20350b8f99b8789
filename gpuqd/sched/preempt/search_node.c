#include "gpuqd/sched/preempt/search_node.h"
#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/place/topology_tree.h"
#include "gpuqd/sched/preempt/gangs.h"
#include "gpuqd/sched/preempt/rules.h"
#include "gpuqd/sched/preempt/search.h"

#include <string.h>

#include "gpuqd/sched/place/pack.h"
#include "gpuqd/sched/place/topology.h"
#include "gpuqd/sched/preempt/search_set.h"
#include "libgpuq/limits.h"

/* Victims where a preemptor's pods need several devices of one node: node by node, always the one
 * that costs least to clear. */

/* A node, and the cost of clearing it for one more pod. */
struct spot {
	struct claim_cost cost; /* of its victims */
	uint32_t rank; /* of the last in the order of victims: the newest are preempted first */
	uint32_t node;
};

/* Compare nodes by what clearing them costs; equals by rank and index, so that there is one
 * result. */
static bool cheaper(const struct spot *x, const struct spot *y)
{
	const int d = search_cmp_cost(&x->cost, &y->cost);

	if (d != 0)
		return d < 0;
	if (x->rank != y->rank)
		return x->rank < y->rank;
	return x->node < y->node;
}

/* True if one pod fits on the node now. */
static bool has_room(const struct cycle *c, const struct claim *k, uint32_t node,
		     const struct need *one)
{
	const struct amounts *avail = nodes_amounts(c);
	const bool exclusive = cycle_request(c, k->job)->exclusive;

	return bits_has(avail->usable, node) && nodes_room(c, node, one, 1) == 1 &&
	       (!exclusive || avail->tenants[node] == 0);
}

/* Return a surplus unit of the node that could be preempted: the smallest, or largest, that was not
 * tried yet. */
static uint32_t surplus_on(const struct cycle *c, const struct claim *k, uint32_t node)
{
	const struct units *all = c->units;
	uint32_t best = SNAP_NONE;

	for (uint32_t i = all->node_first[node]; i < all->node_first[node + 1]; i++) {
		const struct unit *u = &all->units[all->node_units[i]];

		if (search_looks_at(k, u) && u->refused != k->stamp.turn &&
		    (best == SNAP_NONE ||
		     (claim_is(k, CLAIM_LARGEST) ? u->gpus_milli > all->units[best].gpus_milli
						 : u->gpus_milli < all->units[best].gpus_milli)))
			best = all->node_units[i];
	}
	return best;
}

/* Clear surplus where it is to be preempted instead of a gang: the unit that opens most places for
 * least first; or the largest, where small ones that open nothing would use up what their queue may
 * lose. */
static void clear_surplus(struct cycle *c, struct claim *k, uint32_t node, const struct need *one)
{
	uint32_t unit;

	k->stamp.turn = ++c->units->n_claims;
	while (!has_room(c, k, node, one) && (unit = surplus_on(c, k, node)) != SNAP_NONE) {
		c->units->units[unit].refused = k->stamp.turn;
		if (search_take(c, k, unit))
			k->stamp.turn = ++c->units->n_claims;
	}
}

/* Take units off the node until one more pod has room; those that prove unnecessary stay. False:
 * nothing has changed. */
static bool clear_node(struct cycle *c, struct claim *k, uint32_t node, const struct need *one)
{
	const struct units *all = c->units;
	const uint32_t before = k->victims.n;
	bool progress = !claim_is(k, CLAIM_SURPLUS);

	if (claim_is(k, CLAIM_SURPLUS))
		clear_surplus(c, k, node, one);
	while (!has_room(c, k, node, one) && progress && !c->failed) {
		progress = false;
		for (uint32_t i = all->node_first[node];
		     i < all->node_first[node + 1] && !has_room(c, k, node, one); i++)
			if (search_looks_at(k, &all->units[all->node_units[i]]))
				progress |= search_take(c, k, all->node_units[i]);
	}
	if (!has_room(c, k, node, one)) {
		search_drop_to(c, k, before);
		return false;
	}
	for (uint32_t i = k->victims.n; i-- > before;) {
		const struct victim v = k->victims.items[i];
		const struct unit *u = &all->units[v.unit];

		if (u->surplus && all->units[u->gang].gone)
			continue;
		gangs_put_back(c, v.unit);
		if (has_room(c, k, node, one)) {
			gangs_take(c, v.unit);
			search_drop_at(c, k, i);
		} else {
			gangs_take(c, v.unit);
		}
	}
	return true;
}

/* Set the cost of the victims taken since, and the last of their ranks. */
static void cost_since(const struct cycle *c, const struct claim *k, uint32_t before,
		       struct spot *spot)
{
	spot->cost = search_cost_since(c, k, before);
	spot->rank = 0;
	for (uint32_t i = before; i < k->victims.n; i++)
		if (c->units->units[k->victims.items[i].unit].rank > spot->rank)
			spot->rank = c->units->units[k->victims.items[i].unit].rank;
}

/* Find what clearing the node for one pod costs, and undo it. False if it cannot be cleared. */
static bool price(struct cycle *c, struct claim *k, uint32_t node, const struct need *one,
		  struct spot *spot)
{
	const uint32_t before = k->victims.n;
	bool affordable;

	c->steps++;
	if (!clear_node(c, k, node, one))
		return false;
	spot->node = node;
	cost_since(c, k, before, spot);
	/* The victims so far may already exceed what this search allows to leave over. */
	affordable = !rules_leaves_over(c, k);
	search_drop_to(c, k, before);
	return affordable;
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

/* Restore the heap after its first item was replaced. */
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

/* Clear places for all pods of one group, the cheapest first. Each is tentatively occupied, so that
 * the next does not count on it. */
static bool clear_group(struct cycle *c, struct claim *k, uint32_t group, const uint64_t *domain)
{
	const uint64_t *flavor = k->flavor == SNAP_NONE ? NULL : nodes_of_flavor(c, k->flavor);
	const struct snap_group *g = &cycle_request(c, k->job)->groups[group];
	const struct group_fit *fit = feasibility_of(c, cycle_request_ix(c, k->job), group);
	const struct need one = nodes_need(g);
	const uint64_t *ready = nodes_ready(c), *skipped = pack_skipped(c);
	struct spot *heap = cycle_scratch(c, c->s->n_nodes, sizeof(*heap));
	uint32_t n = 0, left = g->pods_min;

	if (!heap || !fit)
		return false;
	for (uint32_t w = 0; w < cycle_words(c); w++) {
		uint64_t word = fit->nodes[w] & ready[w] & ~skipped[w];

		if (flavor)
			word &= flavor[w];
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

		/* Other victims taken meanwhile may have made it more expensive. */
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

/* Clear nodes for all groups; the places are tried only to see that they suffice. */
static bool clear_groups(struct cycle *c, struct claim *k, const uint64_t *domain)
{
	const struct snap_request *r = cycle_request(c, k->job);
	bool done[GPUQ_GROUPS_MAX] = { false }, cleared = true;

	c->places.n_pods = c->places.n_devices = 0;
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
	while (c->places.n_pods > 0) {
		const struct need one =
			nodes_need(&r->groups[c->places.pods[c->places.n_pods - 1].group]);

		nodes_undo(c, &one);
	}
	return cleared && search_fits(c, k);
}

#define DOMAINS_MAX 16

/* Clear nodes inside one domain of the level that the job requires: the one that costs least. */
static bool clear_domains(struct cycle *c, struct claim *k, const char *name)
{
	const struct level *l = topology_level(c, name);
	const uint32_t before = k->victims.n;
	uint64_t *set = cycle_scratch(c, cycle_words(c), sizeof(*set));
	struct spot best = { .node = SNAP_NONE }, spot;
	uint32_t tried = 0, best_domain = SNAP_NONE;

	if (!l || !set)
		return false;
	for (uint32_t d = 0; d < l->n_domains && !c->failed && tried < DOMAINS_MAX; d++) {
		bool found;

		memset(set, 0, cycle_words(c) * sizeof(*set));
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
		search_drop_to(c, k, before);
	}
	if (best_domain == SNAP_NONE)
		return false;
	memset(set, 0, cycle_words(c) * sizeof(*set));
	for (uint32_t node = 0; node < c->s->n_nodes; node++)
		if (l->domain_of[node] == best_domain)
			bits_add(set, node);
	return clear_groups(c, k, set);
}

const char *search_required_level(const struct snap_request *r)
{
	for (uint32_t g = 0; g < r->n_groups; g++)
		if (r->groups[g].topology_required)
			return r->groups[g].topology_required;
	return NULL;
}

bool search_clear_nodes(struct cycle *c, struct claim *k)
{
	const struct snap_job *j = &c->s->jobs[k->job];
	const char *level = search_required_level(&c->s->requests[j->request]);

	pack_exclude(c, k->job);
	return level ? clear_domains(c, k, level) : clear_groups(c, k, NULL);
}
