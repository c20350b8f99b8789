#include "gpuqd/snapshot/snapshot_take_pools.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/site/inventory.h"
#include "gpuqd/site/layouts.h"
#include "gpuqd/site/price.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/snapshot/snapshot_build.h"
#include "gpuqd/snapshot/snapshot_take_usage.h"
#include "gpuqd/state/asks/ask.h"
#include "gpuqd/state/asks/ask_end.h"
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
_Static_assert(SNAP_END_US == ASK_END_LEAST_US, "what starts is told to end by that before");

void snapshot_pools_end(const struct taking *t, const struct node *n, struct snap_node *sn)
{
	const struct site_pool *p;

	if (!n->asked || !n->ends_us)
		return;
	p = site_pool_growing(t->m->site, n->pool);
	sn->run_us = sn->left_us = n->ends_us > t->now_us ? n->ends_us - t->now_us : 1;
	sn->cuts = p && site_pool_evictable(p);
}

/* Set for how long jobs may run on nodes of a request. Until the first has started, the time that nodes boot is
 * not counted, as long as some is left: it was requested for these jobs. */
static void set_run(const struct site_pool *p, const struct ask *a, struct snap_node *sn)
{
	if (!a->given_us)
		return;
	if (!a->used)
		sn->run_us = (a->run_us == GPUQ_UNLIMITED ? a->given_us : a->run_us) +
			     PROVISION_RUN_MARGIN_US;
	sn->lasts = a->given_us >= p->provisioning->max_run_us;
	sn->cuts = site_pool_evictable(p);
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
		sn->coming = !c->stale;
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

void snapshot_pools_tolerate(const struct site_pool *p, struct snap_taint *taints, uint32_t *n)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < *n; i++)
		if (!site_pool_tolerates(p, taints[i].key, taints[i].value, taints[i].effect))
			taints[left++] = taints[i];
	*n = left;
}

static bool add_label(struct gpuq_arena *mem, struct gpuq_strmap *labels, const char *key,
		      const char *value)
{
	const size_t had = labels->n;
	const char **words = gpuq_arena_calloc(mem, 2 * (had + 1), sizeof(*words));

	if (!words || !value)
		return false;
	for (size_t i = 0; i < had; i++) {
		words[i] = labels->keys[i];
		words[had + 1 + i] = labels->vals[i];
	}
	words[had] = key;
	words[2 * had + 1] = value;
	*labels = (struct gpuq_strmap){ words, words + had + 1, had + 1 };
	return true;
}

