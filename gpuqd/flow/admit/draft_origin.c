#include "gpuqd/flow/admit/draft_int.h"

#include <string.h>

#include "gpuqd/devices/backend.h"
#include "gpuqd/site/inventory.h"
#include "libgpuq/spec/resource.h"

int draft_check_origin(struct draft *d, struct gpuq_err *err)
{
	const struct submit_who *by = d->by ? d->by : d->who;

	if (!d->spec.context.origin || by->adopts || d->instead)
		return 0;
	return gpuq_fail_field(err, GPUQ_EINVAL, "context",
			       "it consists of pods of Kubernetes, which gpuqd did not make and "
			       "cannot make again: submit a job of its own");
}

/* Demand that a label of the node has none of these values. */
static int require_not(struct gpuq_arena *a, struct gpuq_group *g, const char *key,
		       const char *const *values, size_t n)
{
	const size_t n_terms = g->n_required ? g->n_required : 1;
	struct gpuq_term *terms = gpuq_arena_calloc(a, n_terms, sizeof(*terms));

	for (size_t i = 0; terms && i < n_terms; i++) {
		const struct gpuq_term none = { 0 };
		const struct gpuq_term *old = g->n_required ? &g->required[i] : &none;
		struct gpuq_require *all = gpuq_arena_calloc(a, old->n + 1, sizeof(*all));

		if (!all)
			return GPUQ_ENOMEM;
		if (old->n)
			memcpy(all, old->all, old->n * sizeof(*all));
		all[old->n] =
			(struct gpuq_require){ key, GPUQ_OP_NOT_IN, { (const char **)values, n } };
		terms[i] = (struct gpuq_term){ all, old->n + 1, 0 };
	}
	if (!terms)
		return GPUQ_ENOMEM;
	g->required = terms;
	g->n_required = n_terms;
	return 0;
}

/* Have a pod whose containers request NVIDIA's devices go to no others, whatever flavors it may have. */
static int keep_to_names(const struct draft *d, struct gpuq_group *g)
{
	const char *const *others;
	size_t n = 0;

	if (d->spec.flavors.n == 0 || !inventory_is_nvidia(d->m->site, g))
		return 0;
	others = inventory_others(d->m->site, d->a);
	while (others && others[n])
		n++;
	return n ? require_not(d->a, g, SHARE_DEVICES, others, n) : GPUQ_ENOMEM;
}

/* Its containers keep the names under which they request devices: what a node offers under another name, or
 * gives to a pod that carries more than a request, is not for them. */
static int name_devices(struct gpuq_arena *a, struct gpuq_group *g)
{
	static const char *const others[] = { "gpushare", "gpu-manager", "hami" };
	static const char *const single[] = { "single" };
	struct gpuq_amount *items;
	int rc = 0;

	if (g->gpus_milli == 0)
		return 0;
	if (g->mig)
		rc = require_not(a, g, SHARE_STRATEGY, single, 1);
	if (rc == 0)
		rc = require_not(a, g, SHARE_LABEL, others, 3);
	if (rc != 0 || g->mig || gpuq_group_device(g))
		return rc;
	items = gpuq_arena_calloc(a, g->n_resources + 1, sizeof(*items));
	if (!items)
		return GPUQ_ENOMEM;
	if (g->n_resources)
		memcpy(items, g->resources, g->n_resources * sizeof(*items));
	items[g->n_resources] = (struct gpuq_amount){ GPUQ_RESOURCE_GPU, g->gpus_milli / 1000 };
	g->resources = items;
	g->n_resources = gpuq_amounts_sort(items, g->n_resources + 1);
	return 0;
}

int draft_name_devices(struct draft *d, struct gpuq_err *err)
{
	struct gpuq_group *groups;
	bool any = d->spec.context.origin != NULL;

	for (size_t i = 0; i < d->whole.n_groups; i++)
		any |= d->whole.groups[i].template_ && d->spec.flavors.n;
	if (!any)
		return 0;
	groups = gpuq_arena_calloc(d->a, d->whole.n_groups, sizeof(*groups));
	if (!groups)
		return gpuq_no_memory(err);
	memcpy(groups, d->whole.groups, d->whole.n_groups * sizeof(*groups));
	d->whole.groups = groups;
	for (size_t i = 0; i < d->whole.n_groups; i++)
		if ((d->spec.context.origin ? name_devices(d->a, &groups[i])
					    : keep_to_names(d, &groups[i])) != 0)
			return gpuq_no_memory(err);
	return 0;
}
