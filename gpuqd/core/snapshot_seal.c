#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/core/snapshot.h"
#include "gpuqd/core/snapshot_build.h"
#include "gpuqd/core/sort.h"

/* What sealing needs on the way. map_X[handle] is the index after sorting. */
struct seal {
	struct snapshot *s;
	struct gpuq_err *err;
	struct gpuq_arena mem;
	uint32_t *map_flavor, *map_node, *map_queue, *map_job;
};

static int no_memory(struct seal *w)
{
	return gpuq_fail(w->err, GPUQ_ENOMEM, "no memory for a snapshot");
}

/* The order of n items under cmp in *order, and where each went in *map. */
static int sorted(struct seal *w, uint32_t n, sort_cmp_fn cmp, const void *ctx, uint32_t **order,
		  uint32_t **map)
{
	uint32_t *ix = gpuq_arena_calloc(&w->mem, n, sizeof(*ix));
	uint32_t *to = gpuq_arena_calloc(&w->mem, n, sizeof(*to));

	if (!ix || !to)
		return no_memory(w);
	for (uint32_t i = 0; i < n; i++)
		ix[i] = i;
	sort_ix(ix, to, n, cmp, ctx);
	for (uint32_t i = 0; i < n; i++)
		to[ix[i]] = i;
	*order = ix;
	*map = to;
	return 0;
}

/* Bring a malloc'ed table into that order. */
static int permute(struct seal *w, void *table, uint32_t n, size_t size, const uint32_t *order)
{
	char **items = table;
	char *moved;
	uint32_t i;

	for (i = 0; i < n && order[i] == i; i++)
		;
	if (i == n)
		return 0;
	moved = malloc(n * size);
	if (!moved)
		return no_memory(w);
	for (i = 0; i < n; i++)
		memcpy(moved + i * size, *items + order[i] * size, size);
	free(*items);
	*items = moved;
	return 0;
}

/* ---- flavors, queues ---- */

static int cmp_flavor(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_flavor *f = ctx;
	int c = sort_i64(f[x].rank, f[y].rank);

	return c ? c : strcmp(f[x].name, f[y].name);
}

static int seal_flavors(struct seal *w)
{
	struct snapshot *s = w->s;
	uint32_t *order;
	int rc = sorted(w, s->n_flavors, cmp_flavor, s->flavors, &order, &w->map_flavor);

	if (rc == 0)
		rc = permute(w, &s->flavors, s->n_flavors, sizeof(*s->flavors), order);
	return rc;
}

static int cmp_queue_name(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_queue *q = ctx;

	return strcmp(q[x].name, q[y].name);
}

static int cmp_queue(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_queue *q = ctx;
	int c = sort_i64(q[x].depth, q[y].depth);

	if (c == 0)
		c = sort_i64(q[x].age, q[y].age);
	return c ? c : strcmp(q[x].name, q[y].name);
}

/* Find parents by name, refuse circles, count depths. */
static int link_queues(struct seal *w)
{
	struct snapshot *s = w->s;
	uint32_t *order, *map;
	int rc = sorted(w, s->n_queues, cmp_queue_name, s->queues, &order, &map);

	if (rc < 0)
		return rc;
	for (uint32_t i = 1; i < s->n_queues; i++)
		if (strcmp(s->queues[order[i - 1]].name, s->queues[order[i]].name) == 0)
			return gpuq_fail(w->err, GPUQ_EINVAL, "two queues are named %s",
					 s->queues[order[i]].name);
	for (uint32_t q = 0; q < s->n_queues; q++) {
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
			if (++depth > s->n_queues)
				return gpuq_fail(w->err, GPUQ_EINVAL,
						 "queue %s is its own ancestor", s->queues[q].name);
		s->queues[q].depth = depth;
	}
	return 0;
}

/* GPUQ_UNLIMITED absorbs everything. */
static int64_t sum_amounts(int64_t x, int64_t y)
{
	int64_t sum;

	return __builtin_add_overflow(x, y, &sum) ? GPUQ_UNLIMITED : sum;
}

