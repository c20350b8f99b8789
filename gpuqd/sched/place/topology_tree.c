#include "gpuqd/sched/place/topology_tree.h"

#include "gpuqd/sched/place/topology.h"

#include <string.h>

#include "gpuqd/util/intern.h"
#include "gpuqd/util/sort.h"

/* Levels, each by itself, and trees of them. Both are made on first use and kept for the cycle:
 * labels do not change meanwhile. */

static const char *const host_names[] = { "host", "node", "hostname", "kubernetes.io/hostname" };

/* True for a name of the level of single nodes. */
static bool is_host(const char *name)
{
	for (size_t i = 0; i < sizeof(host_names) / sizeof(host_names[0]); i++)
		if (strcmp(host_names[i], name) == 0)
			return true;
	return false;
}

uint32_t topology_position(const struct cycle *c, const char *name)
{
	uint32_t i = 0;

	while (i < c->s->config.n_levels && strcmp(c->s->config.levels[i], name) != 0)
		i++;
	return i;
}

/* A node that has no label for the level of nodes is a domain of its own. */
static const char *label(const struct cycle *c, uint32_t node, const char *key)
{
	for (uint32_t k = 0; k < c->s->n_label_keys; k++)
		if (strcmp(c->s->label_keys[k], key) == 0 &&
		    c->s->classes[c->s->nodes[node].cls].values[k])
			return c->s->classes[c->s->nodes[node].cls].values[k];
	return is_host(key) ? c->s->nodes[node].name : NULL;
}

/* Write the node's labels from the widest level to this one, each with its NUL: two racks r1 in
 * different blocks are two domains. Returns the number of bytes; 0 = it has no such label. */
static size_t path_of(const struct cycle *c, uint32_t node, const char *name, char *out,
		      size_t room)
{
	const uint32_t at = topology_position(c, name), n = c->s->config.n_levels;
	const char *own = label(c, node, name);
	size_t used = 0;

	if (!own)
		return 0;
	for (uint32_t i = 0; i <= at && i < n; i++) {
		const char *v = label(c, node, c->s->config.levels[i]);
		const size_t len = strlen(v ? v : "") + 1;

		if (used + len > room)
			return used;
		memcpy(out + used, v ? v : "", len);
		used += len;
	}
	if (at == n && strlen(own) < room) {
		memcpy(out, own, strlen(own) + 1);
		used = strlen(own) + 1;
	}
	return used;
}

/* Order domains by their labels, so that their numbers do not depend on the order of nodes. */
static int cmp_path(const void *ctx, uint32_t x, uint32_t y)
{
	const struct intern_key *a = (const struct intern_key *)ctx + x;
	const struct intern_key *b = (const struct intern_key *)ctx + y;
	const int d = memcmp(a->bytes, b->bytes, a->n < b->n ? a->n : b->n);

	return d ? d : sort_i64(a->n, b->n);
}

/* Renumber interned labels in the order of cmp: old numbers in domain_of become new ones. *order =
 * old numbers by new one. */
static bool renumber(struct cycle *c, const struct intern *seen, sort_cmp_fn cmp,
		     uint32_t *domain_of, uint32_t **order)
{
	uint32_t *scratch = cycle_scratch(c, seen->n, sizeof(*scratch));

	*order = cycle_scratch(c, seen->n, sizeof(**order));
	if (c->failed)
		return false;
	for (uint32_t d = 0; d < seen->n; d++)
		(*order)[d] = d;
	sort_ix(*order, scratch, seen->n, cmp, seen->keys);
	for (uint32_t d = 0; d < seen->n; d++)
		scratch[(*order)[d]] = d;
	for (uint32_t n = 0; n < c->s->n_nodes; n++)
		if (domain_of[n] != SNAP_NONE)
			domain_of[n] = scratch[domain_of[n]];
	return true;
}

