#include "gpuqd/sched/place/topology.h"

#include <string.h>

#include "gpuqd/sched/place/nodes_int.h"
#include "gpuqd/sched/place/pack_int.h"
#include "gpuqd/sched/place/topology_count.h"
#include "gpuqd/sched/place/topology_tree.h"
#include "gpuqd/util/sort.h"
#include "libgpuq/limits.h"

/* The way down the tree. Above the widest level with slices, the domains chosen on one level are
 * forgotten on the next: any of their children may be used, which leaves the most freedom to use
 * few. From there on each domain keeps the pods it was given. */

#define DOMAINS_TRIED 64

/* Measure what each domain has room for, as nodes are now; false where the labels make no tree, or
 * without memory. */
static bool measure_nodes(struct cycle *c, const struct tree *tree, const struct snap_group *g,
			  const struct batch *b, const struct masks *m, struct measure *out)
{
	struct nodes *nodes = c->nodes;

	if (!tree || !topology_measure_init(c, tree, g, out))
		return false;
	for (uint32_t w = 0; w < nodes->n_words; w++) {
		uint64_t word = masks_of(m, nodes->now.usable[w], w);

		while (word) {
			const uint32_t node = bits_pop(&word, w * 64);

			c->steps++;
			topology_measure_node(out, node,
					      nodes_room(c, node, &b->one, GPUQ_PODS_MAX),
					      nodes->now.whole[node]);
		}
	}
	topology_measure_sum(out);
	return true;
}

/* Add the nodes of a domain to the set. */
static void add_nodes(const struct tree *t, uint32_t domain, const uint64_t *within, uint64_t *out)
{
	for (uint32_t i = t->node_first[domain]; i < t->node_first[domain + 1]; i++)
		if (!within || bits_has(within, t->nodes[i]))
			bits_add(out, t->nodes[i]);
}

struct walk {
	const struct measure *measure; /* what each domain has room for */
	const struct masks *masks;
	uint64_t *set; /* nodes to pack on; empty between two uses */
};

/* Pack on the nodes of some domains of the last rung. */
static bool pack_nodes(struct cycle *c, struct walk *w, const uint32_t *domains, uint32_t n,
		       const struct batch *b)
{
	const struct tree *t = w->measure->tree;
	struct masks inside = *w->masks;
	bool packed;

	for (uint32_t i = 0; i < n; i++)
		add_nodes(t, domains[i], w->masks->domain, w->set);
	inside.domain = w->set;
	packed = pack_pods(c, b, &inside);
	memset(w->set, 0, c->nodes->n_words * sizeof(*w->set));
	return packed;
}

/* Use as few domains of this rung as possible, inside those of the rung above, and inside them the
 * same on the next. apart: each of those above has its own pods from here on. */
static bool descend(struct cycle *c, struct walk *w, uint32_t rung, const uint32_t *above,
		    uint32_t n_above, const struct batch *b, bool apart)
{
	const struct measure *m = w->measure;
	struct batch part = *b;
	uint32_t *chosen, *pods, n = 0, most, left = b->pods;

	if (rung == m->tree->n_rungs)
		return pack_nodes(c, w, above, n_above, b);
	most = m->tree->rungs[rung].n_domains < left ? m->tree->rungs[rung].n_domains : left;
	chosen = cycle_scratch(c, most, sizeof(*chosen));
	pods = cycle_scratch(c, most, sizeof(*pods));
	while (!c->failed && left > 0) {
		const uint32_t at = topology_measure_pick(m, rung, above, n_above, left);

		if (at == SNAP_NONE)
			return false;
		chosen[n] = at;
		pods[n] = m->at[rung][at].room < left ? (uint32_t)m->at[rung][at].room : left;
		m->at[rung][at].room = 0;
		left -= pods[n++];
		c->steps++;
	}
	apart |= m->size[rung] > 0;
	if (!apart)
		return !c->failed && descend(c, w, rung + 1, chosen, n, b, false);
	for (uint32_t i = 0; !c->failed && i < n; i++) {
		part.pods = pods[i];
		if (!descend(c, w, rung + 1, &chosen[i], 1, &part, true))
			return false;
		part.index += part.pods;
	}
	return !c->failed;
}

struct seat {
	uint32_t place, node; /* place: of the current job */
	uint32_t domain; /* of the last rung */
};

/* Compare seats by domain and node; places of one node keep their order. */
static int cmp_seat(const void *ctx, uint32_t x, uint32_t y)
{
	const struct seat *a = (const struct seat *)ctx + x, *b = (const struct seat *)ctx + y;
	int d = sort_i64(a->domain, b->domain);

	if (d == 0)
		d = sort_i64(a->node, b->node);
	return d ? d : sort_i64(a->place, b->place);
}

/* Number the pods along the tree, so that consecutive pods are close to each other, and slices are
 * consecutive pods. */
