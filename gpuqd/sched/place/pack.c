#include "gpuqd/sched/place/pack.h"

#include "gpuqd/sched/place/charges.h"
#include "gpuqd/sched/place/devices.h"
#include "gpuqd/sched/place/ends.h"
#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/place/nodes_int.h"
#include "gpuqd/sched/place/pack_int.h"
#include "gpuqd/sched/place/roles.h"
#include "gpuqd/sched/place/topology.h"

#include <string.h>

#include "gpuqd/util/amount.h"
#include "libgpuq/limits.h"

/* Which nodes a gang gets. One pod: the node where the fewest whole devices stay free (so that
 * empty nodes stay whole), then the one whose cpu and memory stay in balance with its devices, then
 * the lower name. A gang of equal pods: on the fewest nodes, the last of them the tightest. With
 * equal pods every greedy choice can be completed: what one node holds does not depend on what
 * another does. */

#define FITTING_MAX 64 /* compared in one bucket; the others are mostly equal to one of them */

void pack_init(struct cycle *c, enum pack_policy policy, bool unhurried)
{
	const uint32_t n = c->s->n_nodes;
	struct pack *p = cycle_alloc(c, 1, sizeof(*p));

	c->pack = p;
	if (!p)
		return;
	p->policy = policy;
	p->unhurried = unhurried;
	charges_init(c);
	p->skip = cycle_alloc(c, cycle_words(c), sizeof(*p->skip));
	p->rank_nodes = cycle_alloc(c, n, sizeof(*p->rank_nodes));
	p->rank_scratch = cycle_alloc(c, n, sizeof(*p->rank_scratch));
	p->rank_room = cycle_alloc(c, n, sizeof(*p->rank_room));
	p->rank_left = cycle_alloc(c, n, sizeof(*p->rank_left));
	p->rank_count =
		cycle_alloc(c, GPUQ_PODS_MAX + SNAP_DEVICES_MAX + 2, sizeof(*p->rank_count));
}

static int64_t magnitude(int64_t x)
{
	return x < 0 ? -x : x;
}

/* The measure is how far the cpu and memory left on the node are from what its free devices would
 * need at the average of the cluster, in devices times 1024; the worse of the two counts. */
int64_t pack_imbalance(const struct cycle *c, uint32_t node, const struct need *n)
{
	struct nodes *nodes = c->nodes;
	int64_t left = ((int64_t)nodes->now.whole[node] - n->whole) * 1024, off = 0;

	/* Without free devices nothing is left to be in balance with. */
	if (left <= 0)
		return 0;
	if (nodes->now.cpu[node] != GPUQ_UNLIMITED && nodes->cpu_per_device)
		off = magnitude(amount_times(nodes->now.cpu[node] - n->cpu, 1024 * 1024) /
					nodes->cpu_per_device -
				left);
	if (nodes->now.memory[node] != GPUQ_UNLIMITED && nodes->mib_per_device) {
		int64_t mib = (nodes->now.memory[node] - n->memory) >> 20;
		int64_t o =
			magnitude(amount_times(mib, 1024 * 1024) / nodes->mib_per_device - left);

		off = o > off ? o : off;
	}
	return off;
}

/* Return the best node of one bucket, by balance and then name; SNAP_NONE = none fits. */
static uint32_t best_of_bucket(struct cycle *c, struct bucket *b, const struct need *n,
			       const struct masks *m)
{
	struct nodes *nodes = c->nodes;
	uint32_t best = SNAP_NONE, fitting = 0;
	int64_t best_off = 0;

	/* Remember how many leading words are empty: later searches begin behind them. */
	while (b->from < nodes->n_words && !b->set[b->from])
		b->from++;
	for (uint32_t w = b->from; w < nodes->n_words; w++) {
		uint64_t word = b->set[w] ? masks_of(m, b->set[w], w) : 0;

		while (word) {
			uint32_t node = bits_pop(&word, w * 64);
			int64_t off;

			c->steps++;
			/* A node in the same state as the best comes after it by name. */
			if (best != SNAP_NONE && nodes->now.cpu[node] == nodes->now.cpu[best] &&
			    nodes->now.memory[node] == nodes->now.memory[best]) {
				if (++fitting >= FITTING_MAX)
					return best;
				continue;
			}
			if (nodes_room(c, node, n, 1) == 0)
				continue;
			off = pack_imbalance(c, node, n);
			if (best == SNAP_NONE || off < best_off) {
				best = node;
				best_off = off;
			}
			if (best_off == 0 || ++fitting >= FITTING_MAX)
				return best;
		}
	}
	return best;
}

