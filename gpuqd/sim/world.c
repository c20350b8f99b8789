#include "gpuqd/sim/world_int.h"
#include "gpuqd/sim/world_pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t world_us(const struct world *w, int64_t milli_units)
{
	return scenario_us(w->c->config.unit, milli_units);
}

int64_t world_at(const struct world *w, int64_t milli_units)
{
	return WORLD_BASE_US + world_us(w, milli_units);
}

int64_t world_at_or(const struct world *w, int64_t t, int64_t absent)
{
	return t == SC_ABSENT ? absent : world_at(w, t);
}

int64_t world_time_or(const struct world *w, int64_t t, int64_t absent)
{
	return t == SC_ABSENT ? absent : world_us(w, t);
}

void *world_append(struct world *w, void *table, uint32_t *n, uint32_t *room, size_t size,
		   struct gpuq_err *err)
{
	void **items = table;

	if (*n == *room) {
		const uint32_t bigger = *room ? *room * 2 : 64;
		void *p = gpuq_arena_calloc(&w->arena, bigger, size);

		if (!p) {
			gpuq_no_memory(err);
			return NULL;
		}
		if (*n)
			memcpy(p, *items, *n * size);
		*items = p;
		*room = bigger;
	}
	return (char *)*items + (*n)++ * size;
}

/* ---- nodes, queues, flavors, licenses ---- */

static int by_name(const void *x, const void *y)
{
	return strcmp(((const struct sim_node *)x)->name, ((const struct sim_node *)y)->name);
}

static int make_nodes(struct world *w, struct gpuq_err *err)
{
	const struct sc_node *specs = w->c->nodes.items;
	const struct sc_pool *pools = w->c->pools.items;
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < w->c->nodes.n; i++)
		n += specs[i].count == SC_ABSENT ? 1 : (size_t)specs[i].count / 1000;
	for (size_t i = 0; i < w->c->pools.n; i++)
		n += (size_t)pools[i].max / 1000;
	w->nodes = gpuq_arena_calloc(&w->arena, n, sizeof(*w->nodes));
	if (!w->nodes)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < w->c->nodes.n; i++) {
		const int64_t count = specs[i].count == SC_ABSENT ? 1 : specs[i].count / 1000;

		for (int64_t k = 0; k < count; k++) {
			struct sim_node *node = &w->nodes[w->n_nodes++];

			node->spec = &specs[i];
			node->pool = SNAP_NONE;
			node->state = specs[i].state;
			node->name = specs[i].count == SC_ABSENT
					     ? specs[i].name
					     : gpuq_arena_printf(&w->arena, "%s-%lld",
								 specs[i].name, (long long)k);
			if (!node->name)
				return gpuq_no_memory(err);
		}
	}
	rc = world_pools_make(w, err);
	if (rc < 0)
		return rc;
	/* In the order of a snapshot, so that indexes are the same there. */
	qsort(w->nodes, w->n_nodes, sizeof(*w->nodes), by_name);
	for (uint32_t i = 1; i < w->n_nodes; i++) {
		const struct sc_node *x = w->nodes[i - 1].spec, *y = w->nodes[i].spec;

		if (strcmp(w->nodes[i - 1].name, w->nodes[i].name) != 0)
			continue;
		gpuq_fail_field(err, GPUQ_EINVAL, "name", "two nodes are named %s",
				w->nodes[i].name);
		if (w->nodes[i].pool != SNAP_NONE || w->nodes[i - 1].pool != SNAP_NONE)
			return scenario_within(err, "pools",
					       w->nodes[i].pool != SNAP_NONE
						       ? w->nodes[i].pool
						       : w->nodes[i - 1].pool);
		return scenario_within(err, "nodes", (size_t)((x > y ? x : y) - specs));
	}
	return 0;
}

uint32_t world_node(const struct world *w, const char *name)
{
	const struct sim_node key = { .name = name };
	const struct sim_node *n = bsearch(&key, w->nodes, w->n_nodes, sizeof(key), by_name);

	return n ? (uint32_t)(n - w->nodes) : SNAP_NONE;
}

struct sim_job *world_keyed(struct world *w, struct snap_key key)
{
	const struct sim_template *t = &w->templates[key.id - 1];