static void number_pods(struct cycle *c, const struct tree *t, const struct batch *b, uint32_t from)
{
	const uint32_t n = c->places.n_pods - from;
	struct seat *seats = cycle_scratch(c, n, sizeof(*seats));
	uint32_t *order = cycle_scratch(c, n, sizeof(*order));
	uint32_t *scratch = cycle_scratch(c, n, sizeof(*scratch));

	if (c->failed || t->n_rungs == 0)
		return;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t node = c->places.pods[from + i].node;

		seats[i] =
			(struct seat){ from + i, node, t->rungs[t->n_rungs - 1].domain_of[node] };
		order[i] = i;
	}
	sort_ix(order, scratch, n, cmp_seat, seats);
	for (uint32_t i = 0; i < n; i++)
		c->places.pods[seats[order[i]].place].index = b->index + i;
}

static void undo_to(struct cycle *c, const struct batch *b, uint32_t n_places)
{
	while (c->places.n_pods > n_places)
		nodes_undo(c, &b->one);
}

/* Go down from one of the site's levels, without a single domain to begin with. */
static bool go_down(struct cycle *c, const struct snap_group *g, const struct batch *b,
		    const struct masks *m, uint32_t first)
{
	const struct tree *tree = topology_tree(c, g, NULL, first);
	const uint32_t before = c->places.n_pods;
	uint32_t root = 0;
	struct measure measure;
	struct walk w = { &measure, m, cycle_scratch(c, c->nodes->n_words, sizeof(*w.set)) };

	if (!measure_nodes(c, tree, g, b, m, &measure) || !w.set)
		return false;
	if (!descend(c, &w, 0, &root, 1, b, false)) {
		undo_to(c, b, before);
		return false;
	}
	number_pods(c, tree, b, before);
	return true;
}

bool topology_candidates_init(struct cycle *c, const struct snap_group *g, const char *level,
			      const struct batch *b, const struct masks *m, struct candidates *out)
{
	const uint32_t at = topology_position(c, level), n = c->s->config.n_levels;
	const struct tree *tree = topology_tree(c, g, level, at < n ? at + 1 : 0);

	out->n_tried = 0;
	return measure_nodes(c, tree, g, b, m, &out->measure);
}

bool topology_candidates_next(struct cycle *c, struct candidates *k, const struct batch *b,
			      const struct masks *m, uint64_t *set)
{
	const struct rung *front = &k->measure.tree->rungs[0];
	const uint32_t root = 0;
	uint32_t at;

	if (k->n_tried++ == DOMAINS_TRIED)
		return false;
	at = topology_measure_pick(&k->measure, 0, &root, 1, b->pods);
	if (at == SNAP_NONE || front->loose[at] || k->measure.at[0][at].room < b->pods)
		return false;
	k->measure.at[0][at].room = 0;
	memset(set, 0, c->nodes->n_words * sizeof(*set));
	for (uint32_t n = 0; n < c->s->n_nodes; n++)
		if (front->domain_of[n] == at && (!m->domain || bits_has(m->domain, n)))
			bits_add(set, n);
	return true;
}

/* Pack all pods in one domain of that level, trying each from the tightest on. */
static bool pack_in_one(struct cycle *c, const char *name, const struct batch *b,
			const struct masks *m,
			bool (*inside)(struct cycle *, const struct snap_group *,
				       const struct batch *, const struct masks *, uint32_t),
			const struct snap_group *g)
{
	const uint32_t at = topology_position(c, name), n = c->s->config.n_levels;
	uint64_t *set = cycle_scratch(c, c->nodes->n_words, sizeof(*set));
	struct candidates k;

	if (!set || !topology_candidates_init(c, g, name, b, m, &k))
		return false;
	while (topology_candidates_next(c, &k, b, m, set)) {
		struct masks in = *m;

		in.domain = set;
		if (inside(c, g, b, &in, at < n ? at + 1 : 0))
			return true;
	}
	return false;
}

/* Try the preferred level, then each wider one that is still inside what is required, then go down
 * from there without a single domain. first: the widest level to use. */
static bool pack_preferred(struct cycle *c, const struct snap_group *g, const struct batch *b,
			   const struct masks *m, uint32_t first)
{
	const char *name = g->topology_preferred;
	const uint32_t n = c->s->config.n_levels;
	uint32_t at;

	if (!name)
		return go_down(c, g, b, m, first);
	at = topology_position(c, name);
	if (at == n && pack_in_one(c, name, b, m, go_down, g))
		return true;
	for (uint32_t i = at < n ? at + 1 : n; i-- > first;)
		if (pack_in_one(c, c->s->config.levels[i], b, m, go_down, g))
			return true;
	return go_down(c, g, b, m, first);
}

bool topology_pack(struct cycle *c, const struct snap_group *g, const struct batch *b,
		   struct masks *m)
{
	/* When the whole job is in one domain already, that one is required. */
	if (g->topology_required && !c->pack->domain)
		return pack_in_one(c, g->topology_required, b, m, pack_preferred, g);
	if (!g->topology_required)
		return pack_preferred(c, g, b, m, 0);
	return pack_preferred(c, g, b, m, topology_position(c, g->topology_required) + 1);
}