/* Choose one node for all that n needs, with the fewest whole devices left free. */
static uint32_t choose_whole(struct cycle *c, const struct need *n, const struct masks *m)
{
	struct nodes *nodes = c->nodes;

	for (uint32_t i = n->whole; i <= nodes->max_whole; i++) {
		/* Spreading visits the emptiest nodes first. */
		const uint32_t f = c->pack->spread ? nodes->max_whole - (i - n->whole) : i;
		uint32_t node;

		if (nodes->now.buckets[f].n == 0)
			continue;
		node = best_of_bucket(c, &nodes->now.buckets[f], n, m);
		if (node != SNAP_NONE)
			return node;
	}
	return SNAP_NONE;
}

/* Choose the node for the parts of a pod: of those with devices in use, or of all that have some free. *least: the state
 * of its devices with them. */
static uint32_t best_for_parts(struct cycle *c, const struct need *n, const struct masks *m,
			       bool all_nodes, struct parts *least)
{
	struct pack *packing = c->pack;
	struct nodes *nodes = c->nodes;
	uint32_t best = SNAP_NONE;
	struct parts p;

	for (uint32_t w = 0; w < nodes->n_words; w++) {
		/* A node without a device in use is no better for one part than any other, unless
		 * the search is for such nodes. One without anything free never fits. */
		const uint64_t none = nodes->now.buckets[0].set ? nodes->now.buckets[0].set[w] : 0;
		const uint64_t all =
			all_nodes ? nodes->now.parted[w] | ~none : nodes->now.parted[w];
		uint64_t word = masks_of(m, all & nodes->now.usable[w], w);

		while (word) {
			const uint32_t node = bits_pop(&word, w * 64);
			bool better;

			c->steps++;
			if (nodes_room(c, node, n, 1) == 0 || !devices_parts(c, node, n, &p))
				continue;
			better = best == SNAP_NONE || p.opened < least->opened;
			if (best != SNAP_NONE && p.opened == least->opened)
				better = nodes->now.whole[node] != nodes->now.whole[best]
						 ? nodes->now.whole[node] < nodes->now.whole[best]
						 : p.left < least->left;
			if (best != SNAP_NONE && packing->spread)
				better = nodes->now.whole[node] > nodes->now.whole[best] ||
					 (nodes->now.whole[node] == nodes->now.whole[best] &&
					  p.left > least->left);
			if (better) {
				best = node;
				*least = p;
			}
		}
	}
	return best;
}

/* Share before opening: choose a node whose devices in use have room for the part (for as many of a
 * pod's parts as possible), the one with the fewest whole devices free, the fullest devices; else
 * as for whole devices. Spread is the other way round. */
static uint32_t choose_part(struct cycle *c, const struct need *n, const struct masks *m)
{
	const bool all_nodes = n->parts > 1 || c->pack->spread || n->part_memory;
	struct parts least = { 0 };
	const uint32_t best = best_for_parts(c, n, m, all_nodes, &least);
	struct need whole = *n;
	uint32_t node;

	if (all_nodes || (best != SNAP_NONE && !least.opened))
		return best;
	/* The part opens a device: where is decided as for a whole one. */
	whole.parts = 0;
	whole.part = 0;
	whole.whole = 1;
	node = choose_whole(c, &whole, m);
	/* Devices that are free there may be of those without parts. */
	return node == SNAP_NONE || nodes_room(c, node, n, 1) > 0
		       ? node
		       : best_for_parts(c, n, m, true, &least);
}

/* Choose a node for instances: the fewest of the profile left, then the fewest devices free. */
static uint32_t choose_mig(struct cycle *c, const struct need *n, const struct masks *m)
{
	struct nodes *nodes = c->nodes;
	uint32_t best = SNAP_NONE;
	int64_t least = 0;

	for (uint32_t w = 0; w < nodes->n_words; w++) {
		uint64_t word = masks_of(m, nodes->migs[w] & nodes->now.usable[w], w);

		while (word) {
			const uint32_t node = bits_pop(&word, w * 64);
			const int64_t left =
				nodes->now.extra_free[(size_t)node * c->s->n_extras + n->profile];

			c->steps++;
			if (nodes_room(c, node, n, 1) == 0)
				continue;
			if (best == SNAP_NONE || (c->pack->spread ? left > least : left < least)) {
				best = node;
				least = left;
			}
		}
	}
	return best;
}

