#include "gpuqd/flow/report/export_cluster.h"

#include <stdio.h>
#include <string.h>

#include "gpuqd/site/layouts.h"
#include "gpuqd/site/price.h"
#include "gpuqd/site/site.h"
#include "gpuqd/state/asks/ask.h"
#include "libgpuq/units.h"
#include "libgpuq/spec/profile.h"

static const char *const states[] = { "ready", "drained", "suspect", "down" };

static void export_reservations(struct export *x, struct gpuq_val *config)
{
	struct gpuq_val *list = gpuq_list(x->a);

	for (uint32_t i = 0; i < x->s->n_reservations; i++) {
		const struct snap_reservation *r = &x->s->reservations[i];
		struct gpuq_val *v = gpuq_add(x->a, list, gpuq_map(x->a));
		struct gpuq_val *nodes = gpuq_list(x->a);

		export_str(x, v, "name", r->name);
		export_time(x, v, "start", r->start_us);
		export_span(x, v, "duration", r->end_us - r->start_us);
		for (uint32_t k = 0; k < r->n_nodes; k++)
			gpuq_add(x->a, nodes, gpuq_str(x->a, x->s->nodes[r->nodes[k]].name));
		if (r->n_nodes)
			export_put(x, v, "nodes", nodes);
		else
			export_milli(x, v, "gpus", r->gpus_milli);
		if (r->queue != SNAP_NONE)
			export_str(x, v, "queue", x->s->queues[r->queue].name);
		if (r->release_us)
			export_span(x, v, "release_after", r->release_us);
		if (!r->maintenance && !r->ends_jobs)
			export_str(x, v, "at_end", site_at_ends[SITE_AT_END_KEEP]);
		export_str(x, v, "kind", r->maintenance ? "maintenance" : "user");
	}
	if (x->s->n_reservations)
		export_put(x, config, "reservations", list);
}

/* Write the priority weights, scaled as in a scenario: there the highest job priority gets all
 * points. */
static void export_weights(struct export *x, struct gpuq_val *config)
{
	const struct snap_weights *w = &x->s->config.weights;
	struct gpuq_val *v = gpuq_map(x->a);
	int64_t highest = 0;

	for (uint32_t i = 0; i < x->s->n_jobs; i++) {
		const int64_t p = x->s->jobs[i].priority, size = p < 0 ? -p : p;

		highest = size > highest ? size : highest;
	}
	export_int(x, v, "age", w->age);
	export_int(x, v, "fairshare", w->fair_share);
	export_int(x, v, "size", w->size);
	export_int(x, v, "qos", highest < w->qos_full ? w->qos / w->qos_full * highest : w->qos);
	export_int(x, v, "stretch", w->stretch);
	export_put(x, config, "priority_weights", v);
}

void export_config(struct export *x)
{
	const struct snap_config *c = &x->s->config;
	struct gpuq_val *v = export_add(x, "config"), *map = gpuq_map(x->a);
	const char **flavors = gpuq_arena_calloc(x->a, x->s->n_flavors + 1, sizeof(*flavors));

	export_str(x, v, "unit", "second");
	export_time(x, v, "now", c->now_us);
#define X(kind, member, key, dflt, absent, recorded, names, ...)                                   \
	EXPORT_##kind(x, v, key, c->member, names);
	POLICY_SCHED_KEYS(X)
#undef X
	export_span(x, v, "idle_window", x->m->policy.idle_window_us);
	export_milli(x, v, "usage_k", c->usage_k_milli);
	if (x->m->policy.usage_half_life_us)
		export_span(x, v, "usage_half_life", x->m->policy.usage_half_life_us);
	else
		export_int(x, v, "usage_half_life", -1);
	export_weights(x, v);
	export_strs(x, v, "topology_levels", c->levels, c->n_levels);
	for (uint32_t f = 0; flavors && f < x->s->n_flavors; f++)
		flavors[f] = x->s->flavors[f].name;
	if (flavors)
		export_strs(x, v, "flavors", flavors, x->s->n_flavors);
	for (uint32_t i = 0; i < x->s->n_licenses; i++)
		export_int(x, map, x->s->licenses[i].name, x->s->licenses[i].count);
	if (x->s->n_licenses)
		export_put(x, v, "licences", map);
	export_reservations(x, v);
}