static void resolve_quotas(struct snapshot *s)
{
	/* Parents stand before children, so that backwards is from the leaves up. */
	for (uint32_t q = s->n_queues; q-- > 0;) {
		struct snap_share *own = &s->shares[q * s->n_res];
		const uint32_t p = s->queues[q].parent;

		for (uint32_t r = 0; r < s->n_res; r++) {
			/* What children added so far stands in `shared`. A leaf's cpu and
			 * memory are not counted unless somebody says so. */
			if (own[r].quota == SNAP_AUTO)
				own[r].quota = r >= s->n_flavors && s->queues[q].n_children == 0 &&
							       own[r].shared == 0
						       ? GPUQ_UNLIMITED
						       : own[r].shared;
			if (p != SNAP_NONE) {
				struct snap_share *up = &s->shares[p * s->n_res + r];

				up->shared = sum_amounts(up->shared, own[r].quota);
			}
		}
	}
}

static int seal_queues(struct seal *w)
{
	struct snapshot *s = w->s;
	struct snap_share *shares;
	uint32_t *order;
	int rc = link_queues(w);

	s->n_res = s->n_flavors + 2;
	if (rc == 0)
		rc = sorted(w, s->n_queues, cmp_queue, s->queues, &order, &w->map_queue);
	if (rc == 0)
		rc = permute(w, &s->queues, s->n_queues, sizeof(*s->queues), order);
	if (rc == 0)
		rc = permute(w, &s->shares, s->n_queues, s->n_res * sizeof(*s->shares), order);
	shares = gpuq_arena_calloc(&w->mem, s->n_res, sizeof(*shares));
	if (rc == 0 && !shares)
		rc = no_memory(w);
	if (rc < 0)
		return rc;
	for (uint32_t q = 0; q < s->n_queues; q++) {
		struct snap_share *own = &s->shares[q * s->n_res];

		memcpy(shares, own, s->n_flavors * sizeof(*shares));
		for (uint32_t f = 0; f < s->n_flavors; f++)
			own[w->map_flavor[f]] = shares[f];
		if (s->queues[q].parent != SNAP_NONE) {
			s->queues[q].parent = w->map_queue[s->queues[q].parent];
			s->queues[s->queues[q].parent].n_children++;
		}
	}
	resolve_quotas(s);
	return 0;
}

/* ---- nodes ---- */

static int cmp_node(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_node *n = ctx;

	return strcmp(n[x].name, n[y].name);
}

static int seal_nodes(struct seal *w)
{
	struct snapshot *s = w->s;
	uint32_t *order;
	int rc = sorted(w, s->n_nodes, cmp_node, s->nodes, &order, &w->map_node);

	if (rc == 0)
		rc = permute(w, &s->nodes, s->n_nodes, sizeof(*s->nodes), order);
	for (uint32_t n = 0; rc == 0 && n < s->n_nodes; n++) {
		if (n > 0 && strcmp(s->nodes[n - 1].name, s->nodes[n].name) == 0)
			rc = gpuq_fail(w->err, GPUQ_EINVAL, "two nodes are named %s",
				       s->nodes[n].name);
		if (s->nodes[n].flavor != SNAP_NONE)
			s->nodes[n].flavor = w->map_flavor[s->nodes[n].flavor];
	}
	return rc;
}

static int seal_config(struct seal *w)
{
	struct snap_config *c = &w->s->config;
	const char **levels = gpuq_arena_calloc(&w->s->arena, c->n_levels, sizeof(*levels));

	if (!levels)
		return no_memory(w);
	for (uint32_t i = 0; i < c->n_levels; i++) {
		levels[i] = gpuq_arena_strdup(&w->s->arena, c->levels[i]);
		if (!levels[i])
			return no_memory(w);
	}
	c->levels = levels;
	return 0;
}

static int add_key(struct seal *w, struct intern *keys, const char *key)
{
	if (key && intern(keys, key, strlen(key) + 1, NULL) == INTERN_FAILED)
		return no_memory(w);
	return 0;
}

/* The labels that requests and topology levels speak of. */
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
		rc = no_memory(w);
	for (uint32_t i = 0; rc == 0 && i < keys.n; i++)
		s->label_keys[i] = keys.keys[i].bytes;
	s->n_label_keys = keys.n;
	intern_done(&keys);
	return rc;
}

static const char *label_of(const struct snap_node *n, const char *key)
{
	for (size_t i = 0; i < n->labels.n; i++)
		if (strcmp(n->labels.keys[i], key) == 0)
			return n->labels.vals[i];
	return NULL;
}

