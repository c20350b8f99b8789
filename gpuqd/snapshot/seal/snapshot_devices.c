#include "gpuqd/snapshot/seal/snapshot_devices.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/snapshot/snapshot_build.h"

#include "gpuqd/util/amount.h"
#include "libgpuq/spec/resource.h"

#include <string.h>

/* Sealing: the memory of devices, instances of MIG profiles, and countable resources. */

/* Keep the least that is known; 0 = nothing is. */
static void lower(int64_t *to, int64_t memory)
{
	if (memory > 0 && (*to == 0 || memory < *to))
		*to = memory;
}

/* Return the number of a resource that some request names; SNAP_NONE. */
static uint32_t extra_named(const struct snapshot *s, const char *name)
{
	for (uint32_t x = 0; x < s->n_extras; x++)
		if (strcmp(s->extras[x], name) == 0)
			return x;
	return SNAP_NONE;
}

/* Nodes that are alike share the names of their resources: a name is looked for once. */
struct named {
	const char *name[64];
	uint32_t extra[64];
};

static uint32_t extra_at(const struct snapshot *s, struct named *last, uint32_t at,
			 const char *name)
{
	if (at >= sizeof(last->name) / sizeof(last->name[0]))
		return extra_named(s, name);
	if (last->name[at] != name) {
		last->name[at] = name;
		last->extra[at] = extra_named(s, name);
	}
	return last->extra[at];
}

/* Local storage that a node does not report is not counted there. */
static void seal_resources(struct snapshot *s, uint32_t node, struct named *last, uint32_t storage)
{
	const struct snap_node *n = &s->nodes[node];
	int64_t *total = s->extra_total + (size_t)node * s->n_extras;
	bool told = false;

	for (uint32_t i = 0; i < n->n_resources; i++) {
		const uint32_t x = extra_at(s, last, i, n->resources[i].name);

		if (x != SNAP_NONE)
			total[x] += n->resources[i].count;
		told |= x != SNAP_NONE && x == storage;
	}
	if (storage != SNAP_NONE && !told)
		total[storage] = SNAP_PLENTY;
}

int snapshot_seal_devices(struct seal *w)
{
	struct snapshot *s = w->s;
	const size_t cells = (size_t)s->n_nodes * s->n_extras;
	const uint32_t storage = extra_named(s, GPUQ_RESOURCE_STORAGE);
	struct named last = { 0 };

	s->extra_total = gpuq_arena_calloc(&s->arena, cells, sizeof(*s->extra_total));
	s->extra_free = gpuq_arena_calloc(&s->arena, cells, sizeof(*s->extra_free));
	if (!s->extra_total || !s->extra_free)
		return gpuq_no_memory(w->err);
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		struct snap_node *n = &s->nodes[i];
		int64_t memory = 0;

		n->n_whole = n->n_parts = 0;
		for (uint32_t d = n->device_first; d < n->device_first + n->n_devices; d++) {
			s->devices[d].unit_bytes = n->unit_bytes;
			n->n_whole += s->devices[d].serves != SNAP_SERVES_PARTS;
			n->n_parts += s->devices[d].serves != SNAP_SERVES_WHOLE;
			if (s->devices[d].healthy)
				lower(&memory, s->devices[d].memory_bytes);
		}
		n->device_memory_bytes = memory;
		if (n->flavor != SNAP_NONE && n->state == SNAP_READY)
			lower(&s->flavors[n->flavor].device_memory_bytes, memory);
		if (n->flavor != SNAP_NONE && n->state == SNAP_READY)
			s->flavors[n->flavor].by_memory |= n->by_memory;
		if (n->flavor != SNAP_NONE && n->state == SNAP_READY &&
		    s->flavors[n->flavor].unit_bytes < n->unit_bytes)
			s->flavors[n->flavor].unit_bytes = n->unit_bytes;
		if (n->flavor != SNAP_NONE && n->state == SNAP_READY && n->replicas > 1) {
			int64_t fewest = s->flavors[n->flavor].replicas;

			lower(&fewest, n->replicas);
			s->flavors[n->flavor].replicas = (uint32_t)fewest;
		}
		for (uint32_t m = 0; m < n->n_mig; m++) {
			const size_t at = (size_t)i * s->n_extras + n->mig[m].extra_ix;

			s->extra_total[at] += n->mig[m].count;
		}
		if (s->n_extras)
			seal_resources(s, i, &last, storage);
	}
	return 0;
}

void snapshot_seal_extras(struct snapshot *s)
{
	struct named last = { 0 };

	for (uint32_t i = 0; i < s->n_nodes; i++) {
		const struct snap_node *n = &s->nodes[i];
		const size_t first = (size_t)i * s->n_extras;

		for (uint32_t p = 0; p < s->n_extras; p++)
			s->extra_free[first + p] = s->extra_total[first + p];
		for (uint32_t m = 0; m < n->n_mig; m++)
			s->extra_free[first + n->mig[m].extra_ix] -= n->mig[m].foreign;
		for (uint32_t k = 0; s->n_extras && k < n->n_resources; k++) {
			const uint32_t x = extra_at(s, &last, k, n->resources[k].name);

			if (x != SNAP_NONE)
				s->extra_free[first + x] -= n->resources[k].foreign;
		}
	}
}

void snapshot_seal_share(const struct snapshot *s, struct snap_alloc *a)
{
	const struct snap_group *g = snap_group_of(s, a);

	const struct snap_node *n = &s->nodes[a->node];
	const int64_t part = snap_group_part(g);

	if (!snap_group_parts(g))
		return;
	if (a->device_memory_bytes <= 0)
		a->device_memory_bytes = snap_memory_up(g->gpu_memory_bytes, n->unit_bytes);
	/* A replica is taken as a whole. */
	if (g->gpu_memory_bytes && n->replicas <= 1)
		a->milli = (int32_t)amount_cores(a->milli, part, n->slots);
}

int64_t snapshot_seal_mig_capacity(const struct snapshot *s, uint32_t node, int64_t *rounded)
{
	const struct snap_node *n = &s->nodes[node];
	int64_t milli = 0, exact = 0;

	for (uint32_t m = 0; m < n->n_mig; m++) {
		const int64_t left = (int64_t)n->mig[m].count - n->mig[m].foreign;

		if (left <= 0)
			continue;
		milli += cost_of_profile(n->mig[m].profile) * left;
		exact += cost_exact(n->mig[m].profile, left);
	}
	exact = (exact * SNAP_MILLI + COST_EXACT - 1) / COST_EXACT;
	*rounded = milli > exact ? milli - exact : 0;
	return milli;
}