static void export_labels(struct export *x, struct gpuq_val *v, const struct node *n)
{
	struct gpuq_val *labels = gpuq_map(x->a), *taints = gpuq_list(x->a);

	for (size_t i = 0; i < n->fact.labels.n; i++)
		export_str(x, labels, n->fact.labels.keys[i], n->fact.labels.vals[i]);
	if (n->fact.labels.n)
		export_put(x, v, "labels", labels);
	for (size_t i = 0; i < n->fact.n_taints; i++) {
		struct gpuq_val *t = gpuq_add(x->a, taints, gpuq_map(x->a));

		export_str(x, t, "key", n->fact.taints[i].key);
		export_str(x, t, "value", n->fact.taints[i].value);
		export_str(x, t, "effect", n->fact.taints[i].effect);
	}
	if (n->fact.n_taints)
		export_put(x, v, "taints", taints);
}

/* True if some job takes of the resource: others make no difference. */
static bool is_asked(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->n_extras; i++)
		if (strcmp(s->extras[i], name) == 0)
			return true;
	return false;
}

/* Name a profile as a scenario does: under which resource replicas are had is nothing to it. */
static const char *profile_of(struct export *x, const char *profile)
{
	const uint32_t replicas = gpuq_profile_replicas(profile);
	char whole[GPUQ_PROFILE_ROOM], name[GPUQ_PROFILE_ROOM];

	if (replicas <= 1)
		return profile;
	snprintf(whole, sizeof(whole), "%.*s", (int)gpuq_profile_whole(profile), profile);
	return gpuq_arena_strdup(x->a, gpuq_profile_share(whole, true, replicas, name));
}

/* Write MIG instances, countable resources, device links, and what is near the devices. */
static void export_parts(struct export *x, struct gpuq_val *v, const struct snap_node *n)
{
	const struct snap_joint *j = n->joint == SNAP_NONE ? NULL : &x->s->joints[n->joint];
	struct gpuq_val *mig = gpuq_map(x->a), *links = gpuq_list(x->a), *numa = gpuq_list(x->a);
	struct gpuq_val *resources = gpuq_map(x->a);

	for (uint32_t i = 0; i < n->n_mig; i++)
		export_int(x, mig, profile_of(x, n->mig[i].profile),
			   n->mig[i].count > n->mig[i].foreign ? n->mig[i].count - n->mig[i].foreign
							       : 0);
	if (n->n_mig)
		export_put(x, v, "mig", mig);
	for (uint32_t i = 0; i < n->n_resources; i++)
		if (is_asked(x->s, n->resources[i].name))
			export_int(x, resources, n->resources[i].name,
				   n->resources[i].count > n->resources[i].foreign
					   ? n->resources[i].count - n->resources[i].foreign
					   : 0);
	if (resources && resources->n)
		export_put(x, v, "resources", resources);
	for (uint32_t d = 0; j && j->links && d < j->n_devices; d++) {
		struct gpuq_val *row = gpuq_add(x->a, links, gpuq_list(x->a));

		for (uint32_t k = 0; k < j->n_devices; k++)
			gpuq_add(x->a, row, gpuq_int(x->a, j->links[d * j->n_devices + k]));
	}
	if (j && j->links)
		export_put(x, v, "links", links);
	for (uint32_t d = 0; j && j->numa && d < j->n_devices; d++)
		gpuq_add(x->a, numa, gpuq_int(x->a, j->numa[d]));
	if (j && j->numa)
		export_put(x, v, "numa", numa);
}

void export_node(struct export *x, const struct snap_node *sn)
{
	const struct node *n = model_find_node(x->m, sn->name);
	struct gpuq_val *v = export_add(x, "nodes");
	int64_t memory = 0;

	export_str(x, v, "name", sn->name);
	export_int(x, v, "gpus", sn->n_devices);
	if (sn->replicas > 1)
		export_int(x, v, "replicas", sn->replicas);
	for (uint32_t d = 0; d < sn->n_devices; d++)
		if (x->s->devices[sn->device_first + d].memory_bytes > memory)
			memory = x->s->devices[sn->device_first + d].memory_bytes;
	if (memory)
		export_int(x, v, "gpu_mem_mb", memory >> 20);
	if (sn->cpu_milli != GPUQ_UNLIMITED)
		export_int(x, v, "cpu",
			   sn->cpu_milli > sn->foreign_cpu_milli
				   ? sn->cpu_milli - sn->foreign_cpu_milli
				   : 0);
	if (sn->memory_bytes != GPUQ_UNLIMITED)
		export_int(x, v, "mem_mb",
			   sn->memory_bytes > sn->foreign_memory_bytes
				   ? (sn->memory_bytes - sn->foreign_memory_bytes) >> 20
				   : 0);
	if (sn->pods != GPUQ_UNLIMITED)
		export_int(x, v, "max_pods",
			   sn->pods > sn->foreign_pods ? sn->pods - sn->foreign_pods : 0);
	if (sn->pool && *sn->pool)
		export_str(x, v, "pool", sn->pool);
	if (sn->n_devices || sn->n_mig)
		export_str(x, v, "flavor", x->s->flavors[sn->flavor].name);
	export_parts(x, v, sn);
	/* One that has come for a request, and waits for the others of it, is as good as ready. */
	export_str(x, v, "state", states[sn->state < SNAP_ASKED ? sn->state : SNAP_READY]);
	if (n)
		export_labels(x, v, n);
}

