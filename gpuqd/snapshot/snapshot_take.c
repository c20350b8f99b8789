#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/snapshot/choices/snapshot_choices.h"
#include "gpuqd/snapshot/claims/snapshot_take_claims.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/snapshot/displaced.h"
#include "gpuqd/snapshot/snapshot_take_calendar.h"
#include "gpuqd/snapshot/snapshot_take_caps.h"
#include "gpuqd/snapshot/snapshot_take_more.h"
#include "gpuqd/snapshot/snapshot_take_objects.h"
#include "gpuqd/snapshot/snapshot_take_past.h"
#include "gpuqd/snapshot/snapshot_take_pools.h"
#include "gpuqd/snapshot/snapshot_take_usage.h"
#include "gpuqd/snapshot/snapshot_taking.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/snapshot/snapshot_build.h"
#include "gpuqd/snapshot/snapshot_pack.h"
#include "gpuqd/site/inventory.h"
#include "gpuqd/site/product_terms.h"
#include "gpuqd/util/require.h"
#include "gpuqd/util/walltime.h"
#include "gpuqd/devices/backend.h"
#include "gpuqd/state/asks/ask_end.h"
#include "gpuqd/state/cuts/foreign_part.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

/* Equivalent jobs that have entries of their own in a snapshot for a question. */
#define QUESTION_ALIKE 256

/* Add the flavors of the site in its order, `default` last. Handles count from 0. */
static void take_flavors(struct taking *t)
{
	uint32_t n = 0;

	t->flavors = gpuq_arena_calloc(&t->mem, t->m->site->flavors.n + 1, sizeof(char *));
	if (!t->flavors)
		return;
	site_each(site_flavor, t->m->site->flavors, f) {
		snapshot_set_rate(t->s, snapshot_add_flavor(t->s, f->name, n), f->rate_milli);
		t->flavors[n++] = f->name;
	}
	t->n_flavors = n;
	if (snapshot_taking_flavor(t, "default") == SNAP_NONE) {
		snapshot_add_flavor(t->s, "default", n);
		t->flavors[n++] = "default";
	}
	t->n_flavors = n;
	site_each(site_pool, t->m->site->pools, p)
		if (site_pool_grows(p) && p->flavor)
			snapshot_set_grows(t->s, snapshot_taking_flavor(t, p->flavor));
	t->packs = gpuq_arena_calloc(&t->mem, n, sizeof(*t->packs));
	site_each(site_license, t->m->site->licenses, l)
		snapshot_add_license(t->s, l->name, l->count);
}

static int64_t milli(int64_t devices)
{
	return devices == GPUQ_UNLIMITED ? devices : devices * SNAP_MILLI;
}

/* Add the queues with their quotas, caps and usage. */
static void take_queues(struct taking *t)
{
	struct snap_share *shares = gpuq_arena_calloc(&t->mem, t->n_flavors + 2, sizeof(*shares));
	const uint32_t *n_claims = snapshot_claims(t->m, t->now_us, &t->mem);
	const struct queue_usage *usage = snapshot_queue_usage(t->m, t->now_us, &t->mem);

	t->queue_of = gpuq_arena_calloc(&t->mem, t->m->n_queues + 1, sizeof(*t->queue_of));
	if (!shares || !t->queue_of || !n_claims || !usage)
		return;
	for (uint32_t i = 0; i < t->m->n_queues; i++) {
		const struct queue *q = t->m->queues[i];
		const struct site_queue *sq = q->site;
		const bool free_ = queue_is_free(t->m, q);
		struct snap_queue sn;

		snapshot_queue_default(&sn);
		for (uint32_t r = 0; r < t->n_flavors + 2; r++)
			snapshot_share_default(&shares[r]);
		for (uint32_t f = 0; f < t->n_flavors; f++) {
			shares[f].quota = site_amount_of(&sq->quota, t->flavors[f],
							 free_ ? GPUQ_UNLIMITED : SNAP_AUTO);
			shares[f].limit = site_amount_of(&sq->limit, t->flavors[f], GPUQ_UNLIMITED);
			shares[f].lend = site_amount_of(&sq->lend, t->flavors[f], GPUQ_UNLIMITED);
			shares[f].shared = site_amount_of(&sq->shared_quota, t->flavors[f], 0);
		}
		sn.name = q->name;
		sn.parent_name = q->parent ? q->parent->name : NULL;
		sn.shares = shares;
		sn.policy = sq->policy;
		/* The order of the model's queues decides among equals. */
		sn.age = i;
		sn.user_max_running = sq->max_running.user;
		sn.max_running = sq->max_running.queue;
		sn.user_max_gpus_milli = milli(sq->max_gpus.user);
		sn.job_max_gpus_milli = milli(sq->max_gpus.job);
		sn.max_gpus_milli = milli(sq->max_gpus.queue);
		sn.n_claims_hour = n_claims[i];
		snapshot_fill_usage(t->m, q, &usage[i], &t->s->config, &sn);
		MORE(t, queue, q, &sn, shares, t->n_flavors);
		t->queue_of[i] = snapshot_add_queue(t->s, &sn);
	}
}

