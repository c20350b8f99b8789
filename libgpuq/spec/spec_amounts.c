/* Countable resources of a pod: `resources` of a job file, and what a manifest's containers
 * request beside the devices, the cpu and the memory. */
#include "libgpuq/spec/spec_int.h"
#include "libgpuq/spec/spec_kinds.h"

#include <stdio.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

/* ---- cores of a device: N, or {request: N, limit: M} ---- */

struct cores {
	int64_t request, limit;
};

/* clang-format off */
static const struct gpuq_field cores_fields[] = {
	{ .key = "request", .kind = GPUQ_K_INT, .flags = GPUQ_F_REQUIRED, .min = 1, .max = 100,
	  .offset = offsetof(struct cores, request), .doc = "Guaranteed percentage." },
	{ .key = "limit", .kind = GPUQ_K_INT, .min = 1, .max = INT32_MAX,
	  .offset = offsetof(struct cores, limit), .doc = "Maximum percentage, up to 100." },
	{ .key = NULL },
};
/* clang-format on */

static const struct gpuq_schema cores_schema = { .name = "gpu_cores",
						 .size = sizeof(struct cores),
						 .fields = cores_fields };

/* A key that is like neither of the two is told both. */
static int cores_keys(struct gpuq_reader *r, const struct gpuq_val *v)
{
	static const char *const keys[] = { "request", "limit", NULL };

	for (size_t i = 0; !r->lenient && i < v->n; i++) {
		const struct gpuq_val place = { .at = v->pairs[i].at };

		if (gpuq_nearest(v->pairs[i].key, keys))
			continue;
		gpuq_reader_enter(r, v->pairs[i].key);
		return spec_fail(r, &place, GPUQ_EINVAL, "unknown key: expected request and limit");
	}
	return 0;
}

static int cores_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_group *g = GROUP_OF(out, gpu_cores);
	struct cores c = { 0, 0 };

	if (v->type == GPUQ_MAP) {
		int rc = cores_keys(r, v);

		if (rc == 0)
			rc = gpuq_schema_read(r, &cores_schema, v, &c);
		if (rc < 0)
			return rc;
		if (c.limit == 0)
			return spec_fail(r, v, GPUQ_EINVAL,
					 "expected limit beside request, from %lld to 100, or "
					 "gpu_cores: %lld for no more than that",
					 (long long)c.request, (long long)c.request);
		if (c.limit > 100 || c.limit < c.request) {
			gpuq_reader_enter(r, "limit");
			return spec_fail(r, gpuq_get(v, "limit"), GPUQ_ERANGE,
					 "expected limit from %lld, which is requested, to 100: "
					 "the nearest is %lld",
					 (long long)c.request,
					 c.limit > 100 ? 100LL : (long long)c.request);
		}
	} else if (v->type == GPUQ_INT && v->i >= 1 && v->i <= 100) {
		c.request = v->i;
	} else if (v->type == GPUQ_INT) {
		return spec_fail(
			r, v, GPUQ_ERANGE,
			"expected 1 to 100, found %lld: the nearest is %d; several devices "
			"are requested by gpus",
			(long long)v->i, v->i < 1 ? 1 : 100);
	} else {
		return spec_fail(r, v, GPUQ_EINVAL,
				 "expected a percentage from 1 to 100, or {request: N, limit: M}");
	}
	g->gpu_cores = c.request;
	g->gpu_cores_limit = c.limit > c.request ? c.limit : 0;
	return 0;
}

static struct gpuq_val *cores_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_group *g = CGROUP_OF(in, gpu_cores);
	struct gpuq_val *v;

	if (g->gpu_cores_limit == 0)
		return g->gpu_cores ? gpuq_int(a, g->gpu_cores) : NULL;
	v = gpuq_map(a);
	gpuq_put(a, v, "request", gpuq_int(a, g->gpu_cores));
	gpuq_put(a, v, "limit", gpuq_int(a, g->gpu_cores_limit));
	return v;
}

const struct gpuq_custom spec_cores_kind = { cores_read, cores_write };

/* ---- the job file ---- */

/* Return the reason why a job file cannot name the resource; NULL = it can. */
static const char *refused(const char *name)
{
	switch (gpuq_resource_kind(name)) {
	case GPUQ_RESOURCE_OWN:
		return strcmp(name, "pods") == 0
			       ? "counts the pods of a node: expected pods beside "
				 "resources"
			       : "is requested by cpus or memory";
	case GPUQ_RESOURCE_WORD:
		return "belongs to one system that shares devices: request gpus, gpu_memory or "
		       "gpu_cores";
	case GPUQ_RESOURCE_INSTANCE:
		return "is requested by mig (the profile) and gpus (the number of instances)";
	case GPUQ_RESOURCE_UNKNOWN:
		return "expected a resource of nodes such as rdma/hca, hugepages-2Mi or "
		       "ephemeral-storage";
	default:
		return NULL;
	}
}