	return &w->jobs[t->first_job +
			(key.index < 0 ? 0 : (uint32_t)((key.index - t->first) / t->step))];
}

const char *world_key_name(const struct world *w, struct snap_key key)
{
	const struct sim_template *t =
		key.id - 1 < w->n_templates ? &w->templates[key.id - 1] : NULL;
	const int64_t at = t && key.index >= 0 ? (key.index - t->first) / t->step : 0;

	if (!t || at < 0 || at >= t->n_jobs)
		return NULL;
	return key.index < 0 ? t->spec->name : w->jobs[t->first_job + (uint32_t)at].name;
}

bool world_knows(const char *const *list, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

/* Make the flavors: as the case lists them, then those that only nodes name, then the default. */
static int make_flavors(struct world *w, struct gpuq_err *err)
{
	const struct sc_node *nodes = w->c->nodes.items;
	const struct sc_pool *pools = w->c->pools.items;
	const struct gpuq_strlist *listed = &w->c->config.flavors;

	w->flavors = gpuq_arena_calloc(&w->arena, listed->n + w->c->nodes.n + w->c->pools.n + 1,
				       sizeof(char *));
	if (!w->flavors)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < listed->n; i++)
		if (!world_knows(w->flavors, w->n_flavors, listed->items[i]))
			w->flavors[w->n_flavors++] = listed->items[i];
	for (size_t i = 0; i < w->c->nodes.n; i++) {
		const char *name = nodes[i].flavor ? nodes[i].flavor : "default";

		if ((nodes[i].gpus > 0 || nodes[i].mig.n) &&
		    !world_knows(w->flavors, w->n_flavors, name))
			w->flavors[w->n_flavors++] = name;
	}
	for (size_t i = 0; i < w->c->pools.n; i++) {
		const char *name = pools[i].flavor ? pools[i].flavor : "default";

		if (!pools[i].flavor && pools[i].max == 0)
			continue;
		if (!world_knows(w->flavors, w->n_flavors, name))
			w->flavors[w->n_flavors++] = name;
	}
	if (w->n_flavors == 0)
		w->flavors[w->n_flavors++] = "default";
	return 0;
}

static uint32_t parent_of(const struct world *w, uint32_t queue)
{
	const char *parent = w->queues[queue].parent;
	uint32_t q = 0;

	while (parent && q < w->n_queues && strcmp(w->queues[q].name, parent) != 0)
		q++;
	return parent ? q : w->n_queues;
}

/* Check that the chain of parents ends at the root. */
static int check_parent(const struct world *w, uint32_t queue, struct gpuq_err *err)
{
	const char *parent = w->queues[queue].parent;
	uint32_t q = parent_of(w, queue), depth = 0;

	if (q == w->n_queues && parent && strcmp(parent, "root") != 0)
		return gpuq_fail_field(err, GPUQ_EINVAL, "parent", "queue %s: no parent %s",
				       w->queues[queue].name, parent);
	for (; q < w->n_queues; q = parent_of(w, q))
		if (q == queue || ++depth > w->n_queues)
			return gpuq_fail_field(err, GPUQ_EINVAL, "parent",
					       "queue %s is its own ancestor", w->queues[q].name);
	return 0;
}

static int make_queues(struct world *w, struct gpuq_err *err)
{
	w->queues = w->c->queues.items;
	w->n_queues = (uint32_t)w->c->queues.n;
	if (!w->n_queues) {
		struct sc_queue *only = gpuq_arena_calloc(&w->arena, 1, sizeof(*only));

		if (!only)
			return gpuq_no_memory(err);
		scenario_only_queue(only);
		w->queues = only;
		w->n_queues = 1;
	}
	w->shares = gpuq_arena_calloc(&w->arena, w->n_queues, sizeof(*w->shares));
	if (!w->shares)
		return gpuq_no_memory(err);
	for (uint32_t q = 0; q < w->n_queues; q++)
		w->shares[q].name = w->queues[q].name;
	for (uint32_t q = 0; q < w->n_queues; q++) {
		if (check_parent(w, q, err) < 0)
			return scenario_within(err, "queues", q);
	}
	return 0;
}

