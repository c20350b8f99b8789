#include "gpuqd/sched/preempt/relocate.h"

#include <string.h>

#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/place/topology_tree.h"
#include "gpuqd/sched/preempt/gangs.h"
#include "gpuqd/sched/preempt/rules.h"
#include "gpuqd/sched/preempt/search.h"
#include "gpuqd/sched/preempt/search_node.h"
#include "gpuqd/sched/preempt/search_set.h"
#include "gpuqd/sched/quota/holdings.h"
#include "gpuqd/sched/timeline/timeline_pack.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/sched/place/pack.h"
#include "gpuqd/util/sort.h"

/* Consolidation: enough is free in total, but fragmented. Some jobs are relocated out of the way,
 * each to a place that is free now, so that none loses its place. Only for a pending job, and only
 * where little work is redone. */

#define NODES_MAX 8 /* candidates to be cleared; domains, and nodes in one of them */
#define MOVE_PACKS_MAX 200
/* A relocation saves no more pending time than this, and none beyond the relocated job's own
 * end. */
#define WAIT_SAVED_US (3600 * GPUQ_US_PER_S)

/* ---- jobs that may be relocated ---- */

/* Return the pending time that relocating a job saves: without a time limit it is not known when it
 * would have made room by itself. */
static int64_t wait_saved(const struct cycle *c, const struct snap_job *j)
{
	const int64_t left =
		amount_less(amount_sum(j->start_us, j->walltime_us), c->s->config.now_us);

	if (j->walltime_us == GPUQ_UNLIMITED)
		return GPUQ_UNLIMITED;
	if (left <= 0)
		return 0;
	return left < WAIT_SAVED_US ? left : WAIT_SAVED_US;
}

/* True if the job loses pods to the claim: it is not relocated for it as well. */
static bool shrinks(const struct cycle *c, const struct claim *k, uint32_t gang)
{
	for (uint32_t i = 0; i < k->victims.n; i++)
		if (c->units->units[k->victims.items[i].unit].job == c->units->units[gang].job)
			return true;
	return false;
}

/* Return the work of the relocated job that is redone. */
static int64_t lost_of(const struct cycle *c, uint32_t gang)
{
	const struct units *all = c->units;
	int64_t lost = all->units[gang].lost;

	for (uint32_t u = gang + 1; u < relocate_surplus_end(c, gang); u++)
		lost = amount_sum(lost, all->units[u].lost);
	return lost;
}

/* True if all that it has beyond its gang can be relocated. Surplus goes with the gang, which grows
 * again at its new places; beside victims no job is shrunk as well. */
static bool is_whole(const struct cycle *c, const struct claim *k, uint32_t gang)
{
	if (c->units->units[gang].surplus_left > 0 && k->victims.n > 0)
		return false;
	for (uint32_t u = gang + 1; u < relocate_surplus_end(c, gang); u++)
		if (c->units->units[u].gone || c->units->units[u].fixed)
			return false;
	return true;
}

/* True if the unit may be relocated, and that redoes less work (device-milliseconds) than the
 * pending job could do meanwhile. */
static bool movable(struct cycle *c, const struct moving *m, uint32_t unit)
{
	const struct unit *u = &c->units->units[unit];
	const struct snap_job *j = &c->s->jobs[u->job];
	const int64_t devices_milli =
		m->k->flavor == SNAP_NONE ? SNAP_MILLI : m->k->need[m->k->flavor];
	const int64_t saved = wait_saved(c, j);

	for (uint32_t i = 0; i < m->n_homeless; i++)
		if (m->homeless[i] == unit)
			return false;
	if (u->gone || u->fixed || u->surplus || !is_whole(c, m->k, unit) ||
	    c->s->requests[j->request].exclusive || shrinks(c, m->k, unit))
		return false;
	if (c->s->config.moves_per_day && j->n_moved_day >= c->s->config.moves_per_day)
		return false;
	if (j->start_us > 0 && rules_too_young(c, unit))
		return false;
	return saved == GPUQ_UNLIMITED ||
	       amount_sum(m->lost, lost_of(c, unit)) <=
		       amount_times(saved / 1000, devices_milli) / SNAP_MILLI;
}

/* Remove a job tentatively that is to be placed elsewhere. */
static void take_mover(struct cycle *c, struct moving *m, uint32_t unit)
{
	m->movers[m->n_movers++] = unit;
	m->lost = amount_sum(m->lost, lost_of(c, unit));
	relocate_take(c, unit);
}

/* Put the last of them back. */
static void put_back_last(struct cycle *c, struct moving *m)
{
	const uint32_t unit = m->movers[--m->n_movers];

	m->lost -= lost_of(c, unit);
	relocate_put_back(c, unit);
}

/* Return the flavor that the job runs on, which a relocation keeps. */
static uint32_t flavor_of(const struct cycle *c, uint32_t unit)
{
	const struct snap_job *j = &c->s->jobs[c->units->units[unit].job];

	return cost_flavor(c->s, &c->s->allocs[j->alloc_first], j->n_allocs);
}