/* Keep pods without devices off nodes that have some, where possible. */
static uint32_t choose_bare(struct cycle *c, const struct need *n, struct masks *m)
{
	uint32_t node;

	m->also = c->nodes->gpuless;
	node = choose_whole(c, n, m);
	m->also = NULL;
	return node != SNAP_NONE ? node : choose_whole(c, n, m);
}

/* pods: the number of pods in n, all of them on one node. */
static uint32_t choose(struct cycle *c, const struct need *n, uint32_t group, uint32_t pods,
		       struct masks *m)
{
	struct pack *packing = c->pack;
	uint32_t node;

	if (pods == 1 && !n->migs &&
	    score_choose(c, packing->request, group, packing->flavor, n, m, &node))
		return node;
	if (n->parts)
		return choose_part(c, n, m);
	if (n->migs)
		return choose_mig(c, n, m);
	if (n->whole)
		return choose_whole(c, n, m);
	return choose_bare(c, n, m);
}

/* Stable counting sort of rank_nodes by key_of[node], 0..max; falling = largest first. */
static void rank_by(struct cycle *c, uint32_t n, const uint32_t *key_of, uint32_t max, bool falling)
{
	struct pack *packing = c->pack;
	uint32_t *count = packing->rank_count;

	memset(count, 0, ((size_t)max + 2) * sizeof(*count));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = key_of[packing->rank_nodes[i]];

		count[(falling ? max - k : k) + 1]++;
	}
	for (uint32_t k = 1; k <= max; k++)
		count[k] += count[k - 1];
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = key_of[packing->rank_nodes[i]];

		packing->rank_scratch[count[falling ? max - k : k]++] = packing->rank_nodes[i];
	}
	memcpy(packing->rank_nodes, packing->rank_scratch, n * sizeof(*packing->rank_nodes));
}

/* Rank all nodes with room for at least one pod: those with most room first, among them those with
 * the fewest devices left over, then by name. 0 when they do not hold all pods. */
static uint32_t rank_nodes(struct cycle *c, const struct need *one, uint32_t pods,
			   const struct masks *m)
{
	struct pack *packing = c->pack;
	struct nodes *nodes = c->nodes;
	uint64_t sum = 0;
	uint32_t n = 0;

	for (uint32_t w = 0; w < nodes->n_words; w++) {
		uint64_t word = masks_of(m, nodes->now.usable[w], w);

		while (word) {
			uint32_t node = bits_pop(&word, w * 64);
			uint32_t room = nodes_room(c, node, one, pods);

			c->steps++;
			if (room == 0)
				continue;
			packing->rank_nodes[n++] = node;
			packing->rank_room[node] = room;
			packing->rank_left[node] = nodes->now.whole[node] - room * one->whole;
			sum += room;
		}
	}
	if (sum < pods)
		return 0;
	rank_by(c, n, packing->rank_left, nodes->max_whole, false);
	rank_by(c, n, packing->rank_room, pods, true);
	return n;
}

/* Rank the first of them, enough for all pods, by their numbers of free devices alone: nodes with
 * room for r pods are those with r times as many devices free, and a few more. False: on some node
 * cpu, memory or pods allow less, and all have to be evaluated. */
static bool rank_by_buckets(struct cycle *c, const struct need *one, uint32_t pods,
			    const struct masks *m, uint32_t *n)
{
	struct pack *packing = c->pack;
	struct nodes *nodes = c->nodes;
	const uint32_t most = one->whole ? nodes->max_whole / one->whole : 0;
	const uint32_t first = most < pods ? most : pods;
	uint64_t sum = 0;

	*n = 0;
	if (one->whole == 0)
		return false;
	for (uint32_t room = first; room > 0 && sum < pods; room--) {
		const uint32_t from = room * one->whole;
		const uint32_t to = room == first ? nodes->max_whole : from + one->whole - 1;

		for (uint32_t f = from; f <= to && sum < pods; f++) {
			const struct bucket *b = &nodes->now.buckets[f];

			for (uint32_t w = b->from; b->n && w < nodes->n_words && sum < pods; w++) {
				uint64_t word = b->set[w] ? masks_of(m, b->set[w], w) : 0;

				while (word && sum < pods) {
					const uint32_t node = bits_pop(&word, w * 64);

					c->steps++;
					if (nodes_room(c, node, one, pods) != room)
						return false;
					packing->rank_nodes[(*n)++] = node;
					packing->rank_room[node] = room;
					sum += room;
				}
			}
		}
	}
	if (sum < pods)
		*n = 0;
	return true;
}

