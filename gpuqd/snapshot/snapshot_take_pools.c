#include "gpuqd/snapshot/snapshot_take_pools.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/site/price.h"
#include "gpuqd/snapshot/snapshot_build.h"
#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

void snapshot_pools_begin(struct taking *t)
{
	uint32_t n = 0;

	for (const struct ask *a = t->m->asks; a; a = a->hh.next)
		n += a->n_came;
	t->n_came = 0;
	t->came = n ? gpuq_arena_calloc(&t->mem, n, sizeof(*t->came)) : NULL;
	for (const struct ask *a = t->m->asks; a && t->came; a = a->hh.next)
		for (uint32_t i = 0; i < a->n_came; i++)
			t->came[t->n_came++] =
				(struct taking_came){ a->nodes[i].name, a, a->nodes[i].stale };
}

_Static_assert(SNAP_BOOT_US == PROVISION_RUN_MARGIN_US,
	       "a request is for that much longer than its jobs run");

void snapshot_pools_end(const struct taking *t, const struct node *n, struct snap_node *sn)
{
	const struct site_pool *p;

	if (!n->asked || !n->ends_us)
		return;
	p = site_pool_growing(t->m->site, n->pool);
	sn->run_us = n->ends_us > t->now_us ? n->ends_us - t->now_us : 1;
	sn->cuts = p && p->provisioning->evictable;
}

/* Set for how long jobs may run on nodes of a request. Until the first has started, the time that nodes boot is
 * not counted: it was requested for these jobs. */
static void set_run(const struct site_pool *p, const struct ask *a, struct snap_node *sn)
{
	if (!a->given_us)
		return;
	if (!a->used)
		sn->run_us = a->given_us + PROVISION_RUN_MARGIN_US;
	sn->lasts = a->given_us >= p->provisioning->max_run_us;
	sn->cuts = p->provisioning->evictable;
}

void snapshot_pools_node(const struct taking *t, const struct node *n, struct snap_node *sn)
{
	for (uint32_t i = 0; i < t->n_came; i++) {
		const struct taking_came *c = &t->came[i];
		const struct site_pool *p;

		if (c->name != n->name)
			continue;
		p = site_pool_growing(t->m->site, c->ask->pool);
		if (p && !c->stale)
			set_run(p, c->ask, sn);
		if (sn->state != SNAP_READY ||
		    (p && !c->stale &&
		     ask_is_open(t->m, c->ask, p->provisioning->booking_us, t->now_us)))
			return;
		if (!p && !c->stale)
			return;
		if (!c->stale && c->ask->state < ASK_STATE_SERVED &&
		    ask_node_is_awaited(n, p ? p->provisioning->machine : NULL)) { /* add_pool() */
			sn->state = SNAP_DOWN;
			return;
		}
		/* Booked for others than its jobs, or about to go: nothing starts there. */
		sn->state = c->stale ? SNAP_DOWN : SNAP_ASKED;
		sn->ask = c->stale ? 0 : c->ask->number;
		return;
	}
}

/* Return the devices that all pending jobs together could use, but no more than enough. */
static int64_t wanted_milli(const struct model *m, int64_t enough)
{
	int64_t milli = 0;
	const struct job *j;

	DL_FOREACH2(m->jobs_by_state[GPUQ_JOB_PENDING], j, state_next) {
		const int64_t n = j->array ? j->array->n_waiting : 1;

		/* Parts may lie on a node of their own each. */
		milli += n * (j->request->gpus_milli > j->request->n_pods * SNAP_MILLI
				      ? j->request->gpus_milli
				      : (int64_t)j->request->n_pods * SNAP_MILLI);
		if (milli >= enough)
			return enough;
	}
	return milli;
}

/* Return how many nodes with that many devices could be used. */
static int64_t nodes_for(int64_t milli, int64_t gpus)
{
	const int64_t n = milli / (gpus * SNAP_MILLI);

	return n >= PROVISION_NODES_MAX ? PROVISION_NODES_MAX : n + 1;
}

static void shape(struct taking *t, const struct site_pool *p, struct snap_node *sn)
{
	const struct provision_machine *m = p->provisioning->machine;
	struct snap_device *devices =
		gpuq_arena_calloc(&t->mem, (size_t)m->gpus + 1, sizeof(*devices));
	struct snap_taint *taints = gpuq_arena_calloc(&t->mem, m->taints.n + 1, sizeof(*taints));
	struct snap_resource *more = gpuq_arena_calloc(&t->mem, m->resources.n + 1, sizeof(*more));

	snapshot_node_default(sn);
	if (!devices || !taints || !more)
		return;
	sn->pool = p->name;
	sn->made_up = true;
	for (uint32_t f = 0; f < t->n_flavors; f++)
		if (strcmp(t->flavors[f], p->flavor) == 0)
			sn->flavor = f;
	sn->isolation_part = (uint8_t)backend_pool_isolates(site_sharing_word(p->sharing));
	sn->price = p->price.given ? p->price.micro[p->billing]
				   : price_micro(t->m->site, p->name, p->flavor);
	if (m->cpu_milli)
		sn->cpu_milli = m->cpu_milli;
	if (m->memory_bytes)
		sn->memory_bytes = m->memory_bytes;
	sn->n_devices = (uint32_t)(m->gpus < SNAP_DEVICES_MAX ? m->gpus : SNAP_DEVICES_MAX);
	for (uint32_t d = 0; d < sn->n_devices; d++)
		devices[d].healthy = true;
	sn->devices_in = devices;
	sn->labels = m->labels;
	for (size_t i = 0; i < m->taints.n; i++) {
		const struct provision_taint *in =
			&((const struct provision_taint *)m->taints.items)[i];

		taints[sn->n_taints++] = (struct snap_taint){ in->key, in->value ? in->value : "",
							      provision_effects[in->effect] };
	}
	sn->taints = taints;
	for (size_t i = 0; i < m->resources.n; i++) {
		const char *name = m->resources.keys[i];
		int64_t n = 0;

		if (!gpuq_resource_is_bytes(name))
			n = strtoll(m->resources.vals[i], NULL, 10);
		else if (gpuq_bytes_parse(m->resources.vals[i], &n, NULL) < 0)
			continue;
		more[sn->n_resources++] = (struct snap_resource){ name, n, 0 };
	}
	sn->resources = more;
}