int spec_pages_check(struct gpuq_reader *r, const struct gpuq_val *at, const char *name,
		     int64_t bytes)
{
	const struct gpuq_amount one = { name, bytes };
	struct gpuq_err err = GPUQ_ERR_INIT;
	const int rc = r->stored || bytes == 0 || strncmp(name, "hugepages-", 10) != 0
			       ? 0
			       : gpuq_amount_check(&one, &err);

	return rc == 0 ? 0 : spec_fail(r, at, rc, "%s", err.text);
}

static int amount_read(struct gpuq_reader *r, const struct gpuq_pair *p, int64_t *out)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const char *text = spec_scalar(r->arena, p->val), *at = text;
	char near[SPEC_NEAREST_ROOM];
	const bool bytes = gpuq_resource_is_bytes(p->key);
	/* The site may map it to one in bytes. */
	const int64_t most = gpuq_resource_kind(p->key) == GPUQ_RESOURCE_MAPPED
				     ? GPUQ_RESOURCE_BYTES_MAX
				     : GPUQ_RESOURCE_COUNT_MAX;

	if (!text || p->val->type == GPUQ_BOOL)
		return spec_fail(r, p->val, GPUQ_EINVAL, "expected %s, not %s",
				 bytes ? "an amount such as 2Gi" : "a number",
				 gpuq_type_name(p->val->type));
	if (bytes ? gpuq_bytes_parse(text, out, &err) != 0 || *out < 1 ||
			    *out > GPUQ_RESOURCE_BYTES_MAX
		  : !spec_digits(&at, 1, most, out) || *at)
		return spec_fail(r, p->val, GPUQ_EINVAL, "expected %s, not '%.40s'%s",
				 bytes ? "an amount such as 2Gi" : "a number from 1", text,
				 bytes ? "" : spec_nearest_count(text, 0, most, near));
	return bytes ? spec_pages_check(r, p->val, p->key, *out) : 0;
}

static int resources_read(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct gpuq_group *g = GROUP_OF(out, resources);
	struct gpuq_amount *items;

	if (v->type != GPUQ_MAP)
		return spec_fail(r, v, GPUQ_EINVAL, "expected {NAME: COUNT}, not %s",
				 gpuq_type_name(v->type));
	if (v->n > GPUQ_RESOURCES_MAX)
		return spec_fail(r, v, GPUQ_ERANGE, "expected at most %d resources, not %u",
				 GPUQ_RESOURCES_MAX, v->n);
	items = gpuq_arena_calloc(r->arena, v->n + 1, sizeof(*items));
	if (!items)
		return gpuq_no_memory(r->err);
	for (size_t i = 0; i < v->n; i++) {
		const struct gpuq_pair *p = &v->pairs[i];
		const size_t mark = gpuq_reader_enter(r, p->key);
		const char *problem = refused(p->key);
		int rc;

		if (!problem && !r->stored)
			problem = gpuq_resource_never(p->key);
		if (problem)
			return spec_fail(r, p->val, GPUQ_EINVAL, "%s", problem);
		rc = amount_read(r, p, &items[i].count);
		if (rc < 0)
			return rc;
		items[i].name = p->key;
		gpuq_reader_leave(r, mark);
	}
	g->resources = items;
	g->n_resources = gpuq_amounts_sort(items, v->n);
	return 0;
}

static struct gpuq_val *resources_write(struct gpuq_arena *a, const void *in)
{
	const struct gpuq_group *g = CGROUP_OF(in, resources);
	struct gpuq_val *v = g->n_resources ? gpuq_map(a) : NULL;

	for (size_t i = 0; i < g->n_resources; i++)
		gpuq_put(a, v, g->resources[i].name, gpuq_int(a, g->resources[i].count));
	return v;
}

const struct gpuq_custom spec_resources_kind = { resources_read, resources_write };

/* ---- devices that are named ---- */

const struct gpuq_amount *gpuq_group_device(const struct gpuq_group *g)
{
	for (size_t i = 0; i < g->n_resources; i++) {
		const enum gpuq_resource_kind kind = gpuq_resource_kind(g->resources[i].name);

		if (kind == GPUQ_RESOURCE_DEVICE || kind == GPUQ_RESOURCE_REPLICA)
			return &g->resources[i];
	}
	return NULL;
}

int spec_devices_of(const struct gpuq_amount *named, int64_t *milli, struct gpuq_err *err)
{
	const bool replica = gpuq_resource_kind(named->name) == GPUQ_RESOURCE_REPLICA;

	/* Two replicas may be of one card: then they are no more than one. */
	if (replica && named->count != 1)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected 1, not %lld: several replicas may be the same device",
				 (long long)named->count);
	if (named->count > (int64_t)GPUQ_GPUS_PER_POD_MAX)
		return gpuq_fail(err, GPUQ_ERANGE, "expected at most %u devices",
				 GPUQ_GPUS_PER_POD_MAX);
	/* The least part there is: the node says how much of a device its replicas are. */
	*milli = replica ? GPUQ_PART_MIN_MILLI : named->count * 1000;
	return 0;
}