/* True if some node has devices that are not NVIDIA's, or could come with some. */
static bool any_others(const struct model *m)
{
	site_each(site_pool, m->site->pools, p)
		if (inventory_comes(m->site, p))
			return true;
	for (const struct node *n = m->nodes; n; n = n->hh.next)
		if (n->fact.device && *n->fact.device &&
		    strncmp(n->fact.device, GPUQ_RESOURCE_GPU, strlen(GPUQ_RESOURCE_GPU)) != 0)
			return true;
	return false;
}

/* ---- kinds of devices, where the site has no flavors ---- */

static void take_kinds(struct taking *t)
{
	size_t room = 0;

	t->by_kind = t->m->site->flavors.n == 0;
	for (const struct node *n = t->by_kind ? t->m->nodes : NULL; n; n = n->hh.next) {
		size_t i = 0;

		while (i < t->kinds.n && t->kinds.items[i] != n->kind)
			i++;
		if (i < t->kinds.n || !*n->kind)
			continue;
		if (t->kinds.n == room) {
			const char **more = gpuq_arena_calloc(&t->mem, room * 2 + 8, sizeof(*more));

			if (!more)
				return;
			for (size_t k = 0; k < room; k++)
				more[k] = t->kinds.items[k];
			t->kinds.items = more;
			room = room * 2 + 8;
		}
		t->kinds.items[t->kinds.n++] = n->kind;
	}
}

/* Find the nodes of which it is not known whether they would take what they offer: few. */
static void take_doubtful(struct taking *t)
{
	uint32_t n_doubtful = 0;

	node_each(t->m, n)
		n_doubtful += n->shorts[0].resource != NULL; /* the first is used first */
	t->n_doubtful = 0;
	t->doubtful =
		n_doubtful ? gpuq_arena_calloc(&t->mem, n_doubtful, sizeof(*t->doubtful)) : NULL;
	if (!t->doubtful)
		return;
	node_each(t->m, n)
		if (n->shorts[0].resource)
			t->doubtful[t->n_doubtful++] = n;
}

/* Add the label with its kind. */
static void label_kind(struct taking *t, const struct node *n, struct snap_node *sn)
{
	const size_t had = sn->labels.n;
	const char **words;

	if (!t->by_kind || !*n->kind)
		return;
	words = gpuq_arena_calloc(&t->mem, 2 * (had + 1), sizeof(*words));
	if (!words)
		return;
	for (size_t i = 0; i < had; i++) {
		words[i] = sn->labels.keys[i];
		words[had + 1 + i] = sn->labels.vals[i];
	}
	words[had] = PRODUCT_LABEL;
	words[2 * had + 1] = n->kind;
	sn->labels = (struct gpuq_strmap){ words, words + had + 1, had + 1 };
}

bool snapshot_take_by_kind(const struct taking *t, const struct gpuq_strlist *flavors)
{
	return t->by_kind && flavors->n && !gpuq_strlist_has(flavors, "default");
}

static void restrict_to_kinds(struct taking *t, const struct gpuq_strlist *flavors,
			      struct snap_group *g)
{
	struct product_terms required = { g->required, g->n_required };
	struct product_terms preferred = { g->preferred, g->n_preferred };

	if (!snapshot_take_by_kind(t, flavors) || (g->gpus_milli == 0 && !g->mig))
		return;
	product_require(&t->kinds, flavors, &t->scratch, &required);
	g->required = required.items;
	g->n_required = (uint32_t)required.n;
	if (flavors->n < 2)
		return;
	product_prefer(&t->kinds, flavors, &t->scratch, &preferred);
	g->preferred = preferred.items;
	g->n_preferred = (uint32_t)preferred.n;
}

/* ---- nodes and requests ---- */

/* Return how many of gpuq's pods have of the instances, which were whole or in another number of replicas when they
 * started: they are not for others. */
static uint32_t held_otherwise(const struct node *n, const char *profile)
{
	int64_t count = 0;
	const struct pod *p;

	DL_FOREACH2(n->pods, p, node_next)
		if (model_pod_has_instances(p, profile) &&
		    !gpuq_profile_same(model_pod_mig(p), profile))
			count += model_pod_instances(p);
	return (uint32_t)count;
}

/* Assume n replicas of devices that are not known on the last ones that have some left. */
static void take_replicas(int64_t n, int32_t milli, const int64_t *room, const struct snap_node *sn,
			  struct snap_device *devices)
{
	for (uint32_t d = sn->n_devices; d-- > 0 && n > 0;) {
		const int64_t left = room[d] - devices[d].foreign_milli / milli;
		const int64_t here = n < left ? n : left;

		if (here <= 0)
			continue;
		devices[d].foreign_milli = (int16_t)(devices[d].foreign_milli + here * milli);
		n -= here;
	}
}

/* Count the replicas that foreign pods hold, or the node lacks; those that pods of gpuq have of another size than
 * they are now; and no more free than the kubelet has left. */