/* Rank nodes for the pods of a gang, those without devices first where the pods need none.
 * rank_by_buckets() is tried first: it visits only as many nodes as are needed. */
static uint32_t rank_bare(struct cycle *c, const struct need *one, uint32_t pods, struct masks *m)
{
	uint32_t n = 0;

	if (rank_by_buckets(c, one, pods, m, &n))
		return n;
	n = 0;
	if (one->whole == 0) {
		m->also = c->nodes->gpuless;
		n = rank_nodes(c, one, pods, m);
		m->also = NULL;
	}
	return n ? n : rank_nodes(c, one, pods, m);
}

/* Place equal pods of a gang: all on one node if possible, else the roomiest nodes first until the
 * rest fits on one, and for that the tightest. */
static bool pack_alike(struct cycle *c, const struct batch *b, struct masks *m)
{
	struct pack *packing = c->pack;
	uint32_t n = 0, at = 0, pods = b->pods, index = b->index;

	while (pods > 0) {
		struct need rest = nodes_need_times(&b->one, pods);
		uint32_t node = choose(c, &rest, b->group, pods, m), take = pods;

		if (node == SNAP_NONE) {
			if (n == 0 && pods > 1)
				n = rank_bare(c, &b->one, pods, m);
			if (at == n)
				return false;
			node = packing->rank_nodes[at++];
			take = packing->rank_room[node];
		}
		for (uint32_t i = 0; i < take; i++)
			nodes_take(c, node, &b->one, b->group, index++);
		pods -= take;
		/* The rest of the gang fits on one node only if that node is no roomier than the
		 * next in rank: no need to search before. */
		while (pods > 0 && at < n && packing->rank_room[packing->rank_nodes[at]] < pods) {
			node = packing->rank_nodes[at++];
			for (take = packing->rank_room[node]; take > 0; take--, pods--)
				nodes_take(c, node, &b->one, b->group, index++);
		}
	}
	return true;
}

/* Place pods one by one, each where it fits best at that moment, and where limits leave what it is charged: every
 * one after it may then still be charged the least. */
static bool pack_singly(struct cycle *c, const struct batch *b, struct masks *m)
{
	const struct pack *p = c->pack;
	int64_t left = charges_left(c, p->request, p->flavor), extra = 1;

	for (uint32_t i = 0; i < b->pods; i++) {
		uint32_t node;

		if (extra > 0)
			m->dear = charges_dear(c, p->request, b->group, p->flavor, left);
		node = choose(c, &b->one, b->group, 1, m);
		if (node == SNAP_NONE)
			return false;
		nodes_take(c, node, &b->one, b->group, b->index + i);
		extra = m->dear ? charges_extra(c, p->request, b->group, node) : 0;
		left = amount_less(left, extra);
	}
	return true;
}

bool pack_pods(struct cycle *c, const struct batch *b, struct masks *m)
{
	return b->one.parts || c->pack->spread ? pack_singly(c, b, m) : pack_alike(c, b, m);
}

struct masks pack_masks(struct cycle *c, uint32_t job, uint32_t flavor, uint32_t group)
{
	struct pack *packing = c->pack;
	struct nodes *nodes = c->nodes;
	const struct snap_request *r = cycle_request(c, job);
	struct masks m = { .fit = feasibility_of(c, cycle_request_ix(c, job), group)->nodes,
			   .skip = packing->skips ? packing->skip : NULL };