/* Number the domains of a level, and note the domain of each node. */
static void find_domains(struct cycle *c, struct level *l)
{
	struct intern seen = INTERN_INIT(c->mem);
	char path[2048];
	uint32_t *order;

	for (uint32_t n = 0; n < c->s->n_nodes; n++) {
		const size_t bytes = path_of(c, n, l->name, path, sizeof(path));

		l->domain_of[n] = bytes ? intern(&seen, path, bytes, NULL) : SNAP_NONE;
		if (bytes && l->domain_of[n] == INTERN_FAILED)
			c->failed = true;
	}
	l->n_domains = seen.n;
	if (!c->failed)
		renumber(c, &seen, cmp_path, l->domain_of, &order);
	intern_done(&seen);
}

struct topology {
	struct level **levels; /* those used so far */
	uint32_t n_levels, room_levels;
	struct tree **trees; /* likewise */
	uint32_t n_trees, room_trees;
};

/* Return the tables of this cycle, made on first use; NULL without memory. */
static struct topology *topology_of(struct cycle *c)
{
	if (!c->topology)
		c->topology = cycle_alloc(c, 1, sizeof(*c->topology));
	return c->topology;
}

const struct level *topology_level(struct cycle *c, const char *name)
{
	struct topology *all = topology_of(c);
	struct level *l;

	for (uint32_t i = 0; all && i < all->n_levels; i++)
		if (strcmp(all->levels[i]->name, name) == 0)
			return all->levels[i];
	l = cycle_alloc(c, 1, sizeof(*l));
	if (!l || !CYCLE_PUSH(c, all, levels, 1))
		return NULL;
	l->name = name;
	l->domain_of = cycle_alloc(c, c->s->n_nodes, sizeof(*l->domain_of));
	all->levels[all->n_levels - 1] = l;
	if (!l->domain_of)
		return NULL;
	find_domains(c, l);
	return c->failed ? NULL : l;
}

/* ---- trees ---- */

static bool is_site_level(const struct cycle *c, const char *name)
{
	return topology_position(c, name) < c->s->config.n_levels;
}

/* Append a level to the chain, unless it is there already. */
static void add_level(struct cycle *c, const struct level **chain, uint32_t *n, const char *name)
{
	const struct level *l = topology_level(c, name);

	for (uint32_t i = 0; i < *n; i++)
		if (chain[i] == l)
			return;
	chain[(*n)++] = l;
}

/* True if the group requests slices on that level. */
static bool has_slices(const struct snap_group *g, const char *name)
{
	for (uint32_t i = 0; i < g->n_slices; i++)
		if (strcmp(g->slices[i].level, name) == 0)
			return true;
	return false;
}

/* A level that the site does not list may be anywhere in the hierarchy; placed before the listed
 * levels it splits no domain of a level that it is wider than. */
static uint32_t make_chain(struct cycle *c, const struct snap_group *g, const char *front,
			   uint32_t first, const struct level **chain)
{
	uint32_t n = 0;

	if (front)
		add_level(c, chain, &n, front);
	for (uint32_t i = 0; i < g->n_slices; i++)
		if (!is_site_level(c, g->slices[i].level) && !is_host(g->slices[i].level))
			add_level(c, chain, &n, g->slices[i].level);
	for (uint32_t i = first; i < c->s->config.n_levels; i++) {
		const char *name = c->s->config.levels[i];

		if (!is_host(name) || has_slices(g, name))
			add_level(c, chain, &n, name);
	}
	for (uint32_t i = 0; i < g->n_slices; i++)
		if (!is_site_level(c, g->slices[i].level) && is_host(g->slices[i].level))
			add_level(c, chain, &n, g->slices[i].level);
	return n;
}

/* Compare by parent, then by the label's value. */
static int cmp_pair(const void *ctx, uint32_t x, uint32_t y)
{
	const uint32_t *a = ((const struct intern_key *)ctx)[x].bytes;
	const uint32_t *b = ((const struct intern_key *)ctx)[y].bytes;
	const int d = sort_i64(a[0], b[0]);

	return d ? d : sort_i64(a[1], b[1]);
}

/* Make the level's domains, split at the borders of those of the rung above. */
static bool make_rung(struct cycle *c, const struct level *l, const struct rung *above,
		      struct rung *out)
{
	struct intern seen = INTERN_INIT(c->mem);
	const uint32_t n_above = above ? above->n_domains : 1, n_nodes = c->s->n_nodes;
	uint32_t *order = NULL;

