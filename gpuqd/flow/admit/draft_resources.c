#include "gpuqd/flow/admit/draft_resources.h"

#include <string.h>

#include "gpuqd/devices/dra/dra_charge.h"
#include "gpuqd/site/inventory.h"
#include "libgpuq/limits.h"
#include "libgpuq/spec/resource.h"

/* ---- gres ---- */

static int no_gres(const struct draft *d, const char *name, struct gpuq_err *err)
{
	const struct gpuq_strmap *gres = &d->m->site->gres;
	const char *names[128];
	size_t n = 0;
	int rc;

	for (; n < gres->n && n < 127; n++)
		names[n] = gres->keys[n];
	names[n] = NULL;
	rc = draft_unknown("gres of the site", "gres", name, names, err);
	if (n == 0)
		rc = gpuq_fail_field(
			err, GPUQ_ENOENT, "gres",
			"%s is unknown, as the site maps no gres: use resources, "
			"--licenses or --constraint, or have an operator add it to gres "
			"of the site",
			name);
	return rc;
}

/* Refuse what a job file could not request under the name that the site has for it. */
static int check_mapped(const struct draft *d, const struct gpuq_group *g, const char *gres,
			const struct gpuq_amount *is, struct gpuq_err *err)
{
	const char *never = gpuq_resource_never(is->name);
	struct gpuq_err why = GPUQ_ERR_INIT;
	int rc;

	if (never)
		return gpuq_fail_field(err, GPUQ_EINVAL, "gres", "%s, which is %.80s: %s", gres,
				       is->name, never);
	rc = gpuq_amount_check(is, &why);
	if (rc < 0)
		return gpuq_fail_field(err, rc, "gres", "%s, which is %.80s: %s", gres, is->name,
				       why.text);
	if (g->gpus_milli && inventory_is_device(d->m->site, is->name))
		return gpuq_fail_field(err, GPUQ_EINVAL, "gres",
				       "expected one kind of device in a pod: %s, which is %.80s, "
				       "is requested in addition to gpus",
				       gres, is->name);
	return 0;
}

/* Names and amounts are the draft's own. */
static int map_gres(struct draft *d, struct gpuq_group *g, struct gpuq_err *err)
{
	struct gpuq_amount *items;
	bool any = false;
	int rc;

	for (size_t i = 0; i < g->n_resources; i++)
		any |= gpuq_resource_kind(g->resources[i].name) == GPUQ_RESOURCE_MAPPED;
	if (!any)
		return 0;
	items = gpuq_arena_calloc(d->a, g->n_resources, sizeof(*items));
	if (!items)
		return gpuq_no_memory(err);
	for (size_t i = 0; i < g->n_resources; i++) {
		const char *name = g->resources[i].name;

		items[i] = g->resources[i];
		if (gpuq_resource_kind(name) != GPUQ_RESOURCE_MAPPED)
			continue;
		name += sizeof(GPUQ_RESOURCE_GRES) - 1;
		items[i].name = inventory_gres(d->m->site, name);
		if (!items[i].name)
			return no_gres(d, name, err);
		rc = check_mapped(d, g, name, &items[i], err);
		if (rc < 0)
			return rc;
	}
	g->resources = items;
	g->n_resources = gpuq_amounts_sort(items, g->n_resources);
	return 0;
}

/* ---- devices ---- */

/* The resource of the group that stands for devices here. */
static const struct gpuq_amount *device_of(const struct draft *d, const struct gpuq_group *g)
{
	const struct gpuq_amount *named = gpuq_group_device(g);

	for (size_t i = 0; !named && i < g->n_resources; i++)
		if (inventory_flavor(d->m->site, g->resources[i].name))
			named = &g->resources[i];
	return named;
}

