#include "gpuqd/sim/world_pools.h"

#include <string.h>

#include "gpuqd/sim/world_int.h"
#include "gpuqd/snapshot/snapshot_take_pools.h"

#define RETRIES 3
#define RETRY_BASE_US (60 * GPUQ_US_PER_S)
#define CLOSED_US (1800 * GPUQ_US_PER_S)

int world_pools_make(struct world *w, struct gpuq_err *err)
{
	const struct sc_pool *specs = w->c->pools.items;

	w->n_pools = (uint32_t)w->c->pools.n;
	w->pools = gpuq_arena_calloc(&w->arena, w->n_pools, sizeof(*w->pools));
	if (!w->pools)
		return gpuq_no_memory(err);
	for (uint32_t p = 0; p < w->n_pools; p++) {
		w->pools[p].spec = &specs[p];
		for (int64_t k = 0; k < specs[p].max / 1000; k++) {
			struct sim_node *n = &w->nodes[w->n_nodes++];

			n->spec = &specs[p].machine;
			n->pool = p;
			n->state = k < specs[p].nodes / 1000 ? SNAP_READY : SNAP_PLANNED;
			n->name = gpuq_arena_printf(&w->arena, "%s-%lld", specs[p].name,
						    (long long)k);
			if (!n->name)
				return gpuq_no_memory(err);
		}
	}
	return 0;
}

static uint32_t flavor_of(const struct world *w, const struct sc_node *spec)
{
	const char *name = spec->flavor ? spec->flavor : "default";
	uint32_t f = 0;

	while (f < w->n_flavors && strcmp(w->flavors[f], name) != 0)
		f++;
	return f;
}

void world_pools_add(void *world, struct snapshot *s)
{
	const struct world *w = world;

	for (uint32_t i = 0; i < w->n_nodes; i++) {
		const struct sim_node *n = &w->nodes[i];
		const struct sc_node *spec = n->spec;
		struct snap_device devices[SNAP_DEVICES_MAX];
		struct snap_node sn;

		if (world_node_exists(n))
			continue;
		snapshot_node_default(&sn);
		sn.name = n->name;
		sn.pool = spec->pool;
		sn.flavor = flavor_of(w, spec);
		sn.state = n->state;
		sn.ask = n->ask;
		sn.n_asks = world_pools_count(w, n->pool).requests;
		sn.max_asks = (uint32_t)(w->pools[n->pool].spec->max_requests / 1000);
		/* While its pool is closed it cannot be requested. */
		if (n->state == SNAP_PLANNED && w->pools[n->pool].closed_until_us > w->now_us)
			sn.state = SNAP_DOWN, sn.closed = true;
		else if (n->state == SNAP_PLANNED && sn.max_asks && sn.n_asks >= sn.max_asks)
			sn.state = SNAP_DOWN;
		sn.made_up = true;
		sn.price = w->pools[n->pool].spec->price;
		if (spec->cpu != SC_ABSENT)
			sn.cpu_milli = spec->cpu / 1000;
		if (spec->mem_mb != SC_ABSENT)
			sn.memory_bytes = spec->mem_mb / 1000 << 20;
		sn.n_devices = (uint32_t)(spec->gpus / 1000);
		memset(devices, 0, sizeof(devices));
		for (uint32_t d = 0; d < sn.n_devices; d++) {
			devices[d].healthy = true;
			devices[d].memory_bytes = spec->gpu_mem_mb / 1000 << 20;
		}
		sn.devices_in = devices;
		sn.labels = spec->labels;
		snapshot_pools_label(w->m->site, sn.pool, w->flavors[sn.flavor], &s->arena,
				     &sn.labels);
		sn.taints = spec->taints.items;
		sn.n_taints = (uint32_t)spec->taints.n;
		snapshot_add_node(s, &sn);
	}
}

/* ---- requests ---- */

static int64_t delay_us(const struct world *w, const struct sim_ask *a)
{
	const int64_t delay = w->pools[a->pool].spec->provision_delay;

	return delay == SC_ABSENT ? GPUQ_UNLIMITED : world_us(w, delay);
}

/* Set when its nodes come, of a request that is made at that time. */
static void made(const struct world *w, struct sim_ask *a, int64_t at_us)
{
	const int64_t delay = delay_us(w, a);

	a->come_us = delay == GPUQ_UNLIMITED ? GPUQ_UNLIMITED : at_us + delay;
}

/* Remove a request; nodes of it that have not come can be requested again. */
static void drop(struct world *w, uint32_t at)
{
	for (uint32_t i = 0; i < w->n_nodes; i++)
		if (w->nodes[i].state == SNAP_ASKED && w->nodes[i].ask == w->asks[at].number) {
			w->nodes[i].state = SNAP_PLANNED;
			w->nodes[i].ask = 0;
		}
	memmove(&w->asks[at], &w->asks[at + 1], (--w->n_asks - at) * sizeof(*w->asks));
}

static uint32_t pool_named(const struct world *w, const char *name)
{
	uint32_t p = 0;

	while (p < w->n_pools && strcmp(w->pools[p].spec->name, name) != 0)
		p++;
	return p;
}

/* Make a request of the plan. */
static int ask(struct world *w, const struct plan_ask *in, struct gpuq_err *err)
{
	struct sim_ask *a = world_append(w, &w->asks, &w->n_asks, &w->room_asks, sizeof(*a), err);
	uint32_t left = in->n_nodes;

	if (!a)
		return GPUQ_ENOMEM;
	*a = (struct sim_ask){ .number = ++w->last_ask, .pool = pool_named(w, in->pool) };
	made(w, a, w->now_us);
	for (uint32_t i = 0; i < w->n_nodes && left > 0; i++)
		if (w->nodes[i].state == SNAP_PLANNED && w->nodes[i].pool == a->pool) {
			w->nodes[i].state = SNAP_ASKED;
			w->nodes[i].ask = a->number;
			left--;
		}
	return left ? gpuq_fail(err, GPUQ_EINTERNAL,
				"pool %s: more nodes are requested than there "
				"can be",
				in->pool)
		    : 0;
}