/* Place the preemptor where it fits now, then every relocated job, the largest first. */
static bool place_all(struct cycle *c, struct moving *m)
{
	uint32_t order[MOVED_MAX] = { 0 };

	m->without_place = SNAP_NONE;
	if (!search_fits(c, m->k) ||
	    !relocate_keep_places(c, m, m->k->job, SNAP_NONE, m->k->flavor))
		return false;
	for (uint32_t i = 0; i < m->n_movers; i++) {
		uint32_t at = i;

		for (; at > 0 && c->units->units[m->movers[i]].gpus_milli >
					 c->units->units[m->movers[order[at - 1]]].gpus_milli;
		     at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	for (uint32_t i = 0; i < m->n_movers; i++) {
		const uint32_t unit = m->movers[order[i]], job = c->units->units[unit].job;
		const uint32_t flavor = flavor_of(c, unit);

		m->n_packs++;
		m->without_place = unit;
		if (!timeline_pack_strictly(c, job, flavor))
			return false;
		m->without_place = SNAP_NONE;
		pack_undo(c, job);
		if (!relocate_keep_places(c, m, job, unit, flavor))
			return false;
	}
	return true;
}

/* ---- nodes to clear ---- */

struct target {
	uint32_t node; /* to be cleared */
	int64_t missing; /* of what one pod needs there, thousandths of devices */
	int64_t lost; /* by the first that would have to be relocated */
	uint32_t rank; /* of that one among victims: the newest has the least right to stay */
};

/* Compare nodes to be cleared: least missing, then least work lost, then by rank and index. */
static int cmp_target(const void *ctx, uint32_t x, uint32_t y)
{
	const struct target *t = ctx;
	int d = sort_i64(t[x].missing, t[y].missing);

	if (d == 0)
		d = sort_i64(t[x].lost, t[y].lost);
	if (d == 0)
		d = sort_i64(t[x].rank, t[y].rank);
	return d ? d : sort_i64(t[x].node, t[y].node);
}

/* Return what is free on a node, parts of devices included. */
static int64_t free_on(const struct cycle *c, uint32_t node)
{
	const struct amounts *avail = nodes_amounts(c);
	const struct snap_node *n = &c->s->nodes[node];
	int64_t sum = 0;

	for (uint32_t d = 0; d < n->n_devices; d++)
		if (avail->device_free[n->device_first + d] > 0)
			sum += avail->device_free[n->device_first + d];
	return sum;
}

/* Return the movable unit on the node that costs least; SNAP_NONE. */
static uint32_t cheapest_on(struct cycle *c, const struct moving *m, uint32_t node)
{
	const struct units *all = c->units;
	uint32_t best = SNAP_NONE;

	for (uint32_t i = all->node_first[node]; i < all->node_first[node + 1]; i++) {
		const struct unit *u = &all->units[all->node_units[i]];
		const uint32_t unit = u->surplus ? u->gang : all->node_units[i];

		if (movable(c, m, unit) &&
		    (best == SNAP_NONE || lost_of(c, unit) < lost_of(c, best)))
			best = unit; /* of equals the first in the order of victims */
	}
	return best;
}

/* Find nodes of the flavor on which the job's largest pods could run if they were empty, with a
 * unit that can be relocated. */
static uint32_t find_targets(struct cycle *c, const struct moving *m, uint32_t group,
			     struct target *out)
{
	const struct claim *k = m->k;
	const uint64_t *flavor = k->flavor == SNAP_NONE ? NULL : nodes_of_flavor(c, k->flavor);
	const struct amounts *avail = nodes_amounts(c);
	const uint32_t request = cycle_request_ix(c, k->job);
	const struct group_fit *fit = feasibility_of(c, request, group);
	const struct need one = nodes_need(&c->s->requests[request].groups[group]);
	uint32_t n = 0;

	for (uint32_t w = 0; fit && w < cycle_words(c); w++) {
		uint64_t word = fit->nodes[w] & avail->usable[w];

		if (flavor)
			word &= flavor[w];
		while (word) {
			const uint32_t node = bits_pop(&word, w * 64);
			uint32_t first;

			if (nodes_room(c, node, &one, 1) > 0 ||
			    nodes_room_empty(c, node, &one, 1) == 0)
				continue;
			first = cheapest_on(c, m, node);
			if (first == SNAP_NONE)
				continue;
			out[n++] = (struct target){
				.node = node,
				.missing = (int64_t)one.whole * SNAP_MILLI + one.part -
					   free_on(c, node),
				.lost = lost_of(c, first),
				.rank = c->units->units[first].rank,
			};
		}
	}
	return n;
}

/* Relocate units off the node until it has room for one more pod, none unnecessarily. */
static bool clear_by_moving(struct cycle *c, struct moving *m, uint32_t node,
			    const struct need *one)
{
	const uint32_t before = m->n_movers;

	while (nodes_room(c, node, one, 1) == 0) {
		const uint32_t unit = m->n_movers < MOVED_MAX ? cheapest_on(c, m, node) : SNAP_NONE;

		if (unit == SNAP_NONE) {
			while (m->n_movers > before)
				put_back_last(c, m);
			return false;
		}
		take_mover(c, m, unit);
	}
	for (uint32_t i = m->n_movers; i-- > before;) {
		const uint32_t unit = m->movers[i];

		relocate_put_back(c, unit);
		if (nodes_room(c, node, one, 1) == 0) {
			relocate_take(c, unit);
			continue;
		}
		m->lost -= lost_of(c, unit);
		memmove(&m->movers[i], &m->movers[i + 1],
			(m->n_movers - i - 1) * sizeof(m->movers[0]));
		m->n_movers--;
	}
	return true;
}

/* Undo all tentative removals. */
static void put_back_all(struct cycle *c, struct moving *m)
{
	relocate_give_up_places(c, m);
	while (m->n_movers > 0)
		put_back_last(c, m);
}

/* Clear one node after the other, the one with least missing first; cleared nodes stay cleared for
 * a gang's next pod. With a topology level, only nodes of one domain. */
static bool clear_targets(struct cycle *c, struct moving *m, const struct target *targets,
			  const uint32_t *order, uint32_t n, const struct need *one,
			  const struct level *level, uint32_t domain)
{
	const bool gang = cycle_request(c, m->k->job)->n_pods > 1;
	uint32_t tried = 0, sets = 0, i;

	for (i = 0; i < n && tried < NODES_MAX && m->n_packs < MOVE_PACKS_MAX; i++) {
		const uint32_t before = m->n_movers, node = targets[order[i]].node;

		if (level && level->domain_of[node] != domain)
			continue;
		tried++;
		m->n_homeless = 0;
		while (sets++ < SETS_MAX && clear_by_moving(c, m, node, one)) {
			const bool placed = place_all(c, m);

			if (placed)
				return true;
			relocate_give_up_places(c, m);
			/* For a single pod another node may do better; first others of this one. */
			if (gang)
				break;
			while (m->n_movers > before)
				put_back_last(c, m);
			if (m->without_place == SNAP_NONE)
				break;
			m->homeless[m->n_homeless++] = m->without_place;
		}
	}
	if (i < n) {
		m->k->told.bound = PLAN_BOUND_MOVES;
		m->k->told.bound_most = tried;
	}
	m->n_homeless = 0;
	put_back_all(c, m);
	return false;
}

/* Try domain by domain, that of the best target first: nodes cleared in one do not help in
 * another. */
static bool clear_domains(struct cycle *c, struct moving *m, const struct target *targets,
			  const uint32_t *order, uint32_t n, const struct need *one,
			  const struct level *level)
{
	uint64_t *seen = cycle_scratch(c, bits_words(level->n_domains), sizeof(*seen));
	uint32_t tried = 0;

	for (uint32_t i = 0; seen && i < n && tried < NODES_MAX && !c->failed; i++) {
		const uint32_t domain = level->domain_of[targets[order[i]].node];

		if (domain == SNAP_NONE || bits_has(seen, domain))
			continue;
		bits_add(seen, domain);
		tried++;
		if (clear_targets(c, m, targets, order, n, one, level, domain))
			return true;
	}
	return false;
}

/* Search the jobs to relocate, and their new places. True: m holds the places of all; else nothing
 * has changed. */
static bool search(struct cycle *c, struct moving *m)
{
	const struct snap_request *r = cycle_request(c, m->k->job);
	struct target *targets;
	const char *name = search_required_level(r);
	const struct level *level;
	uint32_t *order, *scratch;
	uint32_t group = 0, n;
	struct need one;

	if (r->gpus_milli == 0 || r->exclusive ||
	    m->k->free_milli + search_gone_milli(c, m->k) < r->gpus_milli)
		return false;
	targets = cycle_scratch(c, c->s->n_nodes, sizeof(*targets));
	order = cycle_scratch(c, c->s->n_nodes, sizeof(*order));
	scratch = cycle_scratch(c, c->s->n_nodes, sizeof(*scratch));
	if (!targets || !order || !scratch || !gangs_index(c))
		return false;
	for (uint32_t g = 1; g < r->n_groups; g++)
		if (r->groups[g].gpus_milli > r->groups[group].gpus_milli)
			group = g;
	one = nodes_need(&r->groups[group]);
	n = find_targets(c, m, group, targets);
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	sort_ix(order, scratch, n, cmp_target, targets);
	if (!name)
		return clear_targets(c, m, targets, order, n, &one, NULL, SNAP_NONE);
	level = topology_level(c, name);
	return level && clear_domains(c, m, targets, order, n, &one, level);
}

bool relocate_fits(struct cycle *c, struct claim *k)
{
	struct moving m = { .k = k };
	bool found;

	claim_set(k, CLAIM_MOVERS, false); /* the search is for them */
	found = search(c, &m);
	claim_set(k, CLAIM_MOVERS, true);
	if (found)
		put_back_all(c, &m);
	return found;
}

bool relocate_for(struct cycle *c, struct claim *k)
{
	struct moving m = { .k = k };
	struct plan_reason why;

	claim_set(k, CLAIM_MOVERS, false);
	if (!holdings_admits(c, k->job, k->flavor, &why) || !search(c, &m))
		return false;
	relocate_settle(c, &m);
	return !c->failed;
}