/* True if a container of a list requests devices by a name that needs no site, or by a word of a dialect. */
static bool names_devices(const struct gpuq_val *containers)
{
	static const char *const kinds[] = { "requests", "limits" };

	for (size_t i = 0; containers && containers->type == GPUQ_LIST && i < containers->n; i++)
		for (size_t k = 0; k < 2; k++) {
			const struct gpuq_val *map =
				gpuq_path(containers->items[i], "resources", kinds[k], NULL);

			for (size_t m = 0; map && map->type == GPUQ_MAP && m < map->n; m++) {
				const char *name = map->pairs[m].key;
				const enum gpuq_resource_kind kind = gpuq_resource_kind(name);

				if (kind == GPUQ_RESOURCE_DEVICE || kind == GPUQ_RESOURCE_REPLICA ||
				    kind == GPUQ_RESOURCE_INSTANCE ||
				    (kind == GPUQ_RESOURCE_WORD && !gpuq_resource_is_remark(name)))
					return true;
			}
		}
	return false;
}

/* True if the containers of a manifest request other devices than the one that the site alone calls so. A job file
 * may say the same number twice, in gpus and by name. */
static bool has_others(const struct gpuq_group *g, const struct gpuq_amount *named)
{
	return g->template_ && gpuq_resource_kind(named->name) == GPUQ_RESOURCE_COUNTED &&
	       (names_devices(gpuq_path(g->template_, "spec", "containers", NULL)) ||
		names_devices(gpuq_path(g->template_, "spec", "initContainers", NULL)));
}

/* A flavor of a job is that of all devices of a pod: refuse a second resource that a flavor of the site makes devices. */
static int one_kind(const struct draft *d, const struct gpuq_group *g,
		    const struct gpuq_amount *named, struct gpuq_err *err)
{
	for (size_t i = 0; i < g->n_resources; i++) {
		const char *name = g->resources[i].name;
		const struct site_flavor *f = inventory_flavor(d->m->site, name);

		if (f && &g->resources[i] != named)
			return gpuq_fail_field(
				err, GPUQ_EINVAL, "resources",
				"expected one kind of device in a pod: %.80s is of flavor %.63s, "
				"and %.80s is requested as well",
				name, f->name, named->name);
	}
	return 0;
}

static int count_devices(struct gpuq_group *g, const struct gpuq_amount *named,
			 struct gpuq_err *err)
{
	const enum gpuq_resource_kind kind = gpuq_resource_kind(named->name);
	int64_t milli;

	if (kind == GPUQ_RESOURCE_REPLICA && named->count != 1)
		return gpuq_fail_field(err, GPUQ_EINVAL, "resources",
				       "expected 1 %s, not %lld: several replicas may be the same "
				       "device",
				       named->name, (long long)named->count);
	/* A replica is the part that the node says. */
	if (kind == GPUQ_RESOURCE_REPLICA && g->gpus_milli)
		return 0;
	if (named->count > (int64_t)GPUQ_GPUS_PER_POD_MAX)
		return gpuq_fail_field(err, GPUQ_ERANGE, "resources", "expected at most %u of %s",
				       GPUQ_GPUS_PER_POD_MAX, named->name);
	milli = kind == GPUQ_RESOURCE_REPLICA ? GPUQ_PART_MIN_MILLI : named->count * 1000;
	if (g->mig || g->gpu_memory_bytes || g->gpu_cores || has_others(g, named) ||
	    (g->gpus_milli && g->gpus_milli != milli))
		return gpuq_fail_field(err, GPUQ_EINVAL, "resources",
				       "expected one kind of device in a pod: %s is requested "
				       "in addition to another",
				       named->name);
	g->gpus_milli = milli;
	return 0;
}

/* True if devices of the flavor are that resource. */
static bool is_of(const struct site *s, const char *flavor, const char *resource)
{
	site_each(site_flavor, s->flavors, f) {
		if (strcmp(f->name, flavor) == 0)
			return f->resource && strcmp(f->resource, resource) == 0;
	}
	return false;
}