/* Describe the machine that the pool says its nodes will be. */
static void shape(struct taking *t, const struct site_pool *p, struct snap_node *sn)
{
	const struct provision_machine *m = p->provisioning->machine;
	const char *others = inventory_comes(t->m->site, p);
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
	/* No node is requested for a part that it will not serve. */
	if (*backend_pool_word(site_sharing_word(p->sharing)))
		add_label(&t->mem, &sn->labels, SHARE_LABEL,
			  backend_pool_word(site_sharing_word(p->sharing)));
	if (others)
		add_label(&t->mem, &sn->labels, SHARE_DEVICES, others);
	snapshot_pools_label(t->m->site, p->name, p->flavor, &t->mem, &sn->labels);
	for (size_t i = 0; i < m->taints.n; i++) {
		const struct provision_taint *in =
			&((const struct provision_taint *)m->taints.items)[i];

		taints[sn->n_taints++] = (struct snap_taint){ in->key, in->value ? in->value : "",
							      provision_effects[in->effect] };
	}
	sn->taints = taints;
	snapshot_pools_tolerate(p, taints, &sn->n_taints);
	for (size_t i = 0; i < m->resources.n; i++) {
		const char *name = m->resources.keys[i];

		more[sn->n_resources++] = (struct snap_resource){ name, provision_has(m, name), 0 };
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
	/* Nodes that an autoscaler makes have no end. */
	const int64_t most_us =
		site_pool_requests(p) ? how->max_run_us + PROVISION_RUN_MARGIN_US : 0;
	uint32_t n = 0, n_asks = 0;

	shape(t, p, &sn);
	if (sn.flavor == SNAP_NONE)
		return;
	left -= model_pool_nodes(t->m, p->name);
	for (const struct ask *a = t->m->asks; a; a = a->hh.next)
		n_asks += strcmp(a->pool, p->name) == 0 && a->state < ASK_STATE_SERVED;
	sn.n_asks = n_asks;
	sn.max_asks = site_pool_requests(p) ? (uint32_t)how->max_requests : 0;
	for (const struct ask **at = asks_of(t, p->name); at && *at; at++) {
		const struct ask *a = *at;

		left -= ask_lacks(a);
		sn.run_us = most_us;
		sn.lasts = true;
		sn.cuts = site_pool_evictable(p);
		set_run(p, a, &sn);
		sn.coming = a->state == ASK_STATE_PROVISIONED || a->state == ASK_STATE_SERVED;
		/* One that boots is there, and not what it will be. */
		for (uint32_t k = ask_lacks(a) + ask_boots(t->m, a); k > 0; k--)
			add(t, &sn, &n, SNAP_ASKED, a->number);
	}
	sn.closed = failed;
	sn.coming = false;
	sn.run_us = most_us;
	sn.lasts = true;
	sn.cuts = site_pool_evictable(p);
	for (left = left < most ? left : most; left > 0; left--)
		add(t, &sn, &n,
		    failed || !ask_pool_is_open(t->m, p) || (sn.max_asks && n_asks >= sn.max_asks)
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
	/* These may take nodes that come for jobs of others. */
	site_each(site_reservation, t->m->site->reservations, r)
		wanted += r->gpus_milli;
	site_each(site_pool, t->m->site->pools, p)
		if (site_pool_grows(p))
			add_pool(t, p, wanted);
}

/* ---- flavors, prices and spot nodes ---- */

#define STEPS                                                                                      \
	60 /* instants at which a wait may end are these parts of it apart, so that jobs share them */

/* Without any price flavors are compared as they are written. */
static bool has_price(const struct site *s)
{
	site_each(site_pool, s->pools, p)
		if (p->price.given)
			return true;
	site_each(site_flavor, s->flavors, f)
		if (f->price.given)
			return true;
	return false;
}

/* True for a pool whose nodes the cloud may take back. */
static bool is_spot(const struct site *s, const char *pool)
{
	site_each(site_pool, s->pools, p)
		if (strcmp(p->name, pool) == 0)
			return p->spot;
	return false;
}

void snapshot_pools_offers(struct taking *t)
{
	t->has_price = has_price(t->m->site);
	t->has_spot = false;
	site_each(site_pool, t->m->site->pools, p)
		t->has_spot |= p->spot;
}

/* ---- nodes ---- */

bool snapshot_pools_label(const struct site *s, const char *pool, const char *flavor,
			  struct gpuq_arena *mem, struct gpuq_strmap *labels)
{
	pool = pool ? pool : "default";
	if (is_spot(s, pool) && !add_label(mem, labels, SPOT_LABEL, "true"))
		return false;
	return !has_price(s) ||
	       add_label(mem, labels, OFFER_LABEL, gpuq_arena_printf(mem, "%s/%s", pool, flavor));
}

/* ---- requests ---- */

/* List the offers of a flavor that cost more. */
static void add_dear(struct taking *t, const char *flavor, int64_t max_micro,
		     struct gpuq_strlist *out)
{
	site_each(site_pool, t->m->site->pools, p) {
		const char *name;

		if ((p->flavor && strcmp(p->flavor, flavor) != 0) ||
		    price_micro(t->m->site, p->name, flavor) <= max_micro)
			continue;
		name = gpuq_arena_printf(&t->scratch, "%s/%s", p->name, flavor);
		if (name)
			out->items[out->n++] = name;
	}
	/* Nodes without a pool of the site are in this one. */
	if (price_micro(t->m->site, "default", flavor) > max_micro) {
		const char *name = gpuq_arena_printf(&t->scratch, "default/%s", flavor);

		if (name)
			out->items[out->n++] = name;
	}
}

/* List what the request must not use, in the scratch arena. */
static struct gpuq_strlist dear(struct taking *t, const struct request_spec *spec)
{
	struct gpuq_strlist out = { NULL, 0 };

	if (!t->has_price || !spec->flavor_rules)
		return out;
	out.items = gpuq_arena_calloc(&t->scratch, spec->flavors.n * (t->m->site->pools.n + 1),
				      sizeof(*out.items));
	for (size_t i = 0; out.items && i < spec->flavors.n; i++)
		if (spec->flavor_rules[i].max_price_micro)
			add_dear(t, spec->flavors.items[i], spec->flavor_rules[i].max_price_micro,
				 &out);
	return out;
}

void snapshot_pools_bar(struct taking *t, const struct request_spec *spec, enum gpuq_spot spot,
			struct snap_group *out)
{
	const struct gpuq_strlist offers =
		out->gpus_milli > 0 || out->mig ? dear(t, spec) : (struct gpuq_strlist){ NULL, 0 };
	const bool by_spot = spot == GPUQ_SPOT_ONLY || (t->has_spot && spot == GPUQ_SPOT_AVOID);
	const size_t n = out->n_required ? out->n_required : 1;
	struct gpuq_term *terms;

	if (!by_spot && offers.n == 0)
		return;
	terms = gpuq_arena_calloc(&t->scratch, n, sizeof(*terms));
	for (size_t i = 0; terms && i < n; i++) {
		const size_t had = out->n_required ? out->required[i].n : 0;
		struct gpuq_require *all = gpuq_arena_calloc(&t->scratch, had + 2, sizeof(*all));

		if (!all)
			return;
		for (size_t k = 0; k < had; k++)
			all[k] = out->required[i].all[k];
		terms[i] = (struct gpuq_term){ .all = all, .n = had };
		if (by_spot)
			all[terms[i].n++] = (struct gpuq_require){
				.key = SPOT_LABEL,
				.op = spot == GPUQ_SPOT_ONLY ? GPUQ_OP_EXISTS : GPUQ_OP_NOT_EXISTS
			};
		if (offers.n)
			all[terms[i].n++] =
				(struct gpuq_require){ OFFER_LABEL, GPUQ_OP_NOT_IN, offers };
	}
	if (!terms)
		return;
	out->required = terms;
	out->n_required = (uint32_t)n;
}

enum gpuq_spot snapshot_pools_spot(const struct request_spec *spec, bool preemptible,
				   uint32_t n_lost, int64_t max_lost)
{
	int64_t n_pods = 0;

	if (spec->spot == GPUQ_SPOT_ONLY || spec->spot == GPUQ_SPOT_AVOID)
		return (enum gpuq_spot)spec->spot;
	if (n_lost >= max_lost)
		return GPUQ_SPOT_AVOID;
	for (uint32_t i = 0; i < spec->n_groups; i++)
		n_pods += spec->groups[i].pods_min;
	return spec->spot == GPUQ_SPOT_AUTO && (!preemptible || n_pods > 1) ? GPUQ_SPOT_AVOID
									    : GPUQ_SPOT_ALLOW;
}

/* ---- waits ---- */

void snapshot_pools_close(struct taking *t)
{
	const struct ask_pool *pool = NULL;
	const char *name = NULL;

	t->closed_us = t->m->ask_pools
			       ? gpuq_arena_calloc(&t->mem, t->n_flavors + 1, sizeof(*t->closed_us))
			       : NULL;
	for (uint32_t i = 0; t->closed_us && i < t->s->n_nodes; i++) {
		const struct snap_node *n = &t->s->nodes[i];
		int64_t at_us = GPUQ_UNLIMITED;

		if (n->flavor == SNAP_NONE || (n->state == SNAP_DOWN && !n->made_up))
			continue;
		if (n->state == SNAP_DOWN && n->pool != name) {
			name = n->pool;
			pool = ask_pool_find(t->m, name);
		}
		if (n->state == SNAP_DOWN && pool && pool->closed_until_us > t->now_us)
			at_us = pool->failed_us;
		if (at_us > t->closed_us[n->flavor])
			t->closed_us[n->flavor] = at_us;
	}
}

/* Return since when there is nothing of the flavor to wait for; GPUQ_UNLIMITED = there is. */
static int64_t closed_us(const struct taking *t, uint32_t flavor)
{
	return t->closed_us && t->closed_us[flavor] ? t->closed_us[flavor] : GPUQ_UNLIMITED;
}

static bool waits(const struct taking *t, const struct request_spec *spec)
{
	bool any = false;

	for (size_t i = 0; spec->flavor_rules && i < spec->flavors.n; i++)
		any |= gpuq_flavor_waits(&spec->flavor_rules[i]);
	return any && !snapshot_take_by_kind(t, &spec->flavors);
}

const int64_t *snapshot_pools_waits(struct taking *t, const struct request_spec *spec)
{
	int64_t *us = waits(t, spec) ? gpuq_arena_calloc(&t->scratch, spec->flavors.n, sizeof(*us))
				     : NULL;

	for (size_t i = 0; us && i < spec->flavors.n; i++)
		us[i] = spec->flavor_rules[i].for_us     ? spec->flavor_rules[i].for_us
			: spec->flavor_rules[i].refusals ? GPUQ_UNLIMITED
							 : 0;
	return us;
}

/* Return the part of the shortest wait of which ends are multiples; 0 = no wait has an end. */
static int64_t step_us(const struct request_spec *spec)
{
	int64_t least = 0;

	for (size_t i = 0; i < spec->flavors.n; i++)
		if (spec->flavor_rules[i].for_us &&
		    (least == 0 || spec->flavor_rules[i].for_us < least))
			least = spec->flavor_rules[i].for_us;
	return least / STEPS;
}

void snapshot_pools_wait(struct taking *t, const struct request_spec *spec, int64_t since_us,
			 struct snap_job *out)
{
	int64_t step, from = since_us;
	uint32_t at = 0;

	if (!waits(t, spec))
		return;
	step = step_us(spec);
	if (step)
		since_us = (since_us + step - 1) / step * step;
	for (size_t i = 0; i + 1 < spec->flavors.n; i++) {
		const struct gpuq_flavor_rule *r = &spec->flavor_rules[i];
		const uint32_t flavor = snapshot_taking_flavor(t, spec->flavors.items[i]);
		int64_t end = GPUQ_UNLIMITED, refused = GPUQ_UNLIMITED;

		if (flavor == SNAP_NONE)
			continue;
		if (!gpuq_flavor_waits(r)) {
			at++;
			continue;
		}
		if (r->for_us && __builtin_add_overflow(since_us, r->for_us, &end))
			end = GPUQ_UNLIMITED;
		if (r->for_us && closed_us(t, flavor) < end)
			end = closed_us(t, flavor) > from ? closed_us(t, flavor) : from;
		if (r->refusals)
			refused = ask_refused_us(t->m, spec->flavors.items[i], from, r->refusals);
		end = refused < end ? refused : end;
		if (end > t->now_us)
			break;
		since_us = from = end;
		at++;
	}
	out->wait_at = at;
	out->wait_from_us = step ? since_us : 0;
}

uint32_t snapshot_pools_lost(const struct job *j)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < j->life->n_evictions; i++)
		n += strcmp(j->life->evictions[i].rule, RULE_SPOT) == 0;
	return n;
}