int world_pools_carry(struct world *w, const struct plan *p, bool *changed, struct gpuq_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < p->n_asks; i++) {
		const struct plan_ask *a = &p->asks[i];

		if (!a->ask) {
			rc = ask(w, a, err);
			*changed = true;
		}
		for (uint32_t k = 0; a->ask && a->job == SNAP_NONE && k < w->n_asks; k++)
			if (w->asks[k].number == a->ask) {
				drop(w, k);
				*changed = true;
				break;
			}
	}
	return rc;
}

/* Have a requested node come into being. */
static int come(struct world *w, struct sim_node *n, struct gpuq_err *err)
{
	n->state = SNAP_READY;
	n->ask = 0;
	return world_node_event(w, n, err);
}

static bool has_nodes(const struct world *w, const struct sim_ask *a)
{
	for (uint32_t i = 0; i < w->n_nodes; i++)
		if (w->nodes[i].state == SNAP_ASKED && w->nodes[i].ask == a->number)
			return true;
	return false;
}

int64_t world_pools_next(const struct world *w)
{
	int64_t next = GPUQ_UNLIMITED;

	for (uint32_t i = 0; i < w->n_asks; i++) {
		const int64_t at = w->asks[i].retry_us ? w->asks[i].retry_us : w->asks[i].come_us;

		next = at > w->now_us && at < next ? at : next;
	}
	for (uint32_t p = 0; p < w->n_pools; p++) {
		const int64_t at = w->pools[p].closed_until_us;

		next = at > w->now_us && at < next ? at : next;
	}
	return next;
}

int world_pools_fall_due(struct world *w, struct gpuq_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < w->n_asks; i++) {
		struct sim_ask *a = &w->asks[i];

		if (a->retry_us && a->retry_us <= w->now_us) {
			made(w, a, a->retry_us);
			a->retry_us = 0;
		}
		if (a->retry_us || a->come_us > w->now_us)
			continue;
		for (uint32_t n = 0; rc == 0 && n < w->n_nodes; n++)
			if (w->nodes[n].state == SNAP_ASKED && w->nodes[n].ask == a->number)
				rc = come(w, &w->nodes[n], err);
		drop(w, i--);
	}
	return rc;
}

/* ---- steps ---- */

/* Return the pool's oldest request that is made and not waiting to be made again. */
static uint32_t oldest(const struct world *w, uint32_t pool)
{
	uint32_t i = 0;

	while (i < w->n_asks && (w->asks[i].pool != pool || w->asks[i].retry_us))
		i++;
	return i;
}

static int fail(struct world *w, uint32_t at, struct gpuq_err *err)
{
	struct sim_ask *a = &w->asks[at];
	struct event ev = { .type = EV_ASK_CLOSED, .at_us = w->now_us };
	const int64_t closed_us = a->failures < RETRIES ? 0 : w->now_us + CLOSED_US;
	int rc;

	/* The model counts it. */
	ev.ask.until_us = closed_us;
	ev.ask.pool = w->pools[a->pool].spec->name;
	ev.ask.message = "";
	ev.ask.counts = true;
	rc = world_event(w, &ev, err);
	if (rc < 0)
		return rc;
	if (a->failures++ < RETRIES) {
		a->retry_us = w->now_us + (RETRY_BASE_US << (a->failures - 1));
		return 0;
	}
	w->pools[a->pool].closed_until_us = closed_us;
	drop(w, at);
	return 0;
}

int world_pools_step(struct world *w, const struct sc_step *s, struct gpuq_err *err)
{
	const uint32_t pool = pool_named(w, s->pool);
	int64_t left = s->count / 1000;
	int rc = 0;

	if (pool == w->n_pools)
		return gpuq_fail_field(err, GPUQ_EINVAL, "pool", "no pool is named %s", s->pool);
	if (s->event == SC_REQUEST_FAILED && oldest(w, pool) == w->n_asks)
		return gpuq_fail_field(err, GPUQ_EINVAL, "pool", "no request of %s could fail",
				       s->pool);
	if (s->event == SC_REQUEST_FAILED)
		return fail(w, oldest(w, pool), err);
	for (; rc == 0 && left > 0; left--) {
		const uint32_t at = oldest(w, pool);
		uint32_t n = 0;

		if (at == w->n_asks)
			return gpuq_fail_field(err, GPUQ_EINVAL, "count",
					       "%lld more nodes than were requested of %s",
					       (long long)left, s->pool);
		while (w->nodes[n].state != SNAP_ASKED || w->nodes[n].ask != w->asks[at].number)
			n++;
		rc = come(w, &w->nodes[n], err);
		if (!has_nodes(w, &w->asks[at]))
			drop(w, at);
	}
	return rc;
}

struct pool_count world_pools_count(const struct world *w, uint32_t pool)
{
	struct pool_count out = { 0 };

	for (uint32_t i = 0; i < w->n_nodes; i++) {
		if (w->nodes[i].pool != pool)
			continue;
		out.nodes += world_node_exists(&w->nodes[i]);
		out.asked += w->nodes[i].state == SNAP_ASKED;
	}
	for (uint32_t i = 0; i < w->n_asks; i++)
		out.requests += w->asks[i].pool == pool;
	return out;
}