/* True if there may be devices of the resource that are of none of its flavors. */
static bool all_match(const struct site *s, const char *resource)
{
	site_each(site_flavor, s->flavors, f) {
		if (f->resource && strcmp(f->resource, resource) == 0 && !f->match.product &&
		    !f->match.memory_min_bytes)
			return false;
	}
	return true;
}

/* Let a job that names no flavor go to those whose devices are this resource. */
static int name_flavors(struct draft *d, const char *resource, struct gpuq_err *err)
{
	const struct gpuq_strlist *first = draft_queue_flavors(d->queue);
	struct gpuq_strlist *to = &d->spec.flavors;
	struct gpuq_flavor_rule *rules;
	size_t n_own;

	if (to->n || (d->instead && model_job_is_live(d->instead)) ||
	    strncmp(resource, GPUQ_RESOURCE_GPU, strlen(GPUQ_RESOURCE_GPU)) == 0)
		return 0;
	to->items = gpuq_arena_calloc(d->a, d->m->site->flavors.n + 1, sizeof(*to->items));
	rules = gpuq_arena_calloc(d->a, first ? first->n + 1 : 1, sizeof(*rules));
	if (!to->items || !rules)
		return gpuq_no_memory(err);
	/* The queue's come in its order, and without the others. */
	for (size_t i = 0; first && i < first->n && to->n < d->m->site->flavors.n; i++)
		if (is_of(d->m->site, first->items[i], resource)) {
			if (draft_queue_rule(d->queue, i)) {
				rules[to->n] = *draft_queue_rule(d->queue, i);
				d->spec.flavor_rules = rules;
			}
			to->items[to->n++] = first->items[i];
		}
	n_own = to->n;
	site_each(site_flavor, d->m->site->flavors, f) {
		if (n_own == 0 && is_of(d->m->site, f->name, resource))
			to->items[to->n++] = f->name;
	}
	/* Devices that none of them matches. */
	if (n_own == 0 && to->n && all_match(d->m->site, resource))
		to->items[to->n++] = "default";
	d->names_devices |= to->n == 0;
	return 0;
}

/* Return how many devices claims for all of a node have on the node with the most, of those that the job may have. */
static int64_t most_of_a_node(const struct draft *d, const struct gpuq_group *g,
			      const struct dra_spec *const *specs, size_t n,
			      const struct gpuq_strlist *classes)
{
	int64_t most = 0;

	node_each(d->m, node)
		if (node_is_of(d->m, node, &d->spec.flavors) &&
		    (g->nodes.n == 0 || gpuq_strlist_has(&g->nodes, node->name)) &&
		    !gpuq_strlist_has(&g->exclude, node->name)) {
			const int64_t here = dra_devices_on(objects_dra(d->m->objects), node->name,
							    specs, n, classes);

			most = here > most ? here : most;
		}
	return most;
}

/* True if the group requests devices by other words than claims. */
static bool has_devices(const struct gpuq_group *g)
{
	return g->mig || g->gpu_memory_bytes || g->gpu_cores || g->gpus_milli;
}

/* Devices of a plugin and claims in one pod: those of the claims may not be counted as well. missing: of a claim it is
 * not known yet; NULL = of none. */
static int check_beside(struct gpuq_group *g, int64_t n, const struct gpuq_claim *missing,
			struct gpuq_err *err)
{
	if (missing)
		return gpuq_fail_field(err, GPUQ_EINVAL, "claims",
				       "%s %.200s does not exist: beside devices of a plugin it is "
				       "to be there before the job, which devices it has decides",
				       missing->claim ? "ResourceClaim" : "ResourceClaimTemplate",
				       missing->claim ? missing->claim : missing->template_);
	if (n > 0)
		return gpuq_fail_field(
			err, GPUQ_EINVAL, "claims",
			"the devices of claims are counted, %lld of each pod: "
			"expected no gpus, mig, gpu_memory and gpu_cores beside them",
			(long long)n);
	g->claims_beside = true;
	return 0;
}

