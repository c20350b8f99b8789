#include "gpuqd/sim/world_int.h"
#include "gpuqd/sim/world_pools.h"

#include <string.h>

/* Parts of a case that a site, a job file and the model lack. */

#define STEPS 256 /* of a half-life: shares are evaluated again after each */

static int64_t whole_units(int64_t milli, int64_t absent)
{
	return milli == SC_ABSENT ? absent : milli / 1000;
}

static int64_t or_unlimited(int64_t milli)
{
	return milli == SC_ABSENT || milli < 0 ? GPUQ_UNLIMITED : milli;
}

/* If the case sets the weight of classes, the highest priority of its jobs gets all the points.
 * Priorities of jobs are thousandths here. */
static struct snap_weights weights_of(const struct world *w)
{
	struct snap_weights out = w->weights;

	out.qos_full = 1000;
	for (uint32_t i = 0; w->weighs_classes && i < w->n_jobs; i++) {
		const int64_t p = w->jobs[i].priority, size = p < 0 ? -p : p;

		out.qos_full = size > out.qos_full ? size : out.qos_full;
	}
	return out;
}

static void more_config(void *arg, struct snap_config *out)
{
	const struct world *w = arg;

	out->weights = weights_of(w);
	/* Sooner than gpuqd, which runs all day, evaluates it again. */
	out->usage_step_us = w->half_life_us / STEPS;
	if (w->half_life_us && out->usage_step_us < GPUQ_US_PER_S)
		out->usage_step_us = GPUQ_US_PER_S;
}

static void more_queue(void *arg, const struct queue *q, struct snap_queue *out,
		       struct snap_share *shares, uint32_t n_flavors)
{
	const struct world *w = arg;
	const struct sc_queue *in = world_queue(w, q->name);
	struct snap_share *cpu = &shares[n_flavors];

	if (in->quota_cpu != SC_ABSENT)
		cpu[0].quota = in->quota_cpu < 0 ? GPUQ_UNLIMITED : in->quota_cpu / 1000;
	if (in->limit_cpu != SC_ABSENT && in->limit_cpu >= 0)
		cpu[0].limit = in->limit_cpu / 1000;
	if (in->quota_mem_mb != SC_ABSENT)
		cpu[1].quota =
			in->quota_mem_mb < 0 ? GPUQ_UNLIMITED : in->quota_mem_mb / 1000 << 20;
	if (in->limit_mem_mb != SC_ABSENT && in->limit_mem_mb >= 0)
		cpu[1].limit = in->limit_mem_mb / 1000 << 20;
	out->age = in - w->queues;
	out->spread = in->spread;
	out->usage_micro += (int64_t)usage_left((usage_q32)(uint64_t)(in->usage * 1000),
						w->now_us - w->made_us, w->half_life_us);
	/* Parts of devices and of minutes, too. */
	out->user_max_gpus_milli = or_unlimited(in->user_max_gpus);
	out->job_max_gpus_milli = or_unlimited(in->job_max_gpus);
	out->max_gpus_milli = or_unlimited(in->max_gpus);
	if (in->budget_gpu_min == SC_ABSENT || in->budget_gpu_min < 0)
		return;
	out->budget_gpu_ms = in->budget_gpu_min * 60;
	out->budget_used_gpu_ms += w->spent_before_ms[q->ix];
}

static void more_node(void *arg, const struct node *n, struct snap_node *out)
{
	const struct world *w = arg;
	const struct sc_node *spec = w->nodes[world_node(w, n->name)].spec;

	out->pool = spec->pool;
	out->pods = whole_units(spec->max_pods, GPUQ_UNLIMITED);
	if (out->n_devices + out->n_mig == 0)
		return;
	for (uint32_t f = 0; f < w->n_flavors; f++)
		if (strcmp(w->flavors[f], spec->flavor ? spec->flavor : "default") == 0)
			out->flavor = f;
}

static void more_request(void *arg, const struct request *r, struct snap_group *groups)
{
	const struct world *w = arg;
	const struct sim_template *t;
	uint32_t id;

	memcpy(&id, r->bytes, sizeof(id));
	t = &w->templates[id - 1];
	for (uint32_t g = 0; g < t->n_groups; g++) {
		groups[g].name = t->groups[g].tasks->role;
		groups[g].unit_pods = t->spec->min_groups != SC_ABSENT ? t->unit : 0;
	}
}

/* Return the first of its dependencies that does not exist; NULL = all exist. */
static const char *missing(const struct sim_template *t)
{
	const struct sc_depend *d = t->spec->depends.items;

	for (size_t i = 0; i < t->spec->depends.n; i++)
		if (d[i].type != GPUQ_DEP_SINGLETON && t->job.depends[i].job == UINT32_MAX)
			return d[i].job ? d[i].job : "";
	return NULL;
}

/* True if some group of it has fewer pods than its minimum. */
static bool is_short(const struct job *j)
{
	const struct request_spec *spec = &j->request->spec;

	for (uint32_t g = 0; g < spec->n_groups; g++) {
		const struct pod *p;
		int64_t n = 0;

		DL_FOREACH2(j->pods, p, job_next)
			n += p->group == g && model_pod_takes(p) && !p->dropped;
		if (n < spec->groups[g].pods_min)
			return true;
	}
	return false;
}

/* Exclude nodes that the case keeps it from; 64 at most. */
static void exclude(struct world *w, const struct sim_template *t, struct snap_job *out)
{
	const struct gpuq_strlist *names = &t->spec->exclude;
	uint32_t *nodes;

	if (names->n == 0)
		return;
	nodes = gpuq_arena_calloc(&w->cycle, names->n + out->n_exclude, sizeof(*nodes));
	if (!nodes)
		return;
	if (out->n_exclude)
		memcpy(nodes, out->exclude, out->n_exclude * sizeof(*nodes));
	for (size_t i = 0; i < names->n && i < 64; i++) {
		const struct node *n = model_find_node(w->m, names->items[i]);

		if (n)
			nodes[out->n_exclude++] = n->snap_ix;
	}
	out->exclude = nodes;
}

static void more_job(void *arg, const struct job *j, struct snap_job *out)
{
	struct world *w = arg;
	struct snap_key key = { j->key.id, j->key.index };
	const struct sim_template *t = &w->templates[j->key.id - 1];
	const struct sim_job *of;

	if (j->array)
		key.index = (int32_t)j->array->waiting[0].first;
	of = world_keyed(w, key);
	out->priority = of->priority;
	out->boost = t->spec->boost / 1000;
	out->evict_last = t->spec->evict_last;
	out->spread = t->spec->spread;
	out->restart_cost_us = world_runtime(w, t->spec->restart_cost, 0);
	out->grace_us = 0; /* evicted pods are gone at once */
	if (model_job_is_live(j)) {
		out->checkpoint_us = of->checkpoint_us;
		/* It was listed without some of its tasks. */
		if (t->spec->stale && j->attempt == 0 && !out->short_us && is_short(j))
			out->short_us = j->life->start_us;
	} else if (missing(t)) {
		out->gate = GPUQ_R_DEPENDENCY_NEVER;
		out->gate_object = missing(t);
	}
	exclude(w, t, out);
}

void world_more(struct world *w, struct snapshot_more *out)
{
	*out = (struct snapshot_more){ more_config, more_queue,      more_node, more_request,
				       more_job,    world_pools_add, w };
}