static void blob_str(struct gpuq_buf *b, const char *str)
{
	const uint32_t n = str ? (uint32_t)strlen(str) : UINT32_MAX;

	gpuq_buf_add(b, &n, sizeof(n));
	if (str)
		gpuq_buf_add(b, str, n);
}

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
		return no_memory(w);
	for (uint32_t k = 0; k < s->n_label_keys; k++) {
		const char *v = label_of(n, s->label_keys[k]);

		if (v) {
			c->values[k] = gpuq_arena_strdup(&s->arena, v);
			if (!c->values[k])
				return no_memory(w);
		}
	}
	for (uint32_t t = 0; t < n->n_taints; t++) {
		c->taints[t].key = gpuq_arena_strdup(&s->arena, n->taints[t].key);
		c->taints[t].value =
			gpuq_arena_strdup(&s->arena, n->taints[t].value ? n->taints[t].value : "");
		c->taints[t].effect = gpuq_arena_strdup(&s->arena, n->taints[t].effect);
		if (!c->taints[t].key || !c->taints[t].value || !c->taints[t].effect)
			return no_memory(w);
	}
	s->n_classes++;
	return 0;
}

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
		return no_memory(w);
	for (uint32_t i = 0; rc == 0 && i < s->n_nodes; i++) {
		struct snap_node *n = &s->nodes[i];
		bool fresh = false;

		gpuq_buf_clear(&blob);
		blob_str(&blob, n->pool);
		gpuq_buf_add(&blob, &n->flavor, sizeof(n->flavor));
		for (uint32_t k = 0; k < s->n_label_keys; k++)
			blob_str(&blob, label_of(n, s->label_keys[k]));
		for (uint32_t t = 0; t < n->n_taints; t++) {
			blob_str(&blob, n->taints[t].key);
			blob_str(&blob, n->taints[t].value ? n->taints[t].value : "");
			blob_str(&blob, n->taints[t].effect);
		}
		n->cls = blob.failed ? INTERN_FAILED : intern(&seen, blob.data, blob.len, &fresh);
		if (n->cls == INTERN_FAILED)
			rc = no_memory(w);
		else if (fresh)
			rc = add_class(w, n);
		if (rc == 0)
			s->classes[n->cls].n_nodes++;
		n->labels = (struct gpuq_strmap){ NULL, NULL, 0 };
		n->taints = NULL;
	}
	intern_done(&seen);
	gpuq_buf_done(&blob);
	return rc;
}

/* ---- requests, jobs, what they hold ---- */

static int seal_requests(struct seal *w)
{
	struct snapshot *s = w->s;

	for (uint32_t i = 0; i < s->n_requests; i++) {
		struct snap_request *r = &s->requests[i];
		uint32_t room = r->n_flavors ? r->n_flavors : s->n_flavors;
		uint32_t *ix = gpuq_arena_calloc(&s->arena, room, sizeof(*ix));

		if (!ix)
			return no_memory(w);
		r->flavor_ix = ix;
		for (uint32_t k = 0; k < room; k++) {
			uint32_t f = r->n_flavors ? snapshot_find_flavor(s, r->flavors[k]) : k;

			if (f != SNAP_NONE)
				ix[r->n_flavor_ix++] = f;
		}
		for (uint32_t k = 0; k < r->n_groups; k++) {
			const struct snap_group *g = &r->groups[k];

			r->n_pods += g->pods_min;
			r->gpus_milli += g->pods_min * g->gpus_milli;
			r->cpu_milli += g->pods_min * g->cpu_milli;
			r->memory_bytes += g->pods_min * g->memory_bytes;
		}
	}
	return 0;
}

static int cmp_job(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_job *a = (const struct snap_job *)ctx + x;
	const struct snap_job *b = (const struct snap_job *)ctx + y;
	int c = sort_i64(a->key.id, b->key.id);

	if (c == 0)
		c = sort_i64(a->key.index, b->key.index);
	if (c == 0 && a->n_ranges && b->n_ranges)
		c = sort_i64(a->ranges[0].first, b->ranges[0].first);
	return c;
}

