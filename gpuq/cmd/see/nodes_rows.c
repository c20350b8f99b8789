#include "gpuq/cmd/see/nodes_rows.h"

#include <inttypes.h>
#include <string.h>

#include "libgpuq/arena.h"
#include "libgpuq/buf.h"

/* Where a node chooses the devices of a pod and does not report them, which of its devices are free is not known
 * either: those have one line. */

static const struct gpuq_val *list_of(const struct gpuq_val *v, const char *key)
{
	const struct gpuq_val *list = gpuq_get(v, key);

	return list && list->type == GPUQ_LIST ? list : NULL;
}

static bool has_some(const struct gpuq_val *v, const char *key)
{
	const struct gpuq_val *list = list_of(v, key);

	return list && list->n;
}

static bool is_assumed(const struct gpuq_val *d)
{
	return gpuq_get_int(d, "index", -1) >= 0 && gpuq_get_bool(d, "parts_assumed", false);
}

/* True if any pod whose devices are not known may have the device. */
static bool is_open(const struct gpuq_val *d)
{
	const char *state = gpuq_get_str(d, "state", "");

	return gpuq_get_int(d, "index", -1) >= 0 && strcmp(state, "unhealthy") != 0 &&
	       strcmp(state, "lost") != 0 &&
	       (is_assumed(d) || (!has_some(d, "jobs") && strcmp(state, "foreign") != 0));
}

/* Append an index: "0", "0-3", "0-3,5". */
static void put_index(struct gpuq_buf *b, int64_t index, int64_t before, bool last)
{
	if (b->len && index != before + 1)
		gpuq_buf_addc(b, ',');
	if (!b->len || index != before + 1)
		gpuq_buf_printf(b, "%" PRId64, index);
	else if (last)
		gpuq_buf_printf(b, "-%" PRId64, index);
}

static void put_sum(struct gpuq_arena *a, struct gpuq_val *to, const struct gpuq_val *d,
		    const char *key)
{
	const struct gpuq_val *v = gpuq_get(d, key);

	if (v && v->type == GPUQ_INT)
		gpuq_set(a, to, key, gpuq_int(a, gpuq_get_int(to, key, 0) + v->i));
}

/* Keep the value if it is that of the devices before. */
static void put_same(struct gpuq_arena *a, struct gpuq_val *to, const struct gpuq_val *d,
		     const char *key, bool first)
{
	const struct gpuq_val *v = gpuq_get(d, key), *had = gpuq_get(to, key);
	const bool same = v && had && v->type == had->type &&
			  (v->type == GPUQ_INT ? v->i == had->i
					       : strcmp(gpuq_get_str(d, key, ""),
							gpuq_get_str(to, key, "")) == 0);

	if (first && v)
		gpuq_put(a, to, key, (struct gpuq_val *)(uintptr_t)v);
	else if (!same)
		gpuq_set(a, to, key, gpuq_null(a));
}

static void put_jobs(struct gpuq_arena *a, struct gpuq_val *jobs, const struct gpuq_val *d)
{
	const struct gpuq_val *list = list_of(d, "jobs");

	for (uint32_t i = 0; list && i < list->n; i++) {
		const struct gpuq_val *one = list->items[i];
		uint32_t k = 0;

		while (one->type == GPUQ_STR && k < jobs->n &&
		       (jobs->items[k]->type != GPUQ_STR || strcmp(jobs->items[k]->s, one->s) != 0))
			k++;
		if (one->type != GPUQ_STR || k == jobs->n)
			gpuq_add(a, jobs, (struct gpuq_val *)(uintptr_t)one);
	}
}

