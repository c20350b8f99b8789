/* The order of the steps of sealing, and those that are not in seal/. Declared in snapshot.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/snapshot/seal/snapshot_devices.h"
#include "gpuqd/snapshot/seal/snapshot_jobs.h"
#include "gpuqd/snapshot/seal/snapshot_lines.h"
#include "gpuqd/snapshot/seal/snapshot_past.h"
#include "gpuqd/snapshot/seal/snapshot_sort.h"
#include "gpuqd/snapshot/seal/snapshot_usage.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/snapshot/snapshot_build.h"
#include "gpuqd/util/amount.h"
#include "gpuqd/util/sort.h"

/* ---- flavors, queues ---- */

/* Order flavors by rank, then by name. */
static int cmp_flavor(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_flavor *f = ctx;
	int c = sort_i64(f[x].rank, f[y].rank);

	return c ? c : strcmp(f[x].name, f[y].name);
}

/* Sort the flavors by rank and name; map_flavor leads from handles to indexes. */
static int seal_flavors(struct seal *w)
{
	struct snapshot *s = w->s;
	uint32_t *order;
	int rc = snapshot_seal_sorted(w, s->n_flavors, cmp_flavor, s->flavors, &order,
				      &w->map_flavor);

	if (rc == 0)
		rc = snapshot_seal_permute(w, &s->flavors, s->n_flavors, sizeof(*s->flavors),
					   order);
	return rc;
}

/* Compare queues by name, to find parents. */
static int cmp_queue_name(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_queue *q = ctx;

	return strcmp(q[x].name, q[y].name);
}

/* Order queues by depth, so that parents precede their children. */
static int cmp_queue(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_queue *q = ctx;
	int c = sort_i64(q[x].depth, q[y].depth);

	if (c == 0)
		c = sort_i64(q[x].age, q[y].age);
	return c ? c : strcmp(q[x].name, q[y].name);
}