/* Write the taints of its nodes that keep jobs away. */
static void export_taints(struct export *x, struct gpuq_val *v, const struct site_pool *p)
{
	const struct gpuq_objects *all = &p->provisioning->machine->taints;
	struct gpuq_val *taints = gpuq_list(x->a);

	for (size_t i = 0; i < all->n; i++) {
		const struct provision_taint *in = &((const struct provision_taint *)all->items)[i];
		const char *value = in->value ? in->value : "";
		const char *effect = provision_effects[in->effect];
		struct gpuq_val *t;

		if (site_pool_tolerates(p, in->key, value, effect))
			continue;
		t = gpuq_add(x->a, taints, gpuq_map(x->a));
		export_str(x, t, "key", in->key);
		export_str(x, t, "value", value);
		export_str(x, t, "effect", effect);
	}
	if (taints && taints->n)
		export_put(x, v, "taints", taints);
}

/* Write the layouts that its nodes may be given. How long a manager takes for one is not known. */
static void export_layouts(struct export *x, struct gpuq_val *v, const struct site_layouts *l)
{
	struct gpuq_val *mig = gpuq_map(x->a), *names = gpuq_list(x->a);

	if (!layouts_are_on(l))
		return;
	export_put(x, v, "mig", mig);
	export_put(x, mig, "manager", gpuq_bool(x->a, true));
	export_put(x, mig, "layouts", names);
	for (size_t i = 0; i < l->names.n; i++)
		gpuq_add(x->a, names, gpuq_str(x->a, l->names.items[i]));
	export_span(x, mig, "again", l->again_us);
}

/* Write a pool that has the nodes that there are, and gets no others. */
static void export_settled(struct export *x, const struct site_pool *p)
{
	struct gpuq_val *v = layouts_are_on(p->mig) ? export_add(x, "pools") : NULL;

	if (!v)
		return;
	export_str(x, v, "name", p->name);
	if (p->flavor)
		export_str(x, v, "flavor", p->flavor);
	export_layouts(x, v, p->mig);
}

static void export_growing(struct export *x, const struct site_pool *p)
{
	const struct provision *how = p->provisioning;
	const struct provision_machine *is = how->machine;
	const int64_t wait_s = ask_pool_wait_s(ask_pool_find(x->m, p->name), 50);
	struct gpuq_val *v, *labels;
	const int64_t left = how->max_nodes - model_pool_nodes(x->m, p->name);

	if (left <= 0) {
		export_settled(x, p);
		return;
	}
	v = export_add(x, "pools");
	labels = gpuq_map(x->a);
	export_str(x, v, "name", p->name);
	export_str(x, v, "flavor", p->flavor);
	export_int(x, v, "max", left);
	export_int(x, v, "gpus", is->gpus);
	if (is->cpu_milli)
		export_int(x, v, "cpu", is->cpu_milli);
	if (is->memory_bytes)
		export_int(x, v, "mem_mb", is->memory_bytes >> 20);
	for (size_t i = 0; i < is->labels.n; i++)
		export_str(x, labels, is->labels.keys[i], is->labels.vals[i]);
	if (is->labels.n)
		export_put(x, v, "labels", labels);
	export_taints(x, v, p);
	export_milli(x, v, "price", price_micro(x->m->site, p->name, p->flavor) / 1000);
	if (p->spot)
		export_put(x, v, "spot", gpuq_bool(x->a, true));
	if (site_pool_requests(p))
		export_int(x, v, "max_requests", how->max_requests);
	/* Without past requests they come by node_up. */
	if (wait_s >= 0)
		export_span(x, v, "provision_delay", wait_s * GPUQ_US_PER_S);
	export_layouts(x, v, p->mig);
}

void export_pool(struct export *x, const struct site_pool *p)
{
	if (site_pool_grows(p))
		export_growing(x, p);
	else
		export_settled(x, p);
}