void snapshot_pools_job(struct taking *t, const struct job *j, struct snap_job *out)
{
	int64_t since = out->eligible_us;

	if (!j->request->spec.flavor_rules)
		return;
	since = out->begin_us > since ? out->begin_us : since;
	/* It is pending anew. */
	since = j->attempt > 0 && j->life->end_us > since ? j->life->end_us : since;
	snapshot_pools_wait(t, &j->request->spec, since, out);
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

/* True if its devices are whole ones of NVIDIA's, or whole instances of such: of what its plugin would share after
 * another cut gpuqd knows nothing. */
static bool is_of_mig(const struct node *n)
{
	const char *word = gpuq_strmap_text(&n->fact.labels, SHARE_LABEL);

	for (size_t i = 0; i < n->fact.n_mig; i++)
		if (gpuq_profile_is_shared(n->fact.mig[i].profile))
			return false;
	return n->fact.replicas <= 1 && !*gpuq_strmap_text(&n->fact.labels, SHARE_DEVICES) &&
	       (n->fact.n_mig || strcmp(word, "whole") == 0 || strcmp(word, "mig") == 0);
}

/* Return until when the node is not given the layout, which was set not long ago; 0 = it could be. */
static int64_t barred_until(struct taking *t, const struct node *n, const struct site_layouts *l,
			    const char *name)
{
	int64_t until_us;

	if (!n->cut || strcmp(n->cut->layout, name) != 0)
		return 0;
	until_us = amount_sum(n->cut->at_us, l->again_us);
	if (until_us <= t->now_us)
		return 0;
	snapshot_wake(&t->s->config, until_us);
	return until_us;
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
	for (size_t i = 0; i < l->names.n; i++) {
		const char *name = l->names.items[i];

		/* The manager acts on a label that changes. */
		if (strcmp(gpuq_strmap_text(&n->fact.labels, CUT_LABEL), name) == 0 ||
		    !layout_make(n, name, &list[sn->n_layouts]))
			continue;
		list[sn->n_layouts++].again_us = barred_until(t, n, l, name);
	}
	sn->layouts = list;
}