static void spread_foreign(struct taking *t, const struct node *n, int64_t lacks,
			   struct snap_node *sn, struct snap_device *devices)
{
	const int32_t milli = snap_replica_milli(sn->replicas);
	int64_t *room = gpuq_arena_calloc(&t->mem, sn->n_devices + 1, sizeof(*room));
	const int64_t left = displaced_left(t->m, n);
	int64_t free = 0;

	sn->foreign_gpus = 0;
	if (!room)
		return;
	for (uint32_t d = 0; d < sn->n_devices; d++) {
		int64_t charged;
		const int64_t held = displaced_replicas(n, d, milli, &charged);
		const int64_t more = held * milli - charged;

		/* Its part beyond the charge is as good as held by others. */
		devices[d].foreign_milli = (int16_t)(more < 0            ? 0
						     : more < SNAP_MILLI ? more
									 : SNAP_MILLI);
		room[d] = sn->replicas > held
				  ? sn->replicas - held + devices[d].foreign_milli / milli
				  : 0;
	}
	take_replicas(n->foreign_gpus_milli / milli + lacks +
			      (displaced_devices(n) + milli - 1) / milli,
		      milli, room, sn, devices);
	for (uint32_t d = 0; d < sn->n_devices; d++)
		if (devices[d].healthy && room[d] > devices[d].foreign_milli / milli)
			free += room[d] - devices[d].foreign_milli / milli;
	if (free > left)
		take_replicas(free - left, milli, room, sn, devices);
}

/* True if some of the device is in use, or it does not work. */
static bool is_held(const struct node *n, uint32_t d, const struct snap_device *devices)
{
	return !devices[d].healthy || devices[d].foreign_milli || model_device_is_held(n, d);
}

/* Assume that devices which a node lacks, as its kubelet says, are the last ones that none of gpuq's
 * pods has. Return how many are not found. */
static int64_t lack_devices(const struct node *n, int64_t lacks, const struct snap_node *sn,
			    struct snap_device *devices)
{
	for (uint32_t d = sn->n_devices; d-- > 0 && lacks > 0;) {
		if (is_held(n, d, devices))
			continue;
		devices[d].foreign_milli = SNAP_MILLI;
		devices[d].foreign_memory_bytes = devices[d].memory_bytes;
		lacks--;
	}
	return lacks;
}

/* Subtract what pods hold of cards that the node offers otherwise now, from devices and then from instances; and
 * leave no more devices free than the kubelet has left. */
static void take_displaced(const struct model *m, const struct node *n, const struct snap_node *sn,
			   struct snap_device *devices, struct snap_mig *mig)
{
	const int64_t left = displaced_left(m, n);
	int64_t milli = displaced_devices(n) + displaced_instances(n), free = 0;
	const int64_t cards = (milli + SNAP_MILLI - 1) / SNAP_MILLI;

	milli -= (cards - lack_devices(n, cards, sn, devices)) * SNAP_MILLI;
	for (uint32_t i = sn->n_mig; i-- > 0;)
		while (milli > 0 && mig[i].foreign < mig[i].count) {
			milli -= cost_of_profile(mig[i].profile);
			mig[i].foreign++;
		}
	for (uint32_t d = 0; d < sn->n_devices; d++)
		free += !is_held(n, d, devices);
	free -= sn->foreign_gpus;
	if (free > left)
		lack_devices(n, free - left, sn, devices);
}

/* Add a node as it may be used now: what foreign pods hold is subtracted by the scheduler, and a
 * node that may be lost or is being drained takes nothing new. */