/* ---- a manifest ---- */

struct names {
	const char *items[GPUQ_RESOURCES_MAX];
	size_t n;
};

/* Note the names in a map of quantities that are not read elsewhere. */
static int note_names(struct gpuq_reader *r, const struct gpuq_val *map, struct names *names)
{
	for (size_t i = 0; map && map->type == GPUQ_MAP && i < map->n; i++) {
		const struct gpuq_pair *p = &map->pairs[i];
		const enum gpuq_resource_kind kind = gpuq_resource_kind(p->key);
		size_t k = 0;

		if (kind == GPUQ_RESOURCE_OWN || kind == GPUQ_RESOURCE_WORD ||
		    kind == GPUQ_RESOURCE_INSTANCE || strcmp(p->key, GPUQ_RESOURCE_GPU) == 0)
			continue;
		if ((kind == GPUQ_RESOURCE_UNKNOWN || kind == GPUQ_RESOURCE_MAPPED) && !r->stored) {
			gpuq_reader_enter(r, p->key);
			return spec_fail(r, p->val, GPUQ_EINVAL,
					 "expected a resource such as cpu, memory, nvidia.com/gpu, "
					 "rdma/hca or hugepages-2Mi");
		}
		if (!r->stored && gpuq_resource_never(p->key)) {
			gpuq_reader_enter(r, p->key);
			return spec_fail(r, p->val, GPUQ_EINVAL, "%s", gpuq_resource_never(p->key));
		}
		while (k < names->n && strcmp(names->items[k], p->key) != 0)
			k++;
		if (k < names->n)
			continue;
		if (names->n == GPUQ_RESOURCES_MAX) {
			gpuq_reader_enter(r, p->key);
			return spec_fail(r, p->val, GPUQ_ERANGE,
					 "expected at most %d different resources in a pod",
					 GPUQ_RESOURCES_MAX);
		}
		names->items[names->n++] = p->key;
	}
	return 0;
}

/* Note those of the requests and limits of a container, or of the pod as a whole. */
static int note_of(struct gpuq_reader *r, const struct gpuq_val *of, struct names *names)
{
	static const char *const kinds[] = { "requests", "limits" };
	const size_t mark = gpuq_reader_enter(r, "resources");

	for (size_t m = 0; m < 2; m++) {
		const size_t at = gpuq_reader_enter(r, kinds[m]);
		int rc = note_names(r, gpuq_path(of, "resources", kinds[m], NULL), names);

		if (rc < 0)
			return rc;
		gpuq_reader_leave(r, at);
	}
	gpuq_reader_leave(r, mark);
	return 0;
}

static int note_all(struct gpuq_reader *r, const struct gpuq_val *spec, struct names *names)
{
	static const char *const lists[] = { "containers", "initContainers" };

	for (size_t k = 0; k < 2; k++) {
		const struct gpuq_val *list = gpuq_get(spec, lists[k]);
		const size_t mark = gpuq_reader_enter(r, lists[k]);

		for (size_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
			const size_t item = gpuq_reader_enter_item(r, i);
			int rc = note_of(r, list->items[i], names);

			if (rc < 0)
				return rc;
			gpuq_reader_leave(r, item);
		}
		gpuq_reader_leave(r, mark);
	}
	return note_of(r, spec, names);
}

int spec_resources_of_pod(struct gpuq_reader *r, const struct gpuq_val *spec, struct gpuq_group *g)
{
	const struct gpuq_amount *named;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct names names = { 0 };
	int rc = note_all(r, spec, &names);

	if (rc < 0 || names.n == 0)
		return rc;
	g->resources = gpuq_arena_calloc(r->arena, names.n, sizeof(*g->resources));
	if (!g->resources)
		return gpuq_no_memory(r->err);
	for (size_t i = 0; i < names.n; i++) {
		const bool bytes = gpuq_resource_is_bytes(names.items[i]);

		g->resources[i].name = names.items[i];
		rc = spec_pod_request(r, spec, names.items[i], bytes ? SPEC_BYTES : SPEC_COUNT,
				      &g->resources[i].count);
		if (rc == 0 && g->resources[i].count > GPUQ_RESOURCE_BYTES_MAX)
			rc = spec_fail(r, spec, GPUQ_ERANGE, "%s: more than can be counted",
				       names.items[i]);
		if (rc < 0)
			return rc;
	}
	g->n_resources = gpuq_amounts_sort(g->resources, names.n);
	named = gpuq_group_device(g);
	if (!named)
		return 0;
	if (g->gpus_milli)
		return spec_fail(r, spec, GPUQ_EINVAL,
				 "expected one kind of device in a pod: %s is requested beside "
				 "another",
				 named->name);
	rc = spec_devices_of(named, &g->gpus_milli, &err);
	return rc < 0 ? spec_fail(r, spec, rc, "%s: %s", named->name, err.text) : 0;
}
