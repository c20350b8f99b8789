#include "gpuqd/snapshot/snapshot_devices.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/snapshot/snapshot_build.h"

/* Sealing: the memory of devices, and instances of MIG profiles. */

static void lower(int64_t *to, int64_t memory)
{
	if (memory > 0 && (*to == 0 || memory < *to))
		*to = memory;
}

int snapshot_seal_devices(struct seal *w)
{
	struct snapshot *s = w->s;
	const size_t cells = (size_t)s->n_nodes * s->n_profiles;

	s->mig_total = gpuq_arena_calloc(&s->arena, cells, sizeof(*s->mig_total));
	s->mig_free = gpuq_arena_calloc(&s->arena, cells, sizeof(*s->mig_free));
	if (!s->mig_total || !s->mig_free)
		return gpuq_no_memory(w->err);
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		struct snap_node *n = &s->nodes[i];
		int64_t memory = 0;

		for (uint32_t d = 0; d < n->n_devices; d++)
			if (s->devices[n->device_first + d].healthy)
				lower(&memory, s->devices[n->device_first + d].memory_bytes);
		n->device_memory_bytes = memory;
		if (n->flavor != SNAP_NONE && n->state == SNAP_READY)
			lower(&s->flavors[n->flavor].device_memory_bytes, memory);
		for (uint32_t m = 0; m < n->n_mig; m++) {
			const size_t at = (size_t)i * s->n_profiles + n->mig[m].profile_ix;

			s->mig_total[at] += (int32_t)n->mig[m].count;
		}
	}
	return 0;
}

void snapshot_seal_instances(struct snapshot *s)
{
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		const struct snap_node *n = &s->nodes[i];
		const size_t first = (size_t)i * s->n_profiles;

		for (uint32_t p = 0; p < s->n_profiles; p++)
			s->mig_free[first + p] = s->mig_total[first + p];
		for (uint32_t m = 0; m < n->n_mig; m++)
			s->mig_free[first + n->mig[m].profile_ix] -= (int32_t)n->mig[m].foreign;
	}
}

void snapshot_seal_share(const struct snapshot *s, struct snap_alloc *a)
{
	const struct snap_group *g = snap_group_of(s, a);

	if (a->device_memory_bytes <= 0)
		a->device_memory_bytes = snap_group_parts(g) ? g->gpu_memory_bytes : 0;
}

int64_t snapshot_seal_mig_capacity(const struct snapshot *s, uint32_t node)
{
	const struct snap_node *n = &s->nodes[node];
	int64_t milli = 0;

	for (uint32_t m = 0; m < n->n_mig; m++)
		if (n->mig[m].count > n->mig[m].foreign)
			milli += cost_of_profile(n->mig[m].profile) *
				 (n->mig[m].count - n->mig[m].foreign);
	return milli;
}