static void take_node(struct taking *t, const struct node *n, uint32_t *handle)
{
	const struct site_pool *pool = site_pool_find(t->m->site, n->pool);
	struct snap_device *devices =
		gpuq_arena_calloc(&t->mem, n->n_devices + 1, sizeof(*devices));
	struct snap_taint *taints =
		gpuq_arena_calloc(&t->mem, n->fact.n_taints + 1, sizeof(*taints));
	struct snap_mig *mig = gpuq_arena_calloc(&t->mem, n->fact.n_mig + 1, sizeof(*mig));
	struct snap_resource *resources =
		gpuq_arena_calloc(&t->mem, n->fact.n_resources + 1, sizeof(*resources));
	struct snap_node sn;
	int64_t lacks;

	*handle = SNAP_NONE;
	if (!devices || !taints || !mig || !resources)
		return;
	snapshot_node_default(&sn);
	sn.name = n->name;
	sn.pool = n->pool;
	sn.flavor = snapshot_taking_flavor(t, n->flavor);
	/* A flavor that the site no longer has counts as the default one. */
	if (sn.flavor == SNAP_NONE)
		sn.flavor = snapshot_taking_flavor(t, "default");
	sn.state = n->gone || !n->fact.ready                      ? SNAP_DOWN
		   : n->drain || n->fact.unschedulable || n->ill  ? SNAP_DRAINED
		   : n->frozen || n->backoff_until_us > t->now_us ? SNAP_SUSPECT
								  : SNAP_READY;
	sn.cpu_milli = n->fact.cpu_milli;
	sn.memory_bytes = n->fact.memory_bytes;
	sn.pods = n->fact.max_pods ? n->fact.max_pods : GPUQ_UNLIMITED;
	sn.foreign_cpu_milli = n->foreign_cpu_milli + node_lacks(n, "cpu", t->now_us);
	sn.foreign_memory_bytes = n->foreign_memory_bytes + node_lacks(n, "memory", t->now_us);
	sn.foreign_pods = n->foreign_pods + node_lacks(n, "pods", t->now_us);
	/* Which devices these are is not known: the sum is rounded up to whole ones. */
	sn.foreign_gpus = foreign_unknown(n);
	sn.n_devices = n->n_devices < SNAP_DEVICES_MAX ? n->n_devices : SNAP_DEVICES_MAX;
	if (n->closed)
		sn.n_devices = 0;
	sn.isolation_whole = (uint8_t)model_node_isolation(n, false);
	sn.isolation_part = (uint8_t)model_node_isolation(n, true);
	sn.slots = n->fact.slots < SNAP_MILLI ? n->fact.slots : SNAP_MILLI;
	sn.by_memory = n->backend && n->backend->by_memory;
	sn.unit_bytes = n->backend ? n->backend->unit_mib << 20 : 0;
	sn.replicas = n->fact.replicas < SNAP_MILLI ? n->fact.replicas : SNAP_MILLI;
	for (uint32_t i = 0; i < sn.n_devices; i++) {
		devices[i].healthy = n->devices[i].healthy;
		devices[i].memory_bytes = n->devices[i].memory_mib << 20;
		devices[i].foreign_milli = (int16_t)(n->foreign_on[i].cores_milli < SNAP_MILLI
							     ? n->foreign_on[i].cores_milli
							     : SNAP_MILLI);
		devices[i].foreign_memory_bytes = n->foreign_on[i].bytes;
	}
	lacks = n->fact.device && *n->fact.device ? node_lacks(n, n->fact.device, t->now_us) : 0;
	if (sn.replicas > 1)
		spread_foreign(t, n, lacks, &sn, devices);
	else if (lacks)
		lack_devices(n, lacks, &sn, devices);
	sn.devices_in = devices;
	/* The tables are square in the number of devices: they fit only if none was cut off. */
	if (sn.n_devices == n->n_devices) {
		sn.links = n->fact.links;
		sn.numa = n->fact.numa;
	}
	for (size_t i = 0; i < n->fact.n_mig; i++)
		mig[i] = (struct snap_mig){
			.profile = n->fact.mig[i].profile,
			.count = n->fact.mig[i].count,
			.foreign = n->foreign_mig[i] + held_otherwise(n, n->fact.mig[i].profile) +
				   node_lacks_instances(n, n->fact.mig[i].profile, t->now_us)
		};
	sn.mig = mig;
	sn.n_mig = (uint32_t)n->fact.n_mig;
	if (sn.replicas <= 1 && n->pods)
		take_displaced(t->m, n, &sn, devices, mig);
	for (size_t i = 0; i < n->fact.n_resources; i++)
		resources[i] = (struct snap_resource){
			n->fact.resources[i].name, n->fact.resources[i].count,
			n->foreign_amounts[i] + node_lacks(n, n->fact.resources[i].name, t->now_us)
		};
	sn.resources = resources;
	sn.n_resources = (uint32_t)n->fact.n_resources;
	sn.labels = n->fact.labels;
	label_kind(t, n, &sn);
	/* A node that is not well is out of service; it still has what it has. */
	for (size_t i = 0; i < n->fact.n_taints; i++)
		if (!n->fact.taints[i].ill)
			taints[sn.n_taints++] =
				(struct snap_taint){ n->fact.taints[i].key, n->fact.taints[i].value,
						     n->fact.taints[i].effect };
	sn.taints = taints;
	snapshot_pools_tolerate(pool, taints, &sn.n_taints);
	/* A job is spread only where every pool with its flavors is. */
	if (t->packs && n->n_devices && !(pool && pool->placement == SITE_PLACEMENT_SPREAD))
		t->packs[sn.flavor] = true;
	snapshot_pools_end(t, n, &sn);
	if (t->n_came)
		snapshot_pools_node(t, n, &sn);
	snapshot_cuts_node(t, n, &sn);
	if (t->objects)
		snapshot_claims_node(snapshot_objects_claims(t->objects), n, &sn);
	MORE(t, node, n, &sn);
	snapshot_pools_label(t->m->site, sn.pool, t->flavors[sn.flavor], &t->mem, &sn.labels);
	*handle = snapshot_add_node(t->s, &sn);
}

/* Exclude nodes that cannot share devices in the way requested: in each of its terms. */
static void bar_sharing(struct taking *t, const struct gpuq_group *g, bool flavors,
			struct snap_group *out)
{
	const char *const *const words[] = { backend_barred(g, t->has_claims, &t->scratch),
					     t->has_others && backend_wants_nvidia(g, flavors)
						     ? t->others
						     : NULL };
	static const char *const keys[] = { REQUIRE_SHARING_KEY, SHARE_DEVICES };
	const size_t n = g->n_required ? g->n_required : 1;
	struct gpuq_term *terms;