/* Find parents by name, refuse cycles, count depths. */
static int link_queues(struct seal *w)
{
	struct snapshot *s = w->s;
	uint32_t *order, *map;
	int rc = snapshot_seal_sorted(w, s->n_queues, cmp_queue_name, s->queues, &order, &map);

	if (rc < 0)
		return rc;
	for (uint32_t i = 1; i < s->n_queues; i++)
		if (strcmp(s->queues[order[i - 1]].name, s->queues[order[i]].name) == 0)
			return gpuq_fail(w->err, GPUQ_EINVAL, "two queues are named %s",
					 s->queues[order[i]].name);
	for (uint32_t q = 0; q < s->n_queues; q++) {
		/* Parents are found in the order by name. */
		const char *name = s->queues[q].parent_name;
		uint32_t lo = 0, hi = s->n_queues;

		if (!name)
			continue;
		while (lo < hi) {
			uint32_t mid = lo + (hi - lo) / 2;

			if (strcmp(s->queues[order[mid]].name, name) < 0)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (lo == s->n_queues || strcmp(s->queues[order[lo]].name, name) != 0)
			return gpuq_fail(w->err, GPUQ_EINVAL, "queue %s: no parent %s",
					 s->queues[q].name, name);
		s->queues[q].parent = order[lo];
	}
	for (uint32_t q = 0; q < s->n_queues; q++) {
		uint32_t depth = 0;

		for (uint32_t p = s->queues[q].parent; p != SNAP_NONE; p = s->queues[p].parent)
			/* A path longer than the number of queues is a cycle. */
			if (++depth > s->n_queues)
				return gpuq_fail(w->err, GPUQ_EINVAL,
						 "queue %s is its own ancestor", s->queues[q].name);
		s->queues[q].depth = depth;
	}
	return 0;
}

/* Replace `auto' by the sum of the children. */
static void resolve_quotas(struct snapshot *s)
{
	/* Parents precede children, so that backwards is from the leaves up. */
	for (uint32_t q = s->n_queues; q-- > 0;) {
		struct snap_share *own = &s->shares[q * s->n_res];
		const uint32_t p = s->queues[q].parent;

		for (uint32_t r = 0; r < s->n_res; r++) {
			/* The children's sum so far is in `shared`. A leaf's cpu and memory are not
			 * counted unless the site sets a quota. */
			if (own[r].quota == SNAP_AUTO)
				own[r].quota = r >= s->n_flavors && s->queues[q].n_children == 0 &&
							       own[r].shared == 0
						       ? GPUQ_UNLIMITED
						       : own[r].shared;
			if (p != SNAP_NONE) {
				struct snap_share *up = &s->shares[p * s->n_res + r];

				up->shared = amount_sum(up->shared, own[r].quota);
			}
		}
	}
}

/* Apply the limit over all flavors to each flavor. */
static void resolve_limits(struct snapshot *s)
{
	for (uint32_t q = 0; q < s->n_queues; q++)
		for (uint32_t f = 0; f < s->n_flavors; f++) {
			struct snap_share *share = &s->shares[(size_t)q * s->n_res + f];

			if (s->queues[q].max_gpus_milli < share->limit)
				share->limit = s->queues[q].max_gpus_milli;
		}
}

/* Sort the queues, parents before children, and turn handles into indexes. */
static int seal_queues(struct seal *w)
{
	struct snapshot *s = w->s;
	struct snap_share *shares;
	uint32_t *order;
	int rc = link_queues(w);

	/* Resources: the flavors, cpu and memory. */
	s->n_res = s->n_flavors + 2;
	if (rc == 0)
		rc = snapshot_seal_sorted(w, s->n_queues, cmp_queue, s->queues, &order,
					  &w->map_queue);
	if (rc == 0)
		rc = snapshot_seal_permute(w, &s->queues, s->n_queues, sizeof(*s->queues), order);
	if (rc == 0)
		rc = snapshot_seal_permute(w, &s->shares, s->n_queues,
					   s->n_res * sizeof(*s->shares), order);
	shares = gpuq_arena_calloc(&w->mem, s->n_res, sizeof(*shares));
	if (rc == 0 && !shares)
		rc = gpuq_no_memory(w->err);
	if (rc < 0)
		return rc;
	for (uint32_t q = 0; q < s->n_queues; q++) {
		struct snap_share *own = &s->shares[q * s->n_res];

		/* Shares were given by the handle of their flavor, and are read by its index. */
		memcpy(shares, own, s->n_flavors * sizeof(*shares));
		for (uint32_t f = 0; f < s->n_flavors; f++)
			own[w->map_flavor[f]] = shares[f];
		if (s->queues[q].parent != SNAP_NONE) {
			s->queues[q].parent = w->map_queue[s->queues[q].parent];
			s->queues[s->queues[q].parent].n_children++;
		}
	}
	resolve_quotas(s);
	resolve_limits(s);
	return 0;
}

/* ---- nodes ---- */

/* Compare nodes by name. */
static int cmp_node(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_node *n = ctx;

	return strcmp(n[x].name, n[y].name);
}

/* Sort the nodes by name; two of one name would be one for the cluster. */
static int seal_nodes(struct seal *w)
{
	struct snapshot *s = w->s;
	uint32_t *order;
	int rc = snapshot_seal_sorted(w, s->n_nodes, cmp_node, s->nodes, &order, &w->map_node);

	if (rc == 0)
		rc = snapshot_seal_permute(w, &s->nodes, s->n_nodes, sizeof(*s->nodes), order);
	for (uint32_t n = 0; rc == 0 && n < s->n_nodes; n++) {
		if (n > 0 && strcmp(s->nodes[n - 1].name, s->nodes[n].name) == 0)
			rc = gpuq_fail(w->err, GPUQ_EINVAL, "two nodes are named %s",
				       s->nodes[n].name);
		if (s->nodes[n].flavor != SNAP_NONE)
			s->nodes[n].flavor = w->map_flavor[s->nodes[n].flavor];
	}
	return rc;
}

/* Copy the names of topology levels into the snapshot. */
static int seal_config(struct seal *w)
{
	struct snap_config *c = &w->s->config;
	const char **levels = gpuq_arena_calloc(&w->s->arena, c->n_levels, sizeof(*levels));

	if (!levels)
		return gpuq_no_memory(w->err);
	for (uint32_t i = 0; i < c->n_levels; i++) {
		levels[i] = gpuq_arena_strdup(&w->s->arena, c->levels[i]);
		if (!levels[i])
			return gpuq_no_memory(w->err);
	}
	c->levels = levels;
	return 0;
}

/* Note the key of a label, once; NULL is none. */
static int add_key(struct seal *w, struct intern *keys, const char *key)
{
	if (key && intern(keys, key, strlen(key) + 1, NULL) == INTERN_FAILED)
		return gpuq_no_memory(w->err);
	return 0;
}

/* Collect the labels that requests and topology levels name. */
static int collect_keys(struct seal *w)
{
	struct snapshot *s = w->s;
	struct intern keys = INTERN_INIT(&s->arena);
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < s->config.n_levels; i++)
		rc = add_key(w, &keys, s->config.levels[i]);
	for (uint32_t i = 0; i < s->n_requests; i++) {
		for (uint32_t k = 0; rc == 0 && k < s->requests[i].n_groups; k++) {
			const struct snap_group *g = &s->requests[i].groups[k];

			rc = add_key(w, &keys, g->topology_required);
			if (rc == 0)
				rc = add_key(w, &keys, g->topology_preferred);
			for (uint32_t t = 0; rc == 0 && t < g->n_slices; t++)
				rc = add_key(w, &keys, g->slices[t].level);
			for (uint32_t t = 0; t < g->n_required + g->n_preferred; t++) {
				const struct gpuq_term *term =
					t < g->n_required ? &g->required[t]
							  : &g->preferred[t - g->n_required];

				for (size_t e = 0; rc == 0 && e < term->n; e++)
					rc = add_key(w, &keys, term->all[e].key);
			}
		}
	}
	s->label_keys = gpuq_arena_calloc(&s->arena, keys.n, sizeof(*s->label_keys));
	if (!s->label_keys)
		rc = gpuq_no_memory(w->err);
	for (uint32_t i = 0; rc == 0 && i < keys.n; i++)
		s->label_keys[i] = keys.keys[i].bytes;
	s->n_label_keys = keys.n;
	intern_done(&keys);
	return rc;
}

