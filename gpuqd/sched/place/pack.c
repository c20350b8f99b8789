#include "gpuqd/sched/place/pack.h"

#include "gpuqd/sched/place/devices.h"
#include "gpuqd/sched/place/feasibility.h"
#include "gpuqd/sched/place/nodes.h"
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

static int64_t magnitude(int64_t x)
{
	return x < 0 ? -x : x;
}

int64_t pack_imbalance(const struct cycle *c, uint32_t node, const struct need *n)
{
	int64_t left = ((int64_t)c->whole[node] - n->whole) * 1024, off = 0;

	if (left <= 0)
		return 0;
	if (c->cpu[node] != GPUQ_UNLIMITED && c->cpu_per_device)
		off = magnitude(amount_times(c->cpu[node] - n->cpu, 1024 * 1024) /
					c->cpu_per_device -
				left);
	if (c->memory[node] != GPUQ_UNLIMITED && c->mib_per_device) {
		int64_t mib = (c->memory[node] - n->memory) >> 20;
		int64_t o = magnitude(amount_times(mib, 1024 * 1024) / c->mib_per_device - left);

		off = o > off ? o : off;
	}
	return off;
}

/* Return the best node of one bucket, by balance and then name; SNAP_NONE = none fits. */
static uint32_t best_of_bucket(struct cycle *c, struct bucket *b, const struct need *n,
			       const struct masks *m)
{
	uint32_t best = SNAP_NONE, fitting = 0;
	int64_t best_off = 0;

	while (b->from < c->n_words && !b->set[b->from])
		b->from++;
	for (uint32_t w = b->from; w < c->n_words; w++) {
		uint64_t word = b->set[w] ? masks_of(m, b->set[w], w) : 0;

		while (word) {
			uint32_t node = bits_pop(&word, w * 64);
			int64_t off;

			c->steps++;
			/* A node in the same state as the best comes after it by name. */
			if (best != SNAP_NONE && c->cpu[node] == c->cpu[best] &&
			    c->memory[node] == c->memory[best]) {
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
	for (uint32_t i = n->whole; i <= c->max_whole; i++) {
		const uint32_t f = c->spread ? c->max_whole - (i - n->whole) : i;
		uint32_t node;

		if (c->buckets[f].n == 0)
			continue;
		node = best_of_bucket(c, &c->buckets[f], n, m);
		if (node != SNAP_NONE)
			return node;
	}
	return SNAP_NONE;
}

/* Share before opening: choose a node whose devices in use have room for the part (for as many of a
 * pod's parts as possible), the one with the fewest whole devices free, the fullest devices; else
 * as for whole devices. Spread is the other way round. */
static uint32_t choose_part(struct cycle *c, const struct need *n, const struct masks *m)
{
	uint32_t best = SNAP_NONE;
	struct parts p, least = { 0 };

	for (uint32_t w = 0; w < c->n_words; w++) {
		/* A node without a device in use is no better for one part than any other, unless
		 * the search is for such nodes. One without anything free never fits. */
		const uint64_t none = c->buckets[0].set ? c->buckets[0].set[w] : 0;
		const uint64_t all = n->parts > 1 || c->spread || n->part_memory
					     ? c->parted[w] | ~none
					     : c->parted[w];
		uint64_t word = masks_of(m, all & c->usable[w], w);

		while (word) {
			const uint32_t node = bits_pop(&word, w * 64);
			bool better;

			c->steps++;
			if (nodes_room(c, node, n, 1) == 0 || !devices_parts(c, node, n, &p))
				continue;
			better = best == SNAP_NONE || p.opened < least.opened;
			if (best != SNAP_NONE && p.opened == least.opened)
				better = c->whole[node] != c->whole[best]
						 ? c->whole[node] < c->whole[best]
						 : p.left < least.left;
			if (best != SNAP_NONE && c->spread)
				better = c->whole[node] > c->whole[best] ||
					 (c->whole[node] == c->whole[best] && p.left > least.left);
			if (better) {
				best = node;
				least = p;
			}
		}
	}
	if (best == SNAP_NONE || (least.opened && n->parts == 1 && !n->part_memory && !c->spread)) {
		struct need whole = *n;

		if (n->part_memory || n->parts > 1 || c->spread)
			return best;
		whole.parts = 0;
		whole.part = 0;
		whole.whole = 1;
		return choose_whole(c, &whole, m);
	}
	return best;
}

/* Choose a node for instances: the fewest of the profile left, then the fewest devices free. */
static uint32_t choose_mig(struct cycle *c, const struct need *n, const struct masks *m)
{
	uint32_t best = SNAP_NONE;
	int32_t least = 0;

	for (uint32_t w = 0; w < c->n_words; w++) {
		uint64_t word = masks_of(m, c->migs[w] & c->usable[w], w);

		while (word) {
			const uint32_t node = bits_pop(&word, w * 64);
			const int32_t left =
				c->mig_free[(size_t)node * c->s->n_profiles + n->profile];

			c->steps++;
			if (nodes_room(c, node, n, 1) == 0)
				continue;
			if (best == SNAP_NONE || (c->spread ? left > least : left < least)) {
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

	m->also = c->gpuless;
	node = choose_whole(c, n, m);
	m->also = NULL;
	return node != SNAP_NONE ? node : choose_whole(c, n, m);
}

/* pods: the number of pods in n, all of them on one node. */
static uint32_t choose(struct cycle *c, const struct need *n, uint32_t group, uint32_t pods,
		       struct masks *m)
{
	uint32_t node;

	if (pods == 1 && !n->migs && score_choose(c, c->request, group, c->flavor, n, m, &node))
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
	uint32_t *count = c->rank_count;

	memset(count, 0, ((size_t)max + 2) * sizeof(*count));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = key_of[c->rank_nodes[i]];

		count[(falling ? max - k : k) + 1]++;
	}
	for (uint32_t k = 1; k <= max; k++)
		count[k] += count[k - 1];
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = key_of[c->rank_nodes[i]];

		c->rank_scratch[count[falling ? max - k : k]++] = c->rank_nodes[i];
	}
	memcpy(c->rank_nodes, c->rank_scratch, n * sizeof(*c->rank_nodes));
}

/* Rank all nodes with room for at least one pod: those with most room first, among them those with
 * the fewest devices left over, then by name. 0 when they do not hold all pods. */
static uint32_t rank_nodes(struct cycle *c, const struct need *one, uint32_t pods,
			   const struct masks *m)
{
	uint64_t sum = 0;
	uint32_t n = 0;

	for (uint32_t w = 0; w < c->n_words; w++) {
		uint64_t word = masks_of(m, c->usable[w], w);

		while (word) {
			uint32_t node = bits_pop(&word, w * 64);
			uint32_t room = nodes_room(c, node, one, pods);

			c->steps++;
			if (room == 0)
				continue;
			c->rank_nodes[n++] = node;
			c->rank_room[node] = room;
			c->rank_left[node] = c->whole[node] - room * one->whole;
			sum += room;
		}
	}
	if (sum < pods)
		return 0;
	rank_by(c, n, c->rank_left, c->max_whole, false);
	rank_by(c, n, c->rank_room, pods, true);
	return n;
}

/* Rank the first of them, enough for all pods, by their numbers of free devices alone: nodes with
 * room for r pods are those with r times as many devices free, and a few more. False: on some node
 * cpu, memory or pods allow less, and all have to be evaluated. */
static bool rank_by_buckets(struct cycle *c, const struct need *one, uint32_t pods,
			    const struct masks *m, uint32_t *n)
{
	const uint32_t most = one->whole ? c->max_whole / one->whole : 0;
	const uint32_t first = most < pods ? most : pods;
	uint64_t sum = 0;

	*n = 0;
	if (one->whole == 0)
		return false;
	for (uint32_t room = first; room > 0 && sum < pods; room--) {
		const uint32_t from = room * one->whole;
		const uint32_t to = room == first ? c->max_whole : from + one->whole - 1;

		for (uint32_t f = from; f <= to && sum < pods; f++) {
			const struct bucket *b = &c->buckets[f];

			for (uint32_t w = b->from; b->n && w < c->n_words && sum < pods; w++) {
				uint64_t word = b->set[w] ? masks_of(m, b->set[w], w) : 0;

				while (word && sum < pods) {
					const uint32_t node = bits_pop(&word, w * 64);

					c->steps++;
					if (nodes_room(c, node, one, pods) != room)
						return false;
					c->rank_nodes[(*n)++] = node;
					c->rank_room[node] = room;
					sum += room;
				}
			}
		}
	}
	if (sum < pods)
		*n = 0;
	return true;
}

static uint32_t rank_bare(struct cycle *c, const struct need *one, uint32_t pods, struct masks *m)
{
	uint32_t n = 0;

	if (rank_by_buckets(c, one, pods, m, &n))
		return n;
	n = 0;
	if (one->whole == 0) {
		m->also = c->gpuless;
		n = rank_nodes(c, one, pods, m);
		m->also = NULL;
	}
	return n ? n : rank_nodes(c, one, pods, m);
}

/* Place equal pods of a gang: all on one node if possible, else the roomiest nodes first until the
 * rest fits on one, and for that the tightest. */
static bool pack_alike(struct cycle *c, const struct batch *b, struct masks *m)
{
	uint32_t n = 0, at = 0, pods = b->pods, index = b->index;

	while (pods > 0) {
		struct need rest = nodes_need_times(&b->one, pods);
		uint32_t node = choose(c, &rest, b->group, pods, m), take = pods;

		if (node == SNAP_NONE) {
			if (n == 0 && pods > 1)
				n = rank_bare(c, &b->one, pods, m);
			if (at == n)
				return false;
			node = c->rank_nodes[at++];
			take = c->rank_room[node];
		}
		for (uint32_t i = 0; i < take; i++)
			nodes_take(c, node, &b->one, b->group, index++);
		pods -= take;
		/* The rest of the gang fits on one node only if that node is no roomier than the
		 * next in rank: no need to search before. */
		while (pods > 0 && at < n && c->rank_room[c->rank_nodes[at]] < pods) {
			node = c->rank_nodes[at++];
			for (take = c->rank_room[node]; take > 0; take--, pods--)
				nodes_take(c, node, &b->one, b->group, index++);
		}
	}
	return true;
}

static bool pack_singly(struct cycle *c, const struct batch *b, struct masks *m)
{
	for (uint32_t i = 0; i < b->pods; i++) {
		uint32_t node = choose(c, &b->one, b->group, 1, m);

		if (node == SNAP_NONE)
			return false;
		nodes_take(c, node, &b->one, b->group, b->index + i);
	}
	return true;
}

bool pack_pods(struct cycle *c, const struct batch *b, struct masks *m)
{
	return b->one.parts || c->spread ? pack_singly(c, b, m) : pack_alike(c, b, m);
}

struct masks pack_masks(struct cycle *c, uint32_t job, uint32_t flavor, uint32_t group)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct snap_request *r = &c->s->requests[j->request];
	struct masks m = { .fit = feasibility_of(c, j->request, group)->nodes,
			   .skip = j->n_exclude || c->barred ? c->skip : NULL };

	if (r->groups[group].gpus_milli > 0 && flavor != SNAP_NONE)
		m.flavor = c->flavors[flavor];
	if (r->groups[group].topology_required)
		m.domain = c->domain;
	if (r->groups[group].topology_preferred && c->near)
		m.domain = c->near;
	if (!r->exclusive || c->failed)
		return m;
	/* Nodes with tenants, but not those that this gang has just been placed on. */
	for (uint32_t w = 0; w < c->n_words; w++)
		c->skip[w] |= ~c->vacant[w];
	for (uint32_t i = 0; i < c->n_places; i++)
		bits_del(c->skip, c->places[i].node);
	m.skip = c->skip;
	return m;
}

static bool pack_group(struct cycle *c, uint32_t job, uint32_t flavor, uint32_t group,
		       uint32_t index, uint32_t pods)
{
	const uint32_t request = c->s->jobs[job].request;
	const struct snap_group *g = &c->s->requests[request].groups[group];
	const struct group_fit *fit = feasibility_of(c, request, group);
	const struct batch b = { nodes_need(g), group, index, pods };
	struct masks m = pack_masks(c, job, flavor, group);
	const uint32_t before = c->n_places;

	if (c->failed || pods == 0)
		return !c->failed;
	/* By preference, then anywhere. */
	for (uint32_t t = 0; t <= fit->n_tiers; t++) {
		m.tier = t < fit->n_tiers ? fit->tiers[t] : NULL;
		if (topology_asked(g) ? topology_pack(c, g, &b, &m) : pack_pods(c, &b, &m))
			return true;
		while (c->n_places > before)
			nodes_undo(c, &b.one);
	}
	return false;
}

static void undo_all(struct cycle *c, const struct snap_request *r)
{
	while (c->n_places > 0) {
		const struct need one = nodes_need(&r->groups[c->places[c->n_places - 1].group]);

		nodes_undo(c, &one);
	}
}

static bool pack_in_order(struct cycle *c, uint32_t job, uint32_t flavor, const uint32_t *order)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[job].request];
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
	const uint32_t n = c->s->requests[c->s->jobs[job].request].n_groups;
	uint32_t order[GPUQ_GROUPS_MAX] = { 0 };

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

static void begin(struct cycle *c, uint32_t job, uint32_t flavor, bool masked)
{
	const struct snap_job *j = &c->s->jobs[job];

	c->n_places = c->n_place_devices = 0;
	c->request = j->request;
	c->flavor = flavor;
	c->spread = j->spread || c->s->queues[j->queue].spread;
	if (c->barred)
		memcpy(c->skip, c->barred, c->n_words * sizeof(*c->skip));
	else if (masked)
		memset(c->skip, 0, c->n_words * sizeof(*c->skip));
	for (uint32_t i = 0; i < j->n_exclude; i++)
		bits_add(c->skip, j->exclude[i]);
}

bool pack_job(struct cycle *c, uint32_t job, uint32_t flavor)
{
	const struct snap_job *j = &c->s->jobs[job];
	const struct snap_request *r = &c->s->requests[j->request];
	bool placed;

	begin(c, job, flavor, j->n_exclude || r->exclusive);
	if (!c->planning && !c->withholding && !c->in_later &&
	    !enough_at_a_glance(c, j->request, flavor))
		return false;
	placed = r->n_groups > 1 ? roles_pack(c, job, flavor) : pack_groups(c, job, flavor);
	if (placed && r->exclusive)
		nodes_close(c);
	return placed && !c->failed;
}

bool pack_more(struct cycle *c, uint32_t job, uint32_t flavor, uint32_t group, uint32_t index,
	       uint32_t pods, const uint64_t *domain)
{
	bool placed;

	begin(c, job, flavor, true);
	c->domain = domain;
	placed = pack_group(c, job, flavor, group, index, pods);
	c->domain = NULL;
	return placed && !c->failed;
}

void pack_undo(struct cycle *c, uint32_t job)
{
	const struct snap_request *r = &c->s->requests[c->s->jobs[job].request];
	const uint32_t n = c->n_places, n_devices = c->n_place_devices;

	if (r->exclusive)
		nodes_reopen(c);
	undo_all(c, r);
	c->n_places = n;
	c->n_place_devices = n_devices;
}