	if (!words[0] && !words[1])
		return;
	terms = gpuq_arena_calloc(&t->scratch, n, sizeof(*terms));
	for (size_t i = 0; terms && i < n; i++) {
		const size_t had = g->n_required ? g->required[i].n : 0;
		struct gpuq_require *all = gpuq_arena_calloc(&t->scratch, had + 2, sizeof(*all));

		if (!all)
			return;
		for (size_t k = 0; k < had; k++)
			all[k] = g->required[i].all[k];
		terms[i] = (struct gpuq_term){ .all = all, .n = had };
		for (size_t k = 0; k < 2; k++) {
			size_t n_words = 0;

			while (words[k] && words[k][n_words])
				n_words++;
			if (n_words)
				all[terms[i].n++] =
					(struct gpuq_require){ keys[k],
							       GPUQ_OP_NOT_IN,
							       { (const char **)(uintptr_t)words[k],
								 n_words } };
		}
	}
	out->required = terms;
	out->n_required = terms ? (uint32_t)n : 0;
}

/* Add the request of a spec without a choice. others: requests that do as well. */
static uint32_t take_one(struct taking *t, const struct request_spec *spec,
			 const struct request *of, const struct queue *in,
			 const struct snap_amounts *taken, const uint32_t *others,
			 uint32_t n_others)
{
	struct snap_license_need *needs;
	struct snap_group *groups;
	struct snap_request sr;

	gpuq_arena_reset(&t->scratch);
	groups = gpuq_arena_calloc(&t->scratch, spec->n_groups, sizeof(*groups));
	needs = gpuq_arena_calloc(
		&t->scratch, spec->licenses.n + snapshot_objects_volumes(spec) + 1, sizeof(*needs));
	if (!groups || !needs)
		return SNAP_NONE;
	sr = (struct snap_request){ .groups = groups };
	for (size_t i = 0; i < spec->n_groups; i++) {
		struct gpuq_group g;

		request_group_of(&spec->groups[i], &g);
		snapshot_group_from_spec(&g, &groups[i]);
		groups[i].choice = spec->groups[i].choice;
		sr.in_order |= n_others && spec->groups[i].choice.first;
		bar_sharing(t, &g, spec->flavors.n > 0, &groups[i]);
		restrict_to_kinds(t, &spec->flavors, &groups[i]);
		groups[i].isolation = spec->isolation;
		if (in && model_queue_isolation(in) > spec->isolation)
			groups[i].isolation = (uint8_t)model_queue_isolation(in);
		snapshot_pools_bar(t, spec, snapshot_pools_spot(spec, true, 0, 1), &groups[i]);
		if (in)
			snapshot_objects_group(t->objects, in, &spec->groups[i], &groups[i]);
		if (in && g.n_claims)
			snapshot_claims_group(snapshot_objects_claims(t->objects),
					      model_queue_namespace(in), of, (uint32_t)i, &g,
					      spec->groups[i].choice, !t->placed, &groups[i]);
		if (taken) {
			groups[i].cpu_milli = taken[i].cpu_milli;
			groups[i].memory_bytes = taken[i].memory_bytes;
		}
	}
	if (of)
		MORE(t, request, of, groups);
	sr.n_groups = (uint32_t)spec->n_groups;
	if (!snapshot_take_by_kind(t, &spec->flavors)) {
		sr.flavors = spec->flavors.items;
		sr.n_flavors = (uint32_t)spec->flavors.n;
	}
	sr.waits_us = snapshot_pools_waits(t, spec);
	for (size_t i = 0; i < spec->licenses.n; i++) {
		/* Licenses that the site does not have are ignored here. */
		uint32_t ix = 0;

		site_each(site_license, t->m->site->licenses, l) {
			if (strcmp(l->name, spec->licenses.keys[i]) == 0) {
				needs[sr.n_licenses].license = ix;
				needs[sr.n_licenses++].count =
					strtoll(spec->licenses.vals[i], NULL, 10);
			}
			ix++;
		}
	}
	if (in)
		snapshot_objects_needs(t->objects, in, spec, needs, &sr.n_licenses);
	sr.licenses = needs;
	sr.exclusive = spec->exclusive;
	sr.others = others;
	sr.n_others = n_others;
	return snapshot_add_request(t->s, &sr);
}

uint32_t snapshot_take_request(struct taking *t, const struct request_spec *spec,
			       const struct request *of, const struct queue *in,
			       const struct snap_amounts *taken)
{
	uint32_t others[GPUQ_MIG_TRIES_MAX], n;
	const struct snap_choice *choices = snapshot_choices_of(t, spec, in, &n);
	const struct request_spec *own;

	for (uint32_t i = 1; i < n; i++) {
		own = snapshot_choices_pick(t, spec, &choices[i]);
		others[i - 1] = own ? take_one(t, own, of, in, taken, NULL, 0) : SNAP_NONE;
		if (others[i - 1] == SNAP_NONE)
			return SNAP_NONE;
	}
	own = n ? snapshot_choices_pick(t, spec, &choices[0]) : spec;
	return own ? take_one(t, own, of, in, taken, others, n ? n - 1 : 0) : SNAP_NONE;
}