/* Append a string with its length first: no two different sequences of strings have the same bytes. */
static void blob_str(struct gpuq_buf *b, const char *str)
{
	const uint32_t n = str ? (uint32_t)strlen(str) : UINT32_MAX;

	gpuq_buf_add(b, &n, sizeof(n));
	if (str)
		gpuq_buf_add(b, str, n);
}

/* Add a class of nodes; its strings are copied, since those of the node are borrowed. */
static int add_class(struct seal *w, const struct snap_node *n)
{
	struct snapshot *s = w->s;
	struct snap_class *c = &s->classes[s->n_classes];

	c->pool = n->pool;
	c->flavor = n->flavor;
	c->n_taints = n->n_taints;
	c->values = gpuq_arena_calloc(&s->arena, s->n_label_keys, sizeof(*c->values));
	c->taints = gpuq_arena_calloc(&s->arena, n->n_taints, sizeof(*c->taints));
	if (!c->values || !c->taints)
		return gpuq_no_memory(w->err);
	for (uint32_t k = 0; k < s->n_label_keys; k++) {
		const char *v = gpuq_strmap_get(&n->labels, s->label_keys[k]);

		if (v) {
			c->values[k] = gpuq_arena_strdup(&s->arena, v);
			if (!c->values[k])
				return gpuq_no_memory(w->err);
		}
	}
	for (uint32_t t = 0; t < n->n_taints; t++) {
		c->taints[t].key = gpuq_arena_strdup(&s->arena, n->taints[t].key);
		c->taints[t].value =
			gpuq_arena_strdup(&s->arena, n->taints[t].value ? n->taints[t].value : "");
		c->taints[t].effect = gpuq_arena_strdup(&s->arena, n->taints[t].effect);
		if (!c->taints[t].key || !c->taints[t].value || !c->taints[t].effect)
			return gpuq_no_memory(w->err);
	}
	s->n_classes++;
	return 0;
}

/* Assign each node a class: nodes of one class are equal in all that requests can ask of labels,
 * taints, pool and flavor, so that feasibility is decided once per class. Only labels that some
 * request or topology level names distinguish classes. */
static int seal_classes(struct seal *w)
{
	struct snapshot *s = w->s;
	struct gpuq_buf blob = GPUQ_BUF_INIT;
	struct intern seen = INTERN_INIT(&w->mem);
	int rc = collect_keys(w);

	if (rc < 0)
		return rc;
	s->classes = gpuq_arena_calloc(&s->arena, s->n_nodes, sizeof(*s->classes));
	if (!s->classes)
		return gpuq_no_memory(w->err);
	for (uint32_t i = 0; rc == 0 && i < s->n_nodes; i++) {
		struct snap_node *n = &s->nodes[i];
		bool fresh = false;

		gpuq_buf_clear(&blob);
		blob_str(&blob, n->pool);
		gpuq_buf_add(&blob, &n->flavor, sizeof(n->flavor));
		for (uint32_t k = 0; k < s->n_label_keys; k++)
			blob_str(&blob, gpuq_strmap_get(&n->labels, s->label_keys[k]));
		for (uint32_t t = 0; t < n->n_taints; t++) {
			blob_str(&blob, n->taints[t].key);
			blob_str(&blob, n->taints[t].value ? n->taints[t].value : "");
			blob_str(&blob, n->taints[t].effect);
		}
		n->cls = blob.failed ? INTERN_FAILED : intern(&seen, blob.data, blob.len, &fresh);
		if (n->cls == INTERN_FAILED)
			rc = gpuq_no_memory(w->err);
		else if (fresh)
			rc = add_class(w, n);
		if (rc == 0)
			s->classes[n->cls].n_nodes++;
		/* They were borrowed from the model; from here on the class answers for the node. */
		n->labels = (struct gpuq_strmap){ NULL, NULL, 0 };
		n->taints = NULL;
	}
	intern_done(&seen);
	gpuq_buf_done(&blob);
	return rc;
}