	if (r->groups[group].gpus_milli > 0 && flavor != SNAP_NONE)
		m.flavor = nodes->flavors[flavor];
	if (r->groups[group].topology_required)
		m.domain = packing->domain;
	if (r->groups[group].topology_preferred && packing->near)
		m.domain = packing->near;
	if (!r->exclusive || c->failed)
		return m;
	/* Nodes with tenants, but not those that this gang has just been placed on. */
	for (uint32_t w = 0; w < nodes->n_words; w++)
		packing->skip[w] |= ~nodes->now.vacant[w];
	for (uint32_t i = 0; i < c->places.n_pods; i++)
		bits_del(packing->skip, c->places.pods[i].node);
	m.skip = packing->skip;
	return m;
}

/* Place pods of one group. On failure those placed before are left for the caller to undo, and
 * those of the group are undone here. */
static bool pack_group(struct cycle *c, uint32_t job, uint32_t flavor, uint32_t group,
		       uint32_t index, uint32_t pods)
{
	const uint32_t request = cycle_request_ix(c, job);
	const struct snap_group *g = &c->s->requests[request].groups[group];
	const struct group_fit *fit = feasibility_of(c, request, group);
	const struct batch b = { nodes_need(g), group, index, pods };
	struct masks m = pack_masks(c, job, flavor, group);
	const uint32_t before = c->places.n_pods;

	if (c->failed || pods == 0)
		return !c->failed;
	/* By preference, then anywhere. */
	for (uint32_t t = 0; t <= fit->n_tiers; t++) {
		m.tier = t < fit->n_tiers ? fit->tiers[t] : NULL;
		if (topology_asked(g) ? topology_pack(c, g, &b, &m) : pack_pods(c, &b, &m))
			return true;
		while (c->places.n_pods > before)
			nodes_undo(c, &b.one);
	}
	return false;
}

/* Release all places, the last first. */
static void undo_all(struct cycle *c, const struct snap_request *r)
{
	while (c->places.n_pods > 0) {
		const struct need one =
			nodes_need(&r->groups[c->places.pods[c->places.n_pods - 1].group]);

		nodes_undo(c, &one);
	}
}

/* Place the groups of a gang in that order; false, and nothing is placed, if one does not fit. Pods
 * keep their indexes whatever the order. */
static bool pack_in_order(struct cycle *c, uint32_t job, uint32_t flavor, const uint32_t *order)
{
	const struct snap_request *r = cycle_request(c, job);
	uint32_t first[GPUQ_GROUPS_MAX], index = 0;

	for (uint32_t g = 0; g < r->n_groups; g++) {
		first[g] = index;
		index += r->groups[g].pods_min;
	}
	for (uint32_t i = 0; i < r->n_groups; i++) {
		if (!pack_group(c, job, flavor, order[i], first[order[i]],
				r->groups[order[i]].pods_min)) {
			undo_all(c, r);
			return false;
		}
	}
	return true;
}

/* Step to the next permutation in lexicographic order; false after the last. */
static bool next_order(uint32_t *order, uint32_t n)
{
	uint32_t i = n - 1, k = n - 1, t;

	while (i > 0 && order[i - 1] > order[i])
		i--;
	if (i == 0)
		return false;
	while (order[k] < order[i - 1])
		k--;
	t = order[i - 1];
	order[i - 1] = order[k];
	order[k] = t;
	for (k = n - 1; i < k; i++, k--) {
		t = order[i];
		order[i] = order[k];
		order[k] = t;
	}
	return true;
}

#define GROUPS_ARRANGED 4 /* up to this many groups are tried in every order */

bool pack_groups(struct cycle *c, uint32_t job, uint32_t flavor)
{
	const uint32_t n = cycle_request(c, job)->n_groups;
	uint32_t order[GPUQ_GROUPS_MAX] = { 0 };

	/* The two orders that succeed most often come first; few groups are then tried in all. */
	for (int by_size = 0; by_size < (n > 1 ? 2 : 1); by_size++) {
		roles_order(c, job, flavor, by_size, order);
		if (pack_in_order(c, job, flavor, order))
			return true;
	}
	if (n == 1 || n > GROUPS_ARRANGED)
		return false;
	for (uint32_t g = 0; g < n; g++)
		order[g] = g;
	do {
		if (pack_in_order(c, job, flavor, order))
			return true;
	} while (next_order(order, n));
	return false;
}

/* True if there are as many free devices as each group requests, wherever they are, and a node with
 * the cpu and memory of one of its pods. A cheap no for the many jobs that are pending while the
 * cluster is full. */