	out->level = l;
	out->domain_of = cycle_alloc(c, n_nodes, sizeof(*out->domain_of));
	for (uint32_t n = 0; !c->failed && n < n_nodes; n++) {
		const uint32_t pair[2] = { above ? above->domain_of[n] : 0, l->domain_of[n] };

		out->domain_of[n] = intern(&seen, pair, sizeof(pair), NULL);
		if (out->domain_of[n] == INTERN_FAILED)
			c->failed = true;
	}
	out->n_domains = seen.n;
	out->loose = cycle_alloc(c, seen.n, sizeof(*out->loose));
	out->child_first = cycle_alloc(c, (size_t)n_above + 1, sizeof(*out->child_first));
	if (!c->failed && renumber(c, &seen, cmp_pair, out->domain_of, &order)) {
		uint32_t parent = 0;

		for (uint32_t d = 0; d < seen.n; d++) {
			const uint32_t *pair = seen.keys[order[d]].bytes;

			/* Pairs are in order of the parent, so the children of each are adjacent. */
			while (parent < pair[0])
				out->child_first[++parent] = d;
			out->loose[d] = pair[1] == SNAP_NONE;
		}
		while (parent < n_above)
			out->child_first[++parent] = seen.n;
	}
	intern_done(&seen);
	return !c->failed;
}

/* List the nodes by domain of the last rung: a counting sort. */
static bool list_nodes(struct cycle *c, struct tree *t)
{
	const struct rung *last = t->n_rungs ? &t->rungs[t->n_rungs - 1] : NULL;
	const uint32_t n_domains = last ? last->n_domains : 1;
	uint32_t *next;

	t->nodes = cycle_alloc(c, c->s->n_nodes, sizeof(*t->nodes));
	t->node_first = cycle_alloc(c, (size_t)n_domains + 1, sizeof(*t->node_first));
	next = cycle_scratch(c, (size_t)n_domains + 1, sizeof(*next));
	if (c->failed)
		return false;
	for (uint32_t n = 0; n < c->s->n_nodes; n++)
		next[(last ? last->domain_of[n] : 0) + 1]++;
	for (uint32_t d = 0; d < n_domains; d++)
		next[d + 1] += next[d];
	memcpy(t->node_first, next, ((size_t)n_domains + 1) * sizeof(*next));
	for (uint32_t n = 0; n < c->s->n_nodes; n++)
		t->nodes[next[last ? last->domain_of[n] : 0]++] = n;
	return true;
}

/* True if the tree has these levels in this order. */
static bool same_chain(const struct tree *t, const struct level *const *chain, uint32_t n)
{
	uint32_t i = 0;

	while (t->n_rungs == n && i < n && t->rungs[i].level == chain[i])
		i++;
	return t->n_rungs == n && i == n;
}

const struct tree *topology_tree(struct cycle *c, const struct snap_group *g, const char *front,
				 uint32_t first)
{
	const struct level **chain =
		cycle_scratch(c, (size_t)c->s->config.n_levels + g->n_slices + 1, sizeof(*chain));
	uint32_t n = chain ? make_chain(c, g, front, first, chain) : 0;
	struct topology *all = topology_of(c);
	struct tree *t;

	if (c->failed)
		return NULL;
	for (uint32_t i = 0; i < all->n_trees; i++)
		if (same_chain(all->trees[i], chain, n))
			return all->trees[i];
	t = cycle_alloc(c, 1, sizeof(*t));
	if (!t || !CYCLE_PUSH(c, all, trees, 1))
		return NULL;
	all->trees[all->n_trees - 1] = t;
	t->n_rungs = n;
	t->rungs = cycle_alloc(c, n, sizeof(*t->rungs));
	for (uint32_t i = 0; !c->failed && i < n; i++)
		make_rung(c, chain[i], i ? &t->rungs[i - 1] : NULL, &t->rungs[i]);
	return !c->failed && list_nodes(c, t) ? t : NULL;
}