/* ---- reservations ---- */

/* Order reservations by their start, their end and their name. */
static int cmp_reservation(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_reservation *r = ctx;
	int d = sort_i64(r[x].start_us, r[y].start_us);

	if (d == 0)
		d = sort_i64(r[x].end_us, r[y].end_us);
	return d ? d : strcmp(r[x].name, r[y].name);
}

static int seal_calendar(struct seal *w)
{
	struct snapshot *s = w->s;
	uint32_t *order, *map;
	int rc = snapshot_seal_sorted(w, s->n_reservations, cmp_reservation, s->reservations,
				      &order, &map);

	if (rc == 0)
		rc = snapshot_seal_permute(w, &s->reservations, s->n_reservations,
					   sizeof(*s->reservations), order);
	for (uint32_t i = 0; rc == 0 && i < s->n_reservations; i++) {
		struct snap_reservation *r = &s->reservations[i];
		uint32_t *nodes = (uint32_t *)r->nodes;

		if (r->end_us <= r->start_us || (r->n_nodes == 0) == (r->gpus_milli <= 0))
			return gpuq_fail(w->err, GPUQ_EINVAL,
					 "reservation %s: expected a duration above 0, and either "
					 "nodes or an amount",
					 r->name);
		for (uint32_t k = 0; k < r->n_nodes; k++)
			nodes[k] = w->map_node[nodes[k]];
		if (r->queue != SNAP_NONE)
			r->queue = w->map_queue[r->queue];
		if (r->flavor != SNAP_NONE)
			r->flavor = w->map_flavor[r->flavor];
	}
	return rc;
}

#define BORROWED_STEPS 6 /* after these nothing is borrowed any more */

/* Return the tables that are needed until the snapshot is sealed, made on first use. */
static struct seal *seal_of(struct snapshot *s)
{
	if (!s->builder->seal)
		s->builder->seal = calloc(1, sizeof(*s->builder->seal));
	return s->builder->seal;
}

int snapshot_seal_step(struct snapshot *s, bool *more, struct gpuq_err *err)
{
	/* Each step relies on those before it: jobs name queues, pods name jobs and nodes by index. */
	static int (*const steps[])(struct seal *) = {
		seal_config,
		seal_flavors,
		seal_queues,
		seal_nodes,
		snapshot_seal_devices,
		seal_classes,
		snapshot_seal_requests,
		snapshot_seal_usages,
		snapshot_seal_jobs,
		snapshot_seal_allocs,
		snapshot_seal_capacity,
		seal_calendar,
		snapshot_seal_lines,
		snapshot_seal_losses,
	};
	const uint32_t n = sizeof(steps) / sizeof(steps[0]);
	struct snap_builder *b = s->builder;
	struct seal *w;
	int rc = 0;

	*more = false;
	if (s->sealed)
		return 0;
	w = b->failed ? NULL : seal_of(s);
	if (!w)
		return gpuq_no_memory(err);
	if (b->n_sealed == 0 && !b->kept)
		snapshot_forget_keys(s);
	w->s = s;
	w->err = err;
	/* All borrowed memory is copied within the first call; the model may change before the
	 * next. */
	do
		rc = steps[b->n_sealed++](w);
	while (rc == 0 && b->n_sealed < BORROWED_STEPS);
	*more = rc == 0 && b->n_sealed < n;
	if (*more)
		return 0;
	gpuq_arena_done(&w->mem);
	s->sealed = rc == 0;
	return rc;
}

int snapshot_seal(struct snapshot *s, struct gpuq_err *err)
{
	bool more;
	int rc;

	do
		rc = snapshot_seal_step(s, &more, err);
	while (more);
	return rc;
}