static bool enough_at_a_glance(const struct cycle *c, uint32_t request, uint32_t flavor)
{
	const struct snap_request *r = &c->s->requests[request];

	for (uint32_t g = 0; g < r->n_groups; g++) {
		const struct need one = nodes_need(&r->groups[g]);
		const int64_t asked = (int64_t)one.whole * r->groups[g].pods_min;

		if ((asked > 0 && feasibility_glance_bound(c, request, g, flavor) < asked) ||
		    feasibility_glance_rules_out(
			    c, request, g, r->groups[g].gpus_milli > 0 ? flavor : SNAP_NONE, &one))
			return false;
	}
	return true;
}

/* Note the nodes that the job must not use, those of `barred` (NULL = none) among them. */
static void skip_for(struct cycle *c, uint32_t job, const uint64_t *barred)
{
	const struct snap_job *j = &c->s->jobs[job];
	const uint64_t *ends = ends_of(c, job);
	uint64_t *skip = c->pack->skip;

	for (uint32_t w = 0; w < cycle_words(c); w++)
		skip[w] = (barred ? barred[w] : 0) | (ends ? ends[w] : 0);
	for (uint32_t i = 0; i < j->n_exclude; i++)
		bits_add(skip, j->exclude[i]);
}

/* Prepare the search for a job: forget the last places, and note the nodes that it must not use. */
static void begin(struct cycle *c, uint32_t job, uint32_t flavor, bool masked)
{
	struct pack *packing = c->pack;
	const struct snap_job *j = &c->s->jobs[job];

	c->places.n_pods = c->places.n_devices = 0;
	packing->request = cycle_request_ix(c, job);
	packing->flavor = flavor;
	packing->spread = j->spread || c->s->queues[j->queue].spread;
	packing->skips = packing->barred || j->n_exclude || ends_of(c, job);
	if (masked || packing->skips)
		skip_for(c, job, packing->barred);
}

/* Place the job. tight: not on nodes that last longer than it needs. */
static bool pack_once(struct cycle *c, uint32_t job, uint32_t flavor, bool tight)
{
	const struct snap_request *r = cycle_request(c, job);
	bool placed;

	begin(c, job, flavor, r->exclusive || tight);
	if (tight)
		c->pack->skips = ends_longer(c, job, c->pack->skip);
	/* The glance counts what is free now, so it says nothing of other states. */
	if (!c->nodes->planning && !c->pack->withholding && !c->in_later &&
	    !enough_at_a_glance(c, cycle_request_ix(c, job), flavor))
		return false;
	charges_begin(c, job, flavor);
	placed = r->n_groups > 1 ? roles_pack(c, job, flavor) : pack_groups(c, job, flavor);
	if (placed && r->exclusive)
		nodes_close(c);
	return placed && !c->failed;
}

bool pack_job(struct cycle *c, uint32_t job, uint32_t flavor)
{
	return (ends_longer(c, job, NULL) && pack_once(c, job, flavor, true)) ||
	       (!c->failed && pack_once(c, job, flavor, false));
}

bool pack_more(struct cycle *c, uint32_t job, uint32_t flavor, uint32_t group, uint32_t index,
	       uint32_t pods, const uint64_t *domain, int64_t spare)
{
	struct pack *packing = c->pack;
	bool placed;

	begin(c, job, flavor, true);
	packing->domain = domain;
	charges_begin_with(c, spare);
	placed = pack_group(c, job, flavor, group, index, pods);
	packing->domain = NULL;
	return placed && !c->failed;
}

void pack_bar(struct cycle *c, const uint64_t *set)
{
	c->pack->barred = set;
}

void pack_withhold(struct cycle *c, bool on)
{
	c->pack->withholding = on;
}

void pack_exclude(struct cycle *c, uint32_t job)
{
	skip_for(c, job, NULL);
}

const uint64_t *pack_skipped(const struct cycle *c)
{
	return c->pack->skip;
}

void pack_undo(struct cycle *c, uint32_t job)
{
	const struct snap_request *r = cycle_request(c, job);
	const uint32_t n = c->places.n_pods, n_devices = c->places.n_devices;

	if (r->exclusive)
		nodes_reopen(c);
	undo_all(c, r);
	/* The places remain readable, though nothing is taken there any more. */
	c->places.n_pods = n;
	c->places.n_devices = n_devices;
}