uint32_t snapshot_take_base(struct taking *t, const struct request *r)
{
	return snapshot_objects_named(&r->spec) ? SNAP_NONE
						: snapshot_take_request(t, &r->spec, r, NULL, NULL);
}

/* Add a job that was not submitted, as if it were pending. */
static void take_guest(struct taking *t, const struct start_guest *g, uint32_t id)
{
	const struct gpuq_spec *spec = g->spec;
	struct request_spec asked;
	const struct queue *q = model_find_queue(t->m, g->queue);
	const struct snap_variant *v;
	const struct site_qos *qos = site_qos_find(t->m->site, g->qos);
	const struct wish wish = { .grace_us = spec->checkpoint.grace_us ? spec->checkpoint.grace_us
									 : spec->grace_us };
	/* Its grace period follows from its settings alone, as for a real job. */
	const struct job like = { .qos = g->qos, .wish = &wish };
	struct snap_range *ranges =
		gpuq_arena_calloc(&t->mem, spec->array.n_ranges + 1, sizeof(*ranges));
	struct snap_job sj;

	if (!ranges || !request_spec_of(&t->mem, spec, &asked))
		return;
	snapshot_job_default(&sj);
	sj.key = (struct snap_key){ id, -1 };
	sj.queue = t->queue_of[q->ix];
	if (qos && !qos->preemptible)
		asked.spot = (uint8_t)snapshot_pools_spot(&asked, false, 0, 1);
	snapshot_pools_wait(t, &asked, t->now_us, &sj);
	v = snapshot_objects_of(t->objects, q, &asked, NULL);
	sj.request = snapshot_take_request(t, &asked, NULL, v ? q : NULL, NULL);
	if (v && v->gate != GPUQ_R_NONE) {
		sj.gate = v->gate;
		sj.gate_object = v->gate_object;
	}
	sj.user = snapshot_user(t->s, g->user);
	sj.priority = qos ? qos->priority : 0;
	sj.nice = spec->nice;
	sj.fixed_priority = spec->priority;
	sj.submit_us = sj.eligible_us = t->now_us;
	sj.begin_us = walltime_to_ledger(spec->begin_us, t->m->ahead_us);
	sj.deadline_us = walltime_to_ledger(spec->deadline_us, t->m->ahead_us);
	sj.walltime_us = g->time_limit_us;
	sj.walltime_min_us = spec->time_min_us;
	sj.grace_us = job_evicted_us(t->m, &like);
	sj.preemptible = !qos || qos->preemptible;
	sj.min_runtime_us = qos ? qos->min_runtime_us : 0;
	for (size_t i = 0; i < spec->array.n_ranges; i++)
		ranges[i] = (struct snap_range){ (int32_t)spec->array.ranges[i].first,
						 (int32_t)spec->array.ranges[i].last,
						 (int32_t)spec->array.ranges[i].step };
	sj.ranges = ranges;
	sj.n_ranges = (uint32_t)spec->array.n_ranges;
	sj.throttle = (uint32_t)spec->array.throttle;
	if (t->caps)
		snapshot_caps_fill(t->caps, q, g->user, g->qos, &sj);
	snapshot_add_job(t->s, &sj);
}

/* Add the parts of the snapshot that do not change as jobs come and go. */
static bool take_begin(struct taking *t)
{
	struct snap_config config;

	snapshot_config_default(&config);
	t->s = snapshot_new(&config);
	if (!t->s)
		return false;
	take_flavors(t);
	t->has_others = any_others(t->m);
	t->others = t->has_others ? inventory_others(t->m->site, &t->mem) : NULL;
	t->has_claims = node_any_of_claims(t->m);
	take_kinds(t);
	take_doubtful(t);
	snapshot_pools_offers(t);
	return true;
}

/* Fill in the configuration: it is taken after snapshot_new(), since an early snapshot began at
 * another moment. */
static void take_config(struct taking *t)
{
	struct snap_config *config = &t->s->config;

	snapshot_config_default(config);
	config->now_us = t->now_us;
	config->levels = t->m->site->topology.items;
	config->n_levels = (uint32_t)t->m->site->topology.n;
	snapshot_set_policy(t->m, config);
	MORE(t, config, config);
	site_each(site_pool, t->m->site->pools, p)
		t->spread |= p->placement == SITE_PLACEMENT_SPREAD;
}

/* Return the first request that is not in the snapshot yet: new ones follow all others. */
static struct request *first_left(const struct taking *t)
{
	struct request *last = t->early_at ? request_find(&t->m->requests, t->early_at) : NULL;

	return last ? last->next : t->m->requests.list;
}

