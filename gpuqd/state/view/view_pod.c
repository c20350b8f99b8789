#include "gpuqd/state/view/view_pod.h"

#include <string.h>

#include "gpuqd/state/cuts/shared_claim.h"
#include "gpuqd/state/view/view_node.h"
#include "gpuqd/state/view/view_val.h"

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

/* Return the claims that the pod shares with others: their devices, the jobs of those, and whether this pod is charged
 * for them. */
static struct gpuq_val *view_claims(struct gpuq_arena *a, const struct model *m,
				    const struct pod *p)
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

/* A device that the node no longer has is shown by its index alone. */
struct gpuq_val *view_pod(struct gpuq_arena *a, const struct model *m, const struct pod *p)
{
	struct gpuq_val *v = gpuq_map(a), *list = gpuq_list(a);
	const struct origin_pod *o = model_pod_origin(m, p);
	const bool known = model_pod_devices_known(p);
	char name[64];

	model_pod_name(m, p, name);
	gpuq_put(a, v, "name", gpuq_str(a, o && !origin_is_suspended(o->of) ? o->name : name));
	gpuq_put(a, v, "uid", view_word(a, p->uid));
	gpuq_put(a, v, "index", gpuq_int(a, p->index));
	gpuq_put(a, v, "group", gpuq_str(a, p->job->request->spec.groups[p->group].name));
	gpuq_put(a, v, "node", gpuq_str(a, p->node->name));
	for (uint32_t i = 0; i < p->n_devices; i++) {
		const struct device *d = p->devices[i] < p->node->n_devices
						 ? &p->node->devices[p->devices[i]]
						 : NULL;
		const struct view_share share =
			d ? view_node_share(p, d) : (struct view_share){ -1, -1 };
		struct gpuq_val *dv = gpuq_map(a);

		gpuq_put(a, dv, "index", known ? gpuq_int(a, p->devices[i]) : gpuq_null(a));
		gpuq_put(a, dv, "uuid", view_word(a, d && known ? d->uuid : NULL));
		gpuq_put(a, dv, "milli", gpuq_int(a, p->gpus_milli / p->n_devices));
		gpuq_put(a, dv, "memory_mib",
			 share.memory_mib >= 0 ? gpuq_int(a, share.memory_mib) : gpuq_null(a));
		gpuq_put(a, dv, "cores",
			 share.cores >= 0 ? gpuq_int(a, share.cores) : gpuq_null(a));
		gpuq_add(a, list, dv);
	}
	gpuq_put(a, v, "devices", list);
	gpuq_put(a, v, "shared_claims", view_claims(a, m, p));
	gpuq_put(a, v, "mig", view_profile(a, model_pod_mig(p)));
	gpuq_put(a, v, "instances", gpuq_int(a, model_pod_instances(p)));
	gpuq_put(a, v, "isolation", view_isolation(a, model_pod_isolation(p)));
	gpuq_put(a, v, "state",
		 gpuq_str(a, p->leaving && p->state < GPUQ_POD_ENDED
				     ? gpuq_pod_state_word(GPUQ_POD_LEAVING)
				     : gpuq_pod_state_word(p->state)));
	gpuq_put(a, v, "exit_code", p->exit_code >= 0 ? gpuq_int(a, p->exit_code) : gpuq_null(a));
	gpuq_put(a, v, "start_time", view_instant(a, p->start_us));
	gpuq_put(a, v, "end_time", view_instant(a, p->end_us));
	gpuq_put(a, v, "message", view_word(a, p->message));
	return v;
}