static void add(struct taking *t, struct snap_node *sn, uint32_t *n, int state, uint32_t ask)
{
	/* Equal nodes are used in the order of their names: that in which they were added. */
	sn->name = gpuq_arena_printf(&t->mem, "%s/%05" PRIu32, sn->pool, (*n)++);
	sn->state = state;
	sn->ask = ask;
	if (sn->name)
		snapshot_add_node(t->s, sn);
}

/* Those that run for a shorter time come first: a job gets the shortest that is long enough, so that the others are
 * left to the jobs that they were requested for. */
static int by_time(const void *x, const void *y)
{
	const struct ask *a = *(const struct ask *const *)x, *b = *(const struct ask *const *)y;
	const int64_t p = a->given_us ? a->given_us : GPUQ_UNLIMITED;
	const int64_t q = b->given_us ? b->given_us : GPUQ_UNLIMITED;

	return p != q ? (p > q) - (p < q) : (a->number > b->number) - (a->number < b->number);
}

/* Return the requests of the pool that are under way, NULL-terminated. */
static const struct ask **asks_of(struct taking *t, const char *pool)
{
	const struct ask **all =
		gpuq_arena_calloc(&t->mem, HASH_COUNT(t->m->asks) + 1, sizeof(*all));
	size_t n = 0;

	for (const struct ask *a = t->m->asks; all && a; a = a->hh.next)
		if (strcmp(a->pool, pool) == 0 && a->state != ASK_STATE_ENDED)
			all[n++] = a;
	if (n)
		qsort(all, n, sizeof(*all), by_time);
	return all;
}

static void add_pool(struct taking *t, const struct site_pool *p, int64_t wanted)
{
	const struct provision *how = p->provisioning;
	const struct ask_pool *known = ask_pool_find(t->m, p->name);
	const bool failed = known && known->closed_until_us > t->now_us;
	int64_t left = how->max_nodes, most = nodes_for(wanted, how->machine->gpus);
	struct snap_node sn;
	const int64_t most_us = how->max_run_us + PROVISION_RUN_MARGIN_US;
	uint32_t n = 0, n_asks = 0;

	shape(t, p, &sn);
	if (sn.flavor == SNAP_NONE)
		return;
	node_each(t->m, node)
		left -= !node->gone && strcmp(node->pool, p->name) == 0;
	for (const struct ask *a = t->m->asks; a; a = a->hh.next)
		n_asks += strcmp(a->pool, p->name) == 0 && a->state < ASK_STATE_SERVED;
	sn.n_asks = n_asks;
	sn.max_asks = (uint32_t)how->max_requests;
	for (const struct ask **at = asks_of(t, p->name); at && *at; at++) {
		const struct ask *a = *at;

		left -= ask_lacks(a);
		sn.run_us = most_us;
		sn.lasts = true;
		sn.cuts = how->evictable;
		set_run(p, a, &sn);
		/* One that boots is there, and not what it will be. */
		for (uint32_t k = ask_lacks(a) + ask_boots(t->m, a); k > 0; k--)
			add(t, &sn, &n, SNAP_ASKED, a->number);
	}
	sn.closed = failed;
	sn.run_us = most_us;
	sn.lasts = true;
	sn.cuts = how->evictable;
	for (left = left < most ? left : most; left > 0; left--)
		add(t, &sn, &n,
		    failed || t->m->asks_known != ASKS_KNOWN || n_asks >= sn.max_asks
			    ? SNAP_DOWN
			    : SNAP_PLANNED,
		    0);
}

void snapshot_pools_add(struct taking *t)
{
	int64_t largest = 0, wanted;

	site_each(site_pool, t->m->site->pools, p)
		if (site_pool_grows(p) && p->provisioning->machine->gpus > largest)
			largest = p->provisioning->machine->gpus;
	if (largest == 0)
		return;
	wanted = wanted_milli(t->m, largest * SNAP_MILLI * PROVISION_NODES_MAX);
	site_each(site_pool, t->m->site->pools, p)
		if (site_pool_grows(p))
			add_pool(t, p, wanted);
}