/* Add all requests, but those that were added early; of a part, each with its first job. */
static void take_requests(struct taking *t)
{
	if (t->part)
		return;
	for (struct request *r = first_left(t); r; r = r->next) {
		if (!t->early) {
			r->snap_ix = snapshot_take_base(t, r);
		} else if (r->early_turn != t->early) {
			r->early_ix = snapshot_take_base(t, r);
			r->early_turn = t->early;
		}
	}
}

/* Add all that comes before jobs. */
static bool take_before_jobs(struct taking *t)
{
	const struct model *m = t->m;

	if (!t->s && !take_begin(t))
		return false;
	t->objects = snapshot_objects_new(m, &t->mem);
	if (t->objects)
		snapshot_objects_licenses(t->objects, t->s);
	take_config(t);
	take_queues(t);
	snapshot_pools_begin(t);
	for (struct node *n = m->nodes; n; n = n->hh.next)
		take_node(t, n, &n->snap_ix);
	snapshot_pools_add(t);
	MORE(t, made_up, t->s);
	snapshot_pools_close(t);
	take_requests(t);
	if (t->queue_of)
		snapshot_add_usages(m, t->now_us, t->queue_of, t->s);
	if (t->queue_of)
		snapshot_add_calendar(m, t->now_us, t->queue_of, t->s);
	t->caps = snapshot_caps_new(m, t->s, t->now_us, &t->mem);
	return t->queue_of && t->caps && t->objects;
}

/* Add what comes after jobs, and begin to seal it, or seal it. */
static int take_end(struct taking *t, struct gpuq_buf *packed, struct snapshot **out,
		    struct gpuq_err *err)
{
	bool more;
	int rc;

	if (t->queue_of)
		snapshot_losses(&(struct snap_past){ .m = t->m,
						     .now_us = t->now_us,
						     .queue_of = t->queue_of,
						     .mem = &t->mem },
				t->s);
	snapshot_caps_done(t->caps);
	snapshot_objects_done(t->objects);
	if (packed)
		snapshot_pack(t->s, packed);
	rc = !out ? 0 : t->early ? snapshot_seal_step(t->s, &more, err) : snapshot_seal(t->s, err);
	gpuq_arena_done(&t->mem);
	gpuq_arena_done(&t->scratch);
	if (rc < 0 || !out) {
		snapshot_free(t->s);
		return rc;
	}
	*out = t->s;
	return 0;
}

/* Take the whole snapshot in one step. */
static int take(struct taking *t, const struct start_guest *guests, uint32_t n_guests,
		struct gpuq_buf *packed, struct snapshot **out, struct gpuq_err *err)
{
	if (!take_before_jobs(t) && (!t->s || !t->objects)) {
		snapshot_caps_done(t->caps);
		snapshot_free(t->s);
		gpuq_arena_done(&t->mem);
		gpuq_arena_done(&t->scratch);
		return gpuq_no_memory(err);
	}
	snapshot_take_jobs(t);
	for (uint32_t i = 0; t->queue_of && i < n_guests; i++)
		take_guest(t, &guests[i], t->m->next_job_id + i);
	return take_end(t, packed, out, err);
}

/* Replace the handles of queues, nodes and requests by their places in the sealed snapshot. */
static void use_sealed(struct taking *t)
{
	const struct model *m = t->m;

	for (uint32_t i = 0; i < m->n_queues; i++)
		t->queue_of[i] = snapshot_find_queue(t->s, m->queues[i]->name);
	for (struct node *n = m->nodes; n; n = n->hh.next)
		n->snap_ix = snapshot_find_node(t->s, n->name);
	t->early = ++m->readers->early_turn;
	for (struct request *r = m->requests.list; r; r = r->next) {
		r->early_ix = r->snap_ix;
		r->early_turn = t->early;
	}
}

int snapshot_take_empty(struct taking *t, struct gpuq_err *err)
{
	const struct model *m = t->m;
	int rc;

	if (!take_before_jobs(t))
		return gpuq_no_memory(err);
	snapshot_caps_done(t->caps); /* a site with limits is not kept */
	t->caps = NULL;
	/* Pairs of queue and user are added before sealing, which orders them. */
	job_each(m, j)
		snapshot_usage(t->s, t->queue_of[j->queue->ix], snapshot_user(t->s, j->user));
	t->s->builder->kept = true;
	rc = snapshot_seal(t->s, err);
	if (rc == 0)
		use_sealed(t);
	return rc;
}

int snapshot_take_usage(const struct model *m, int64_t now_us, struct snapshot **out,
			struct gpuq_err *err)
{
	struct taking t = { .m = m, .now_us = now_us };
	struct snap_config config;
	int rc;

	snapshot_config_default(&config);
	config.now_us = now_us;
	t.s = snapshot_new(&config);
	if (!t.s)
		return gpuq_no_memory(err);
	take_flavors(&t);
	take_queues(&t);
	if (t.queue_of)
		snapshot_add_usages(m, now_us, t.queue_of, t.s);
	rc = snapshot_seal(t.s, err);
	gpuq_arena_done(&t.mem);
	if (rc < 0) {
		snapshot_free(t.s);
		return rc;
	}
	*out = t.s;
	return 0;
}