/* True if a placement decides on one of several. */
static bool has_alternatives(const struct dra_spec *spec)
{
	for (uint32_t i = 0; i < spec->n_requests; i++)
		if (spec->requests[i].n_options > 1)
			return true;
	return false;
}

/* Charge a pod the devices of its claims, as far as their objects are there; else the job waits. Until it is placed
 * the alternatives with the fewest devices count. */
static int count_claims(struct draft *d, struct gpuq_group *g, struct gpuq_err *err)
{
	const struct dra *ledger = objects_dra(d->m->objects);
	const struct dra_spec *specs[GPUQ_CLAIMS_MAX];
	const struct gpuq_claim *missing = NULL;
	struct gpuq_strlist classes;
	size_t n_specs = 0;
	int64_t n = 0, least = 0, milli = -1;
	bool all = false, beside, shared = false;

	g->claims_beside = false;
	for (size_t i = 0; i < g->n_claims; i++)
		g->claims[i].shares = 0;
	if (g->n_claims == 0)
		return 0;
	model_classes(d->m, d->a, &classes);
	for (size_t i = 0; i < g->n_claims; i++) {
		struct dra_spec *spec = gpuq_arena_calloc(d->a, 1, sizeof(*spec));
		const struct dra_claim *claim;
		const int64_t before = n;

		if (dra_named_before(g, i))
			continue;
		if (!spec)
			return gpuq_no_memory(err);
		if (dra_find(ledger, &g->claims[i],
			     objects_namespace(d->m->objects, model_queue_namespace(d->queue)),
			     d->a, spec, &claim) != DRA_FOUND) {
			missing = &g->claims[i];
			continue;
		}
		n += dra_devices_of(spec, &classes, &all);
		least += dra_least_of(spec, &classes);
		/* With alternatives each pod has its own. */
		if (claim && !has_alternatives(spec))
			g->claims[i].shares = n - before;
		shared |= g->claims[i].shares > 0;
		specs[n_specs++] = spec;
	}
	if (all && !d->spec.exclusive)
		return gpuq_fail_field(err, GPUQ_EINVAL, "claims",
				       "all takes every device of a node: expected exclusive: true "
				       "beside it, or count");
	if (all)
		n = most_of_a_node(d, g, specs, n_specs, &classes);
	else if (least > 0 && !shared) {
		milli = dra_charge(ledger, specs, n_specs, &classes, true);
		/* A job that is changed has what it was charged: of whole devices, of the most, or of parts. */
		if (g->gpus_milli == n * 1000 || g->gpus_milli == least * 1000 ||
		    (d->instead && g->gpus_milli % 1000))
			g->gpus_milli = milli;
		n = least;
	}
	if (milli < 0)
		milli = n * 1000;
	beside = has_devices(g) &&
		 (g->gpus_milli != milli || g->mig || g->gpu_memory_bytes || g->gpu_cores);
	for (size_t i = 0; (all || beside) && i < g->n_claims; i++)
		g->claims[i].shares = 0;
	if (beside)
		return check_beside(g, n, n ? NULL : missing, err);
	g->gpus_milli = milli;
	return 0;
}

int draft_check_resources(struct draft *d, struct gpuq_err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < d->spec.n_groups; i++) {
		struct gpuq_group *g = &d->spec.groups[i];
		const struct gpuq_amount *named;

		rc = map_gres(d, g, err);
		named = rc == 0 ? device_of(d, g) : NULL;
		if (named)
			rc = one_kind(d, g, named, err);
		if (rc == 0 && named)
			rc = count_devices(g, named, err);
		if (rc == 0)
			rc = count_claims(d, g, err);
		if (rc == 0 && named)
			rc = name_flavors(d, named->name, err);
		if (g->cpus_open && g->gpus_milli)
			g->cpu_milli = 0;
		g->cpus_open = false;
	}
	return rc;
}
