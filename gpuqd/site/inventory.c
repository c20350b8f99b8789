#include "gpuqd/site/inventory.h"

#include <stddef.h>
#include <string.h>

#include "gpuqd/site/site.h"
#include "libgpuq/limits.h"
#include "libgpuq/spec.h"
#include "libgpuq/spec/resource.h"

#define F(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_),                                                    \
		.offset = offsetof(struct site_inventory, member_), __VA_ARGS__                    \
	}

static const struct gpuq_field inventory_fields[] = {
	F("selector", GPUQ_K_STRMAP, selector, .flags = GPUQ_F_REQUIRED,
	  .doc = "labels of the nodes, all of which must match"),
	F("product", GPUQ_K_STR, product, .min = 1, .max = 200,
	  .doc = "product name of their devices, if no label has it"),
	F("memory", GPUQ_K_BYTES, memory_bytes, .doc = "memory of each device"),
	F("cards", GPUQ_K_INT, cards, .min = 1, .max = GPUQ_GPUS_PER_POD_MAX,
	  .doc = "number of devices of a node"),
	F("replicas", GPUQ_K_INT, replicas, .min = 1, .max = 1000,
	  .doc = "number of pods that the device plugin offers each device to"),
	{ .key = NULL },
};

/* Refuse an entry without any value. */
static int inventory_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct site_inventory *i = obj;

	if (!i->product && !i->memory_bytes && !i->cards && !i->replicas)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"expected some of product, memory, cards and replicas");
	return 0;
}

const struct gpuq_schema site_inventory_schema = { .name = "inventory",
						   .size = sizeof(struct site_inventory),
						   .fields = inventory_fields,
						   .check = inventory_check };

bool inventory_selects(const struct gpuq_strmap *selector, const struct gpuq_strmap *labels)
{
	for (size_t i = 0; i < selector->n; i++) {
		size_t k = 0;

		while (k < labels->n && (strcmp(labels->keys[k], selector->keys[i]) != 0 ||
					 strcmp(labels->vals[k], selector->vals[i]) != 0))
			k++;
		if (k == labels->n)
			return false;
	}
	return true;
}

const struct site_inventory *inventory_of(const struct site *s, const struct gpuq_strmap *labels)
{
	site_each(site_inventory, s->inventory, i) {
		if (inventory_selects(&i->selector, labels))
			return i;
	}
	return NULL;
}

/* ---- gres ---- */

const char *inventory_gres(const struct site *s, const char *name)
{
	return gpuq_strmap_get(&s->gres, name);
}

/* True if the site may map that name: the others have a meaning of their own in --gres. */
static bool is_free_name(const char *name)
{
	static const char *const taken[] = { "gpu", "shard", "mps", "none" };
	char full[sizeof(GPUQ_RESOURCE_GRES) + 63];
	const size_t n = strlen(name), before = sizeof(GPUQ_RESOURCE_GRES) - 1;

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (strcmp(taken[i], name) == 0)
			return false;
	if (n > 63)
		return false;
	memcpy(full, GPUQ_RESOURCE_GRES, before);
	memcpy(full + before, name, n + 1);
	return gpuq_resource_kind(full) == GPUQ_RESOURCE_MAPPED;
}

int inventory_gres_check(struct gpuq_reader *r, const struct gpuq_val *v, const struct site *s)
{
	const struct gpuq_val *map = gpuq_get(v, "gres");

	for (size_t i = 0; i < s->gres.n; i++) {
		const enum gpuq_resource_kind kind = gpuq_resource_kind(s->gres.vals[i]);
		const bool named = is_free_name(s->gres.keys[i]);
		/* Earlier versions stored any. */
		const char *never = r->stored ? NULL : gpuq_resource_never(s->gres.vals[i]);

		if (named && !never &&
		    (kind == GPUQ_RESOURCE_COUNTED || kind == GPUQ_RESOURCE_DEVICE ||
		     kind == GPUQ_RESOURCE_REPLICA))
			continue;
		gpuq_reader_enter(r, "gres");
		gpuq_reader_enter(r, s->gres.keys[i]);
		if (named && never)
			return gpuq_reader_fail(r, gpuq_get(map, s->gres.keys[i]), GPUQ_EINVAL,
						"%s", never);
		return gpuq_reader_fail(
			r, gpuq_get(map, s->gres.keys[i]), GPUQ_EINVAL,
			named ? "expected a resource of nodes such as rdma/hca, not '%.80s'"
			      : "expected a name of --gres, other than gpu, shard, mps and none",
			s->gres.vals[i]);
	}
	return 0;
}

/* ---- devices ---- */

const struct site_flavor *inventory_flavor(const struct site *s, const char *resource)
{
	site_each(site_flavor, s->flavors, f) {
		if (f->resource && strcmp(f->resource, resource) == 0)
			return f;
	}
	return NULL;
}

bool inventory_is_device(const struct site *s, const char *resource)
{
	const enum gpuq_resource_kind kind = gpuq_resource_kind(resource);

	return kind == GPUQ_RESOURCE_DEVICE || kind == GPUQ_RESOURCE_REPLICA ||
	       inventory_flavor(s, resource);
}

bool inventory_names_nvidia(const char *resource)
{
	return strcmp(resource, GPUQ_RESOURCE_GPU) == 0 ||
	       strcmp(resource, GPUQ_RESOURCE_SHARED) == 0;
}

const char *const *inventory_others(const struct site *s, struct gpuq_arena *a)
{
	const char **out;
	size_t n = 0;

	while (gpuq_resource_others[n])
		n++;
	out = gpuq_arena_calloc(a, n + s->flavors.n + 1, sizeof(*out));
	if (!out)
		return NULL;
	for (n = 0; gpuq_resource_others[n]; n++)
		out[n] = gpuq_resource_others[n];
	site_each(site_flavor, s->flavors, f) {
		if (f->resource && !inventory_names_nvidia(f->resource))
			out[n++] = f->resource;
	}
	return out;
}

const char *inventory_comes(const struct site *s, const struct site_pool *p)
{
	if (!site_pool_grows(p) || p->provisioning->machine->gpus == 0)
		return NULL;
	site_each(site_flavor, s->flavors, f) {
		if (strcmp(f->name, p->flavor) == 0)
			return f->resource && !inventory_names_nvidia(f->resource) ? f->resource
										   : NULL;
	}
	return NULL;
}

bool inventory_is_nvidia(const struct site *s, const struct gpuq_group *g)
{
	const struct gpuq_amount *named = gpuq_group_device(g);

	if (!g->template_ || g->gpus_milli == 0 || gpuq_group_claimed(g))
		return false;
	/* A flavor tells what a resource is that is no device by its name. */
	for (size_t i = 0; !named && i < g->n_resources; i++)
		if (inventory_flavor(s, g->resources[i].name))
			named = &g->resources[i];
	return !named || inventory_names_nvidia(named->name);
}

bool inventory_may_be_device(const char *resource)
{
	const enum gpuq_resource_kind kind = gpuq_resource_kind(resource);

	return kind == GPUQ_RESOURCE_DEVICE ||
	       (kind == GPUQ_RESOURCE_COUNTED && !gpuq_resource_is_bytes(resource));
}