int snapshot_take_packed(const struct model *m, int64_t now_us, struct gpuq_buf *packed,
			 struct snapshot **out, struct gpuq_err *err)
{
	struct taking t = { .m = m, .now_us = now_us };

	return take(&t, NULL, 0, packed, out, err);
}

int snapshot_take_few(const struct model *m, int64_t now_us, uint32_t most, struct gpuq_buf *packed,
		      struct snapshot **out, struct gpuq_err *err)
{
	struct taking t = { .m = m, .now_us = now_us, .few = true, .most = most };

	return take(&t, NULL, 0, packed, out, err);
}

int snapshot_take_part(const struct model *m, int64_t now_us, uint32_t most, struct snapshot **out,
		       struct gpuq_err *err)
{
	struct taking t = { .m = m,
			    .now_us = now_us,
			    .few = true,
			    .most = most,
			    .early = ++m->readers->early_turn,
			    .part = true };

	return take(&t, NULL, 0, NULL, out, err);
}

#define EARLY_LEAST 2048 /* number of requests that makes it worthwhile */

struct snapshot_early {
	struct taking t;
	const struct model *m;
};

struct snapshot_early *snapshot_early_begin(const struct model *m)
{
	struct snapshot_early *e;

	if (m->requests.by_id.n < EARLY_LEAST)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->t = (struct taking){ .m = m, .early = ++m->readers->early_turn };
	e->m = m;
	if (take_begin(&e->t))
		return e;
	snapshot_early_drop(e);
	return NULL;
}

bool snapshot_early_go_on(struct snapshot_early *e, uint32_t most)
{
	/* Where the last one has gone, the search skips the added ones from the beginning. */
	struct request *r = first_left(&e->t);

	for (; r && most > 0; r = r->next) {
		e->t.early_at = r->id;
		if (r->early_turn == e->t.early)
			continue;
		r->early_ix = snapshot_take_base(&e->t, r);
		r->early_turn = e->t.early;
		most--;
	}
	return !r;
}

bool snapshot_early_jobs_begin(struct snapshot_early *e, int64_t now_us, uint32_t most)
{
	/* Where a request fits depends on the nodes. */
	if (e->t.has_others != any_others(e->m) || e->t.has_claims != node_any_of_claims(e->m))
		return false;
	e->t.now_us = now_us;
	e->t.few = true;
	e->t.most = most;
	if (!take_before_jobs(&e->t))
		return false;
	snapshot_take_jobs_begin(&e->t);
	return true;
}

bool snapshot_early_jobs(struct snapshot_early *e, uint32_t most)
{
	return snapshot_take_jobs_go_on(&e->t, most);
}

void snapshot_early_drop(struct snapshot_early *e)
{
	if (!e)
		return;
	e->m->readers->take_next = e->m->readers->take_last = NULL;
	snapshot_caps_done(e->t.caps);
	snapshot_objects_done(e->t.objects);
	snapshot_free(e->t.s);
	gpuq_arena_done(&e->t.mem);
	gpuq_arena_done(&e->t.scratch);
	free(e);
}

int snapshot_take_late(struct snapshot_early *e, struct gpuq_buf *packed, struct snapshot **out,
		       struct gpuq_err *err)
{
	struct taking t = e->t;

	free(e);
	return take_end(&t, packed, out, err);
}

/* Mark the jobs in question, which get entries of their own, or remove the mark. */
static void set_alone(const struct model *m, const struct start_question *q, bool alone)
{
	for (uint32_t i = 0; i < q->n_jobs; i++) {
		struct job *j = model_find_job(m, q->jobs[i]);

		if (j)
			j->alone = alone;
	}
}

int snapshot_take_question(const struct model *m, int64_t now_us, const struct start_question *q,
			   struct gpuq_buf *packed, struct snapshot **out, struct gpuq_err *err)
{
	struct taking t = { .m = m,
			    .now_us = now_us,
			    .few = true,
			    .most = q->most ? q->most : QUESTION_ALIKE,
			    .reader = ALIKE_QUESTION };
	int rc;

	for (uint32_t i = 0; i < q->n_guests; i++)
		if (!model_find_queue(m, q->guests[i].queue))
			return gpuq_fail(err, GPUQ_ENOENT, "no such queue: %s", q->guests[i].queue);
	set_alone(m, q, true);
	rc = take(&t, q->guests, q->n_guests, packed, out, err);
	set_alone(m, q, false);
	return rc;
}

int snapshot_take_with(const struct model *m, int64_t now_us, const struct snapshot_more *more,
		       struct snapshot **out, struct gpuq_err *err)
{
	struct taking t = { .m = m, .now_us = now_us, .more = more };

	return take(&t, NULL, 0, NULL, out, err);
}

int snapshot_take(const struct model *m, int64_t now_us, struct snapshot **out,
		  struct gpuq_err *err)
{
	return snapshot_take_packed(m, now_us, NULL, out, err);
}
