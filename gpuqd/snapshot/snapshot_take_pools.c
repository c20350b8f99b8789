#include "gpuqd/snapshot/snapshot_take_pools.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/site/layouts.h"
#include "gpuqd/site/price.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/snapshot/snapshot_build.h"
#include "gpuqd/snapshot/snapshot_take_usage.h"
#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/asks/ask_nodes.h"
#include "gpuqd/state/cuts/cut.h"
#include "gpuqd/util/amount.h"
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
	sn->name = gpuq_arena_printf(&t->mem, "%s/%" PRIu32, sn->pool, (*n)++);
	sn->state = state;
	sn->ask = ask;
	if (sn->name)
		snapshot_add_node(t->s, sn);
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
	for (const struct ask *a = t->m->asks; a; a = a->hh.next) {
		if (strcmp(a->pool, p->name) != 0 || a->state == ASK_STATE_ENDED)
			continue;
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

/* ---- layouts of MIG instances ---- */

/* Return the number of cards: of those that are cut, as few as their instances need. */
static uint32_t n_cards(const struct node *n, const char *product)
{
	int64_t milli = 0, most = 0;

	for (size_t i = 0; i < n->fact.n_mig; i++) {
		const struct mig_fact *f = &n->fact.mig[i];
		const int64_t slots = cost_instances(f->profile, product);

		/* A seventh is rounded up where it is counted: 143. */
		milli += f->count * (cost_of_profile(f->profile) / 10 * 10);
		most = (f->count + slots - 1) / slots > most ? (f->count + slots - 1) / slots
							     : most;
	}
	milli = (milli + SNAP_MILLI - 1) / SNAP_MILLI;
	return n->n_devices + (uint32_t)(milli > most ? milli : most);
}

/* Fill in what a layout makes of the node. False: it is not known. */
static bool layout_make(const struct node *n, const char *name, struct snap_layout *out)
{
	const char *product = gpuq_strmap_text(&n->fact.labels, "nvidia.com/gpu.product");
	const char *profile = layouts_profile(name);
	const uint32_t cards = cut_is_under_way(n) ? n->cut->cards : n_cards(n, product);

	if (!profile || cards == 0)
		return false;
	*out = (struct snap_layout){ .name = name, .profile = *profile ? profile : NULL };
	out->count = *profile ? cards * (uint32_t)cost_instances(profile, product) : cards;
	return true;
}

/* True if its devices are whole ones of NVIDIA's, or instances of such. */
static bool is_of_mig(const struct node *n)
{
	const char *word = gpuq_strmap_text(&n->fact.labels, SHARE_LABEL);

	return n->fact.replicas <= 1 && !*gpuq_strmap_text(&n->fact.labels, SHARE_DEVICES) &&
	       (n->fact.n_mig || strcmp(word, "whole") == 0 || strcmp(word, "mig") == 0);
}

/* True if the node has the layout, or had it set not long ago. */
static bool is_barred(struct taking *t, const struct node *n, const struct site_layouts *l,
		      const char *name)
{
	int64_t until_us;

	/* The manager acts on a label that changes. */
	if (strcmp(gpuq_strmap_text(&n->fact.labels, CUT_LABEL), name) == 0)
		return true;
	if (!n->cut || strcmp(n->cut->layout, name) != 0)
		return false;
	until_us = amount_sum(n->cut->at_us, l->again_us);
	if (until_us <= t->now_us)
		return false;
	snapshot_wake(&t->s->config, until_us);
	return true;
}

void snapshot_cuts_node(struct taking *t, const struct node *n, struct snap_node *sn)
{
	const struct site_layouts *l = NULL;
	struct snap_layout *list;

	if (cut_is_under_way(n)) {
		list = gpuq_arena_calloc(&t->mem, 1, sizeof(*list));
		sn->state = sn->state == SNAP_READY ? SNAP_SUSPECT : sn->state;
		if (!list)
			return;
		sn->cutting = true;
		sn->layouts = list;
		sn->n_layouts = n->cut->state == CUT_SET && layout_make(n, n->cut->layout, list);
		return;
	}
	site_each(site_pool, t->m->site->pools, p)
		if (strcmp(p->name, n->pool) == 0 && layouts_are_on(p->mig))
			l = p->mig;
	if (!l || sn->state != SNAP_READY || !is_of_mig(n))
		return;
	list = gpuq_arena_calloc(&t->mem, l->names.n + 1, sizeof(*list));
	if (!list)
		return;
	for (size_t i = 0; i < l->names.n; i++)
		if (!is_barred(t, n, l, l->names.items[i]) &&
		    layout_make(n, l->names.items[i], &list[sn->n_layouts]))
			sn->n_layouts++;
	sn->layouts = list;
}
