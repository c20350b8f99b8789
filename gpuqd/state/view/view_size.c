#include "gpuqd/state/view/view_size.h"

#include "gpuqd/snapshot/cost.h"
#include "gpuqd/state/takes.h"
#include "gpuqd/util/amount.h"

struct view_size view_size_of_spec(const struct gpuq_spec *spec)
{
	struct view_size s = { gpuq_spec_pods(spec), gpuq_spec_gpus_milli(spec), 0, 0 };

	for (size_t i = 0; i < spec->n_groups; i++) {
		s.cpu_milli += spec->groups[i].pods_min * spec->groups[i].cpu_milli;
		s.memory_bytes += spec->groups[i].pods_min * spec->groups[i].memory_bytes;
	}
	return s;
}

/* Return what those of a stored request request. */
static struct view_size size_of_request(const struct request *r)
{
	struct view_size s = { r->n_pods, r->gpus_milli, 0, 0 };

	for (uint32_t i = 0; i < r->spec.n_groups; i++) {
		const struct request_group *g = &r->spec.groups[i];

		s.cpu_milli += g->pods_min * g->cpu_milli;
		s.memory_bytes += g->pods_min * g->memory_bytes;
	}
	return s;
}

struct view_size view_size_of_job(const struct job *j)
{
	struct view_size s = { 0 };
	const struct pod *p;

	if (!model_job_is_live(j) || !job_is_elastic(j))
		return size_of_request(j->request);
	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && !p->dropped) {
			s.pods++;
			s.gpus_milli += p->gpus_milli;
			s.cpu_milli += p->cpu_milli;
			s.memory_bytes += p->memory_bytes;
		}
	return s;
}

/* Return the least memory of a device in bytes; 0 = none is known. */
static int64_t least_memory(const struct model *m)
{
	int64_t least = 0;

	node_each(m, n)
		if (n->n_devices && n->devices[0].memory_mib > 0 &&
		    (least == 0 || n->devices[0].memory_mib < least))
			least = n->devices[0].memory_mib;
	return least << 20;
}

/* Return the devices that a request is charged as long as it is not known where it runs. */
static int64_t ask_milli(const struct model *m, const struct request_group *g)
{
	const int64_t shared = g->where ? gpuq_group_shared_milli(g->where) : 0;

	return g->pods_min * cost_of_ask(cost_least_profile(g->mig, &g->mig_more), g->gpus_milli,
					 g->gpu_cores, g->gpu_memory_bytes,
					 g->gpu_memory_bytes ? least_memory(m) : 0) -
	       (g->pods_min - 1) * shared;
}

int64_t view_size_charged(const struct model *m, const struct job *j)
{
	bool rides = false;
	int64_t milli = 0;
	const struct pod *p;

	DL_FOREACH2(j->pods, p, job_next)
		if (p->attempt == j->attempt && !p->dropped) {
			milli += p->gpus_milli;
			rides |= p->rides != 0;
		}
	if ((milli > 0 || rides) && j->state != GPUQ_JOB_PENDING)
		return milli;
	for (uint32_t i = 0; i < j->request->spec.n_groups; i++)
		milli = (i ? milli : 0) + ask_milli(m, &j->request->spec.groups[i]);
	return milli;
}

/* Add what n pods request by `resources` to {name: count}. */
static void add_resources(struct gpuq_arena *a, struct gpuq_val *to, int64_t n,
			  const struct gpuq_amount *each, size_t n_each)
{
	for (size_t i = 0; i < n_each; i++)
		gpuq_set(a, to, each[i].name,
			 gpuq_int(a, amount_sum(gpuq_get_int(to, each[i].name, 0),
						amount_times(each[i].count, n))));
}

struct gpuq_val *view_size_resources_of_spec(struct gpuq_arena *a, const struct gpuq_spec *spec)
{
	struct gpuq_val *v = gpuq_map(a);

	for (size_t i = 0; i < spec->n_groups; i++)
		add_resources(a, v, spec->groups[i].pods_min, spec->groups[i].resources,
			      spec->groups[i].n_resources);
	return v;
}

struct gpuq_val *view_size_resources(struct gpuq_arena *a, const struct model *m,
				     const struct job *j)
{
	struct gpuq_amount all[GPUQ_RESOURCES_MAX];
	const struct request_spec *r = &j->request->spec;
	const bool by_pods = model_job_is_live(j) && job_is_elastic(j);
	struct gpuq_val *v = gpuq_map(a);
	const struct pod *p;

	for (uint32_t i = 0; i < r->n_groups; i++) {
		const struct request_group *g = &r->groups[i];
		/* With what the cluster adds: the same that nodes show as taken by its pods. */
		const size_t n_all = takes_amounts(m, j->queue, g, all);
		int64_t n = by_pods ? 0 : g->pods_min;

		if (n_all == 0)
			continue;
		DL_FOREACH2(by_pods ? j->pods : NULL, p, job_next)
			n += p->attempt == j->attempt && !p->dropped && p->group == i;
		add_resources(a, v, n, all, n_all);
	}
	return v;
}
