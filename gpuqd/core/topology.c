#include "gpuqd/core/pack.h"

#include <string.h>

#include "gpuqd/core/intern.h"
#include "gpuqd/core/sort.h"

/* Domains: racks, blocks, zones. A gang that must share one gets the tightest that holds
 * it; one that should share one gets the narrowest level at which it can, and below that
 * the fewest domains, level by level: the roomiest first until the rest fits in one, and
 * for that the tightest. As with nodes, alike pods make greedy choices complete. */

#define LEVELS_MAX 16
#define DOMAINS_TRIED 64

static const char *const host_names[] = { "host", "node", "hostname", "kubernetes.io/hostname" };

static bool is_host(const char *name)
{
	for (size_t i = 0; i < sizeof(host_names) / sizeof(host_names[0]); i++)
		if (strcmp(host_names[i], name) == 0)
			return true;
	return false;
}

/* Position among the site's levels; n_levels = none of them. */
static uint32_t position(const struct cycle *c, const char *name)
{
	uint32_t i = 0;

	while (i < c->s->config.n_levels && strcmp(c->s->config.levels[i], name) != 0)
		i++;
	return i;
}

static const char *label(const struct cycle *c, uint32_t node, const char *key)
{
	for (uint32_t k = 0; k < c->s->n_label_keys; k++)
		if (strcmp(c->s->label_keys[k], key) == 0)
			return c->s->classes[c->s->nodes[node].cls].values[k];
	return NULL;
}

/* The node's labels from the widest level to this one, each with its NUL: two racks r1
 * in different blocks are two domains. Returns its bytes; 0 = it has no such label. */