static int check_job(struct seal *w, uint32_t i)
{
	const struct snapshot *s = w->s;
	const struct snap_job *j = &s->jobs[i];
	char name[32];

	if (j->queue >= s->n_queues || j->request >= s->n_requests || j->user >= s->n_users)
		return gpuq_fail(w->err, GPUQ_EINVAL, "job %u has no queue, request or user",
				 j->key.id);
	if (i > 0 && cmp_job(s->jobs, i - 1, i) == 0) {
		snprintf(name, sizeof(name), j->key.index < 0 ? "%u" : "%u_%d", j->key.id,
			 j->key.index);
		return gpuq_fail(w->err, GPUQ_EINVAL, "two jobs are numbered %s", name);
	}
	return 0;
}

static int seal_jobs(struct seal *w)
{
	struct snapshot *s = w->s;
	uint32_t *order;
	int rc = sorted(w, s->n_jobs, cmp_job, s->jobs, &order, &w->map_job);

	if (rc == 0)
		rc = permute(w, &s->jobs, s->n_jobs, sizeof(*s->jobs), order);
	for (uint32_t i = 0; rc == 0 && i < s->n_jobs; i++) {
		struct snap_job *j = &s->jobs[i];
		uint32_t *exclude = (uint32_t *)j->exclude;

		rc = check_job(w, i);
		if (rc < 0)
			return rc;
		j->queue = w->map_queue[j->queue];
		for (uint32_t k = 0; k < j->n_exclude; k++) {
			uint32_t node = w->map_node[exclude[k]], at = k;

			for (; at > 0 && exclude[at - 1] > node; at--)
				exclude[at] = exclude[at - 1];
			exclude[at] = node;
		}
		j->n_waiting = j->state == SNAP_PENDING && j->n_ranges == 0;
		for (uint32_t k = 0; j->state == SNAP_PENDING && k < j->n_ranges; k++)
			j->n_waiting += (uint32_t)((j->ranges[k].last - j->ranges[k].first) /
						   j->ranges[k].step) +
					1;
		for (uint32_t k = 0; k < s->requests[j->request].n_licenses; k++) {
			const struct snap_license_need *need = &s->requests[j->request].licenses[k];

			if (j->state != SNAP_PENDING)
				s->licenses[need->license].used += need->count;
		}
	}
	return rc;
}

static int cmp_alloc(const void *ctx, uint32_t x, uint32_t y)
{
	const struct snap_alloc *a = ctx;
	int c = sort_i64(a[x].job, a[y].job);

	return c ? c : sort_i64(a[x].index, a[y].index);
}

/* Whole devices that are taken, though nobody knows which ones: the highest. */
static void take_some(struct snapshot *s, const struct snap_node *n, int64_t count)
{
	for (uint32_t d = n->n_devices; d-- > 0 && count > 0;) {
		struct snap_device *dev = &s->devices[n->device_first + d];

		if (dev->free_milli == SNAP_MILLI) {
			dev->free_milli = 0;
			count--;
		}
	}
}

static void take_named(struct snapshot *s, const struct snap_node *n, const struct snap_alloc *a)
{
	for (uint32_t k = 0; k < a->n_devices; k++) {
		struct snap_device *dev;

		/* A device that went away with something on it holds nothing any more. */
		if (a->devices[k] >= n->n_devices)
			continue;
		dev = &s->devices[n->device_first + a->devices[k]];
		if (dev->healthy)
			dev->free_milli = (int16_t)(dev->free_milli - a->milli);
		dev->shares++;
		dev->free_memory_bytes -= a->device_memory_bytes;
	}
}

static const struct snap_group *group_of(const struct snapshot *s, const struct snap_alloc *a)
{
	const struct snap_request *r = &s->requests[s->jobs[a->job].request];

	return &r->groups[a->group < r->n_groups ? a->group : 0];
}

