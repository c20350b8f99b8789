#include "gpuqd/state/view/view_claims.h"

#include <string.h>

#include "gpuqd/state/cuts/shared_claim.h"
#include "gpuqd/state/view/view.h"

/* The jobs of pods that share a claim. */
struct sharers {
	struct gpuq_arena *a;
	struct gpuq_val *jobs;
};

/* Add the job of another pod, once. */
static void add_sharer(void *arg, const struct pod *other)
{
	struct sharers *s = arg;
	const char *key = view_key(s->a, other->job->key);

	for (uint32_t i = 0; i < s->jobs->n; i++)
		if (strcmp(s->jobs->items[i]->s, key) == 0)
			return;
	gpuq_add(s->a, s->jobs, gpuq_str(s->a, key));
}

struct gpuq_val *view_claims(struct gpuq_arena *a, const struct model *m, const struct pod *p)
{
	const struct gpuq_group *g = shared_claim_group(&p->job->request->spec, p->group);
	struct gpuq_val *list = gpuq_list(a);

	for (size_t i = 0; g && model_pod_takes(p) && i < g->n_claims; i++) {
		struct sharers s = { a, gpuq_list(a) };
		struct gpuq_val *v = gpuq_map(a), *devices = gpuq_list(a);
		const bool rides = p->rides >> i & 1;
		uint16_t at[DRA_RESULTS_MAX];
		uint32_t n;

		shared_claim_each(p, i, add_sharer, &s);
		if (!rides && s.jobs->n == 0)
			continue;
		n = shared_claim_list(m, p, i, at);
		for (uint32_t k = 0; k < n; k++)
			gpuq_add(a, devices, gpuq_int(a, at[k]));
		gpuq_put(a, v, "claim", gpuq_str(a, g->claims[i].claim));
		gpuq_put(a, v, "devices", devices);
		gpuq_put(a, v, "jobs", s.jobs);
		gpuq_put(a, v, "charged", gpuq_bool(a, !rides));
		gpuq_add(a, list, v);
	}
	return list;
}