static size_t path_of(const struct cycle *c, uint32_t node, const char *name, char *out,
		      size_t room)
{
	const uint32_t at = position(c, name), n = c->s->config.n_levels;
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

static int cmp_path(const void *ctx, uint32_t x, uint32_t y)
{
	const struct intern_key *a = (const struct intern_key *)ctx + x;
	const struct intern_key *b = (const struct intern_key *)ctx + y;
	const int d = memcmp(a->bytes, b->bytes, a->n < b->n ? a->n : b->n);

	return d ? d : sort_i64(a->n, b->n);
}

static void find_domains(struct cycle *c, struct level *l)
{
	struct intern seen = INTERN_INIT(c->mem);
	uint32_t *order, *scratch;
	char path[2048];

	for (uint32_t n = 0; n < c->s->n_nodes; n++) {
		const size_t bytes = path_of(c, n, l->name, path, sizeof(path));

		l->domain_of[n] = bytes ? intern(&seen, path, bytes, NULL) : SNAP_NONE;
	}
	l->n_domains = seen.n;
	order = cycle_scratch(c, seen.n, sizeof(*order));
	scratch = cycle_scratch(c, seen.n, sizeof(*scratch));
	if (!c->failed) {
		for (uint32_t d = 0; d < seen.n; d++)
			order[d] = d;
		sort_ix(order, scratch, seen.n, cmp_path, seen.keys);
		for (uint32_t d = 0; d < seen.n; d++)
			scratch[order[d]] = d;
		for (uint32_t n = 0; n < c->s->n_nodes; n++)
			if (l->domain_of[n] != SNAP_NONE)
				l->domain_of[n] = scratch[l->domain_of[n]];
	}
	intern_done(&seen);
}

const struct level *topology_level(struct cycle *c, const char *name)
{
	struct level *l;

	for (uint32_t i = 0; i < c->n_levels; i++)
		if (strcmp(c->levels[i]->name, name) == 0)
			return c->levels[i];
	l = cycle_alloc(c, 1, sizeof(*l));
	if (!l || !CYCLE_PUSH(c, levels, 1))
		return NULL;
	l->name = name;
	l->domain_of = cycle_alloc(c, c->s->n_nodes, sizeof(*l->domain_of));
	c->levels[c->n_levels - 1] = l;
	if (!l->domain_of)
		return NULL;
	/* A site may give its nodes' own level a label; else the name speaks for itself. */
	if (is_host(name) && position(c, name) == c->s->config.n_levels) {
		l->n_domains = c->s->n_nodes;
		for (uint32_t n = 0; n < c->s->n_nodes; n++)
			l->domain_of[n] = n;
	} else {
		find_domains(c, l);
	}
	return c->failed ? NULL : l;
}

/* ---- what domains hold ---- */

struct domain {
	uint64_t room; /* pods that fit */
	uint64_t free; /* whole devices */
};

static struct domain *measure(struct cycle *c, const struct level *l, const struct batch *b,
			      const struct masks *m)
{
	struct domain *d = cycle_scratch(c, l->n_domains, sizeof(*d));

	for (uint32_t w = 0; d && w < c->n_words; w++) {
		uint64_t word = masks_of(m, c->usable[w], w);

		while (word) {
			const uint32_t node = bits_pop(&word, w * 64), at = l->domain_of[node];

			c->steps++;
			if (at == SNAP_NONE)
				continue;
			d[at].room += nodes_room(c, node, &b->one, b->pods);
			d[at].free += c->whole[node];
		}
	}
	return d;
}

/* Least room first, then least free, then the lower name. */
static int cmp_tight(const void *ctx, uint32_t x, uint32_t y)
{
	const struct domain *a = (const struct domain *)ctx + x;
	const struct domain *b = (const struct domain *)ctx + y;

	if (a->room != b->room)
		return a->room < b->room ? -1 : 1;
	if (a->free != b->free)
		return a->free < b->free ? -1 : 1;
	return sort_i64(x, y);
}

/* The tightest domain with room for all; SNAP_NONE. */
static uint32_t tightest(const struct level *l, const struct domain *d, uint64_t pods)
{
	uint32_t best = SNAP_NONE;

	for (uint32_t i = 0; i < l->n_domains; i++)
		if (d[i].room >= pods && (best == SNAP_NONE || cmp_tight(d, i, best) < 0))
			best = i;
	return best;
}

static uint32_t roomiest(const struct level *l, const struct domain *d)
{
	uint32_t best = SNAP_NONE;

	for (uint32_t i = 0; i < l->n_domains; i++)
		if (d[i].room > 0 && (best == SNAP_NONE || d[i].room > d[best].room ||
				      (d[i].room == d[best].room && d[i].free < d[best].free)))
			best = i;
	return best;
}

static void nodes_of(const struct cycle *c, const struct level *l, uint32_t domain,
		     const uint64_t *within, uint64_t *out)
{
	memset(out, 0, c->n_words * sizeof(*out));
	for (uint32_t n = 0; n < c->s->n_nodes; n++)
		if (l->domain_of[n] == domain && (!within || bits_has(within, n)))
			bits_add(out, n);
}

bool topology_nth(struct cycle *c, const struct level *l, const struct batch *b,
		  const struct masks *m, uint32_t n, uint64_t *out)
{
	struct domain *d = measure(c, l, b, m);

	if (!d || n >= DOMAINS_TRIED)
		return false;
	for (uint32_t i = 0;; i++) {
		const uint32_t best = tightest(l, d, b->pods);

		if (best == SNAP_NONE)
			return false;
		if (i == n) {
			nodes_of(c, l, best, m->domain, out);
			return true;
		}
		d[best].room = 0;
	}
}

/* ---- placing ---- */

/* Levels to go down through, from wide to narrow. */
struct ladder {
	const struct level *rungs[LEVELS_MAX];
	uint32_t n;
};

static bool descend(struct cycle *c, const struct ladder *ladder, uint32_t rung,
		    const struct batch *b, const struct masks *m);

static bool take_domain(struct cycle *c, const struct ladder *ladder, uint32_t rung,
			uint32_t domain, const struct batch *b, const struct masks *m)
{
	struct masks inside = *m;
	uint64_t *set = cycle_scratch(c, c->n_words, sizeof(*set));

	if (!set)
		return false;
	nodes_of(c, ladder->rungs[rung], domain, m->domain, set);
	inside.domain = set;
	return descend(c, ladder, rung + 1, b, &inside);
}

/* As few domains of this rung as can be, and inside each the same on the next. */
static bool descend(struct cycle *c, const struct ladder *ladder, uint32_t rung,
		    const struct batch *b, const struct masks *m)
{
	struct batch rest = *b;
	struct domain *d;

	if (rung == ladder->n) {
		struct masks last = *m;

		return pack_pods(c, b, &last);
	}
	d = measure(c, ladder->rungs[rung], b, m);
	while (d && rest.pods > 0) {
		struct batch part = rest;
		uint32_t at = tightest(ladder->rungs[rung], d, rest.pods);

		if (at == SNAP_NONE)
			at = roomiest(ladder->rungs[rung], d);
		if (at == SNAP_NONE) {
			/* Nodes that are in no domain of this rung are the last resort. */
			return descend(c, ladder, ladder->n, &rest, m);
		}
		if (d[at].room < part.pods)
			part.pods = (uint32_t)d[at].room;
		if (!take_domain(c, ladder, rung, at, &part, m))
			return false;
		d[at].room = 0;
		rest.pods -= part.pods;
		rest.index += part.pods;
	}
	return d != NULL;
}

/* The site's levels from `first` on; a level of its own stands alone. */
static bool make_ladder(struct cycle *c, uint32_t first, struct ladder *out)
{
	out->n = 0;
	for (uint32_t i = first; i < c->s->config.n_levels && out->n < LEVELS_MAX; i++) {
		out->rungs[out->n] = topology_level(c, c->s->config.levels[i]);
		if (!out->rungs[out->n++])
			return false;
	}
	return true;
}

static void undo_to(struct cycle *c, const struct batch *b, uint32_t n_places)
{
	while (c->n_places > n_places)
		nodes_undo(c, &b->one);
}

/* All in one domain of that level, each of them tried from the tightest on. */
static bool pack_in_one(struct cycle *c, const char *name, const struct batch *b,
			const struct masks *m,
			bool (*inside)(struct cycle *, const struct snap_group *,
				       const struct batch *, const struct masks *, uint32_t),
			const struct snap_group *g)
{
	const struct level *l = topology_level(c, name);
	const uint32_t before = c->n_places, at = position(c, name);
	uint64_t *set = cycle_scratch(c, c->n_words, sizeof(*set));

	for (uint32_t n = 0; l && set && topology_nth(c, l, b, m, n, set); n++) {
		struct masks in = *m;

		in.domain = set;
		if (inside(c, g, b, &in, at + 1))
			return true;
		undo_to(c, b, before);
	}
	return false;
}

static bool go_down(struct cycle *c, const struct snap_group *g, const struct batch *b,
		    const struct masks *m, uint32_t first)
{
	struct ladder ladder;

	(void)g;
	return make_ladder(c, first, &ladder) && descend(c, &ladder, 0, b, m);
}

/* The preferred level, then each wider one that is still inside what is required, then
 * down from there without a single domain. first: the widest level to go through. */
static bool pack_preferred(struct cycle *c, const struct snap_group *g, const struct batch *b,
			   const struct masks *m, uint32_t first)
{
	const char *name = g->topology_preferred;
	const uint32_t n = c->s->config.n_levels, before = c->n_places;
	uint32_t at;

	if (!name)
		return go_down(c, g, b, m, first);
	at = position(c, name);
	if (at == n && pack_in_one(c, name, b, m, go_down, g))
		return true;
	for (uint32_t i = at < n ? at + 1 : n; i-- > first;) {
		if (pack_in_one(c, c->s->config.levels[i], b, m, go_down, g))
			return true;
		undo_to(c, b, before);
	}
	return go_down(c, g, b, m, first);
}

bool topology_pack(struct cycle *c, const struct snap_group *g, const struct batch *b,
		   struct masks *m)
{
	/* When the whole job stands in one domain already, that one is required. */
	if (g->topology_required && !m->domain)
		return pack_in_one(c, g->topology_required, b, m, pack_preferred, g);
	if (!g->topology_required)
		return pack_preferred(c, g, b, m, 0);
	return pack_preferred(c, g, b, m, position(c, g->topology_required) + 1);
}