static void derive_free(struct snapshot *s)
{
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		struct snap_node *n = &s->nodes[i];

		n->cpu_free = n->cpu_milli;
		n->memory_free = n->memory_bytes;
		n->pods_free = n->pods;
		if (n->cpu_milli != GPUQ_UNLIMITED)
			n->cpu_free -= n->foreign_cpu_milli;
		if (n->memory_bytes != GPUQ_UNLIMITED)
			n->memory_free -= n->foreign_memory_bytes;
		if (n->pods != GPUQ_UNLIMITED)
			n->pods_free -= n->foreign_pods;
		for (uint32_t d = 0; d < n->n_devices; d++) {
			struct snap_device *dev = &s->devices[n->device_first + d];

			dev->free_milli =
				dev->healthy ? (int16_t)(SNAP_MILLI - dev->foreign_milli) : 0;
			dev->free_memory_bytes = dev->memory_bytes;
			dev->shares = 0;
		}
	}
	for (uint32_t i = 0; i < s->n_allocs; i++) {
		const struct snap_alloc *a = &s->allocs[i];
		const struct snap_group *g = group_of(s, a);
		struct snap_node *n = &s->nodes[a->node];

		if (n->cpu_milli != GPUQ_UNLIMITED)
			n->cpu_free -= g->cpu_milli;
		if (n->memory_bytes != GPUQ_UNLIMITED)
			n->memory_free -= g->memory_bytes;
		if (n->pods != GPUQ_UNLIMITED)
			n->pods_free--;
		take_named(s, n, a);
	}
	for (uint32_t i = 0; i < s->n_allocs; i++) {
		const struct snap_alloc *a = &s->allocs[i];

		if (a->n_devices == 0)
			take_some(s, &s->nodes[a->node], group_of(s, a)->gpus_milli / SNAP_MILLI);
	}
	for (uint32_t i = 0; i < s->n_nodes; i++)
		take_some(s, &s->nodes[i], s->nodes[i].foreign_gpus);
}

static int seal_allocs(struct seal *w)
{
	struct snapshot *s = w->s;
	uint32_t *order, *map;
	int rc;

	for (uint32_t i = 0; i < s->n_allocs; i++) {
		struct snap_alloc *a = &s->allocs[i];

		if (a->job >= s->n_jobs || a->node >= s->n_nodes)
			return gpuq_fail(w->err, GPUQ_EINVAL, "a pod of no job or on no node");
		a->job = w->map_job[a->job];
		a->node = w->map_node[a->node];
	}
	rc = sorted(w, s->n_allocs, cmp_alloc, s->allocs, &order, &map);
	if (rc == 0)
		rc = permute(w, &s->allocs, s->n_allocs, sizeof(*s->allocs), order);
	if (rc < 0)
		return rc;
	for (uint32_t i = s->n_allocs; i-- > 0;) {
		s->jobs[s->allocs[i].job].alloc_first = i;
		s->jobs[s->allocs[i].job].n_allocs++;
	}
	derive_free(s);
	return 0;
}

static int seal_capacity(struct seal *w)
{
	struct snapshot *s = w->s;

	s->capacity = gpuq_arena_calloc(&s->arena, s->n_res, sizeof(*s->capacity));
	if (!s->capacity)
		return no_memory(w);
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		const struct snap_node *n = &s->nodes[i];
		int64_t milli = -n->foreign_gpus * SNAP_MILLI;

		if (n->state != SNAP_READY)
			continue;
		for (uint32_t d = 0; d < n->n_devices; d++) {
			const struct snap_device *dev = &s->devices[n->device_first + d];

			if (dev->healthy)
				milli += SNAP_MILLI - dev->foreign_milli;
		}
		if (n->flavor != SNAP_NONE && milli > 0)
			s->capacity[n->flavor] += milli;
		s->capacity[snap_cpu(s)] = sum_amounts(s->capacity[snap_cpu(s)], n->cpu_milli);
		s->capacity[snap_memory(s)] =
			sum_amounts(s->capacity[snap_memory(s)], n->memory_bytes);
	}
	for (uint32_t f = 0; f < s->n_flavors; f++)
		s->flavors[f].capacity_milli = s->capacity[f];
	return 0;
}

int snapshot_seal(struct snapshot *s, struct gpuq_err *err)
{
	static int (*const steps[])(struct seal *) = {
		seal_config,   seal_flavors, seal_queues, seal_nodes,    seal_classes,
		seal_requests, seal_jobs,    seal_allocs, seal_capacity,
	};
	struct seal w = { .s = s, .err = err, .mem = GPUQ_ARENA_INIT(0) };
	int rc = 0;

	if (s->sealed)
		return 0;
	if (s->builder->failed)
		return no_memory(&w);
	for (size_t i = 0; rc == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
		rc = steps[i](&w);
	gpuq_arena_done(&w.mem);
	s->sealed = rc == 0;
	return rc;
}