static int make_licenses(struct world *w, struct gpuq_err *err)
{
	const struct gpuq_strmap *in = &w->c->config.licences;

	w->licenses = in->keys;
	w->n_licenses = (uint32_t)in->n;
	w->license_counts = gpuq_arena_calloc(&w->arena, in->n, sizeof(*w->license_counts));
	if (!w->license_counts)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < in->n; i++) {
		char *end;

		w->license_counts[i] = strtoll(in->vals[i], &end, 10);
		if (end == in->vals[i] || *end || w->license_counts[i] < 0)
			return gpuq_fail_field(err, GPUQ_EINVAL, "config.licences",
					       "config.licences.%s: expected a count", in->keys[i]);
	}
	return 0;
}

int world_make(const struct sc_case *c, struct world *w, struct gpuq_err *err)
{
	static const int64_t seconds[] = { 1, 60, 3600, 86400 };
	static int (*const steps[])(struct world *, struct gpuq_err *) = {
		make_nodes,      make_flavors,         make_queues,
		make_licenses,   world_check_calendar, world_make_model,
		world_make_jobs, world_make_past,      world_read,
	};
	int rc = 0;

	*w = (struct world){ .c = c, .unit_us = seconds[c->config.unit] * GPUQ_US_PER_S };
	w->now_us = world_at(w, c->config.now);
	for (size_t i = 0; rc == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
		rc = steps[i](w, err);
	return rc;
}

void world_done(struct world *w)
{
	model_free(w->m);
	gpuq_arena_done(&w->cycle);
	gpuq_arena_done(&w->read);
	gpuq_arena_done(&w->arena);
}

const struct sc_queue *world_queue(const struct world *w, const char *name)
{
	for (uint32_t q = 0; q < w->n_queues; q++)
		if (strcmp(w->queues[q].name, name) == 0)
			return &w->queues[q];
	return NULL;
}

struct sim_job *world_job(struct world *w, const char *name)
{
	for (uint32_t i = 0; i < w->n_jobs; i++)
		if (strcmp(w->jobs[i].name, name) == 0)
			return &w->jobs[i];
	return NULL;
}

const char *const world_fates[N_SIM_FATES] = {
	[SIM_FATE_STARTED] = "started",     [SIM_FATE_RUNNING] = "running",
	[SIM_FATE_PREEMPTED] = "preempted", [SIM_FATE_PENDING] = "pending",
	[SIM_FATE_SHRUNK] = "shrunk",       [SIM_FATE_GROWN] = "grown",
	[SIM_FATE_ENDED] = "ended",
};

enum sim_fate world_fate(const struct sim_job *j)
{
	const bool placed = j->state == SIM_RUNNING || (j->state == SIM_PENDING && j->n_promises);

	if (j->left)
		return SIM_FATE_PREEMPTED;
	if (j->state == SIM_ENDED)
		return SIM_FATE_ENDED;
	if (!placed)
		return j->was == SIM_RUNNING ? SIM_FATE_PREEMPTED : SIM_FATE_PENDING;
	if (j->was != SIM_RUNNING)
		return SIM_FATE_STARTED;
	if (j->state == SIM_PENDING || j->moving || j->n_tasks == j->was_tasks)
		return SIM_FATE_RUNNING;
	return j->n_tasks < j->was_tasks ? SIM_FATE_SHRUNK : SIM_FATE_GROWN;
}

int world_evicted(struct world *w, const struct sim_job *j, struct sim_eviction e,
		  struct gpuq_err *err)
{
	struct sim_eviction *out = world_append(w, &w->evictions, &w->n_evictions,
						&w->room_evictions, sizeof(*out), err);

	if (!out)
		return GPUQ_ENOMEM;
	*out = e;
	out->job = (uint32_t)(j - w->jobs);
	out->at_us = w->now_us;
	return 0;
}

void world_mark(struct world *w)
{
	w->marked_evictions = w->n_evictions;
	w->marked_claims = w->n_claims;
	for (uint32_t i = 0; i < w->n_jobs; i++) {
		struct sim_job *j = &w->jobs[i];

		j->was = j->state == SIM_PENDING && j->moving ? SIM_RUNNING : j->state;
		j->was_tasks = j->n_tasks;
		j->left = j->moved = false;
	}
}