/* Parts of one pod are one. */
static void put_parts(struct gpuq_arena *a, struct gpuq_val *parts, const struct gpuq_val *d)
{
	const struct gpuq_val *list = list_of(d, "parts");

	for (uint32_t i = 0; list && i < list->n; i++) {
		const struct gpuq_val *one = list->items[i];
		struct gpuq_val *v = NULL;

		for (uint32_t k = 0; !v && k < parts->n; k++)
			if (strcmp(gpuq_get_str(parts->items[k], "job", ""),
				   gpuq_get_str(one, "job", "")) == 0 &&
			    gpuq_get_int(parts->items[k], "pod", -1) ==
				    gpuq_get_int(one, "pod", -1))
				v = parts->items[k];
		if (!v) {
			v = gpuq_add(a, parts, gpuq_map(a));
			for (uint32_t k = 0; one->type == GPUQ_MAP && k < one->n; k++)
				if (strcmp(one->pairs[k].key, "milli") != 0)
					gpuq_put(a, v, one->pairs[k].key, one->pairs[k].val);
		}
		put_sum(a, v, one, "milli");
	}
}

static void put_all(struct gpuq_arena *a, struct gpuq_val *to, const struct gpuq_val *from)
{
	for (uint32_t i = 0; from && i < from->n; i++)
		gpuq_add(a, to, from->items[i]);
}

/* Return the open devices as one. */
static struct gpuq_val *together(struct gpuq_arena *a, const struct gpuq_val *devices)
{
	struct gpuq_val *v = gpuq_map(a), *jobs = gpuq_list(a), *pods = gpuq_list(a),
			*parts = gpuq_list(a);
	struct gpuq_buf index = GPUQ_BUF_INIT;
	int64_t before = -1;
	bool first = true;

	for (uint32_t i = 0; i < devices->n; i++) {
		const struct gpuq_val *d = devices->items[i];
		const int64_t at = gpuq_get_int(d, "index", -1);
		const bool goes_on = i + 1 < devices->n && is_open(devices->items[i + 1]) &&
				     gpuq_get_int(devices->items[i + 1], "index", -1) == at + 1;

		if (!is_open(d))
			continue;
		put_index(&index, at, before, !goes_on);
		put_same(a, v, d, "product", first);
		put_same(a, v, d, "memory_mib", first);
		put_same(a, v, d, "isolation", first);
		put_sum(a, v, d, "free_milli");
		put_sum(a, v, d, "free_memory_mib");
		put_sum(a, v, d, "used_memory_mib");
		put_jobs(a, jobs, d);
		put_all(a, pods, list_of(d, "pods"));
		put_parts(a, parts, d);
		if (first)
			gpuq_put(a, v, "first", gpuq_int(a, at));
		first = false;
		before = at;
	}
	gpuq_put(a, v, "index", gpuq_str(a, gpuq_buf_str(&index)));
	gpuq_put(a, v, "jobs", jobs);
	gpuq_put(a, v, "pods", pods);
	gpuq_put(a, v, "parts", parts);
	gpuq_put(a, v, "state",
		 gpuq_str(a, gpuq_get_int(v, "free_milli", 0) > 0 ? "shared"
			     : jobs->n                            ? "allocated"
								  : "foreign"));
	gpuq_buf_done(&index);
	return v;
}

int nodes_rows(struct out *o, const struct gpuq_val *node)
{
	const struct gpuq_val *devices = list_of(node, "devices");
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *one = NULL;
	uint32_t n_open = 0;
	bool assumed = false, told = false;
	int rc = 0;

	if (!devices || devices->n == 0)
		return out_row(o, node, NULL);
	for (uint32_t i = 0; i < devices->n; i++) {
		assumed |= is_assumed(devices->items[i]);
		n_open += is_open(devices->items[i]);
	}
	/* On the only one that it can be it is known. */
	if (assumed && n_open > 1)
		one = together(&a, devices);
	for (uint32_t i = 0; i < devices->n && rc == 0; i++) {
		const struct gpuq_val *d = devices->items[i];

		if (one && is_open(d) && told)
			continue;
		rc = out_row(o, node, one && is_open(d) ? one : d);
		told |= is_open(d);
	}
	gpuq_arena_done(&a);
	return rc;
}
