#include "gpuqd/sim/outcome.h"

#include <stdio.h>
#include <string.h>

static struct gpuq_val *milli(struct gpuq_arena *a, int64_t m)
{
	return m == GPUQ_UNLIMITED ? gpuq_null(a) : gpuq_real(a, (double)m / 1000);
}

/* A time in the case's unit: whole where it is. */
static struct gpuq_val *in_units(struct gpuq_arena *a, const struct world *w, int64_t us)
{
	if (us % w->unit_us == 0)
		return gpuq_int(a, us / w->unit_us);
	return gpuq_real(a, (double)us / (double)w->unit_us);
}

static struct gpuq_val *reason_value(struct gpuq_arena *a, const struct world *w,
				     const struct plan_reason *r, int64_t v)
{
	switch (r->unit) {
	case PLAN_GPUS:
		return milli(a, v);
	case PLAN_TIME:
		return in_units(a, w, v);
	case PLAN_BYTES:
		return gpuq_int(a, v >> 20);
	default:
		return gpuq_int(a, v);
	}
}

static struct gpuq_val *reasons(struct gpuq_arena *a, const struct world *w,
				const struct sim_job *j)
{
	struct gpuq_val *list = gpuq_list(a);

	for (uint32_t i = 0; j->state == SIM_PENDING && i < j->n_reasons; i++) {
		const struct plan_reason *r = &j->reasons[i];
		struct gpuq_val *m = gpuq_add(a, list, gpuq_map(a));

		gpuq_put(a, m, "code", gpuq_str(a, gpuq_reason_word(r->code)));
		gpuq_put(a, m, "have", reason_value(a, w, r, r->have));
		gpuq_put(a, m, "need", reason_value(a, w, r, r->need));
		gpuq_put(a, m, "object", gpuq_str(a, r->object));
	}
	return list;
}

static struct gpuq_val *placement(struct gpuq_arena *a, const struct world *w,
				  const struct sim_job *j)
{
	const struct sim_template *t = world_template(w, j);
	struct gpuq_val *list = gpuq_list(a);

	for (uint32_t i = 0; j->state == SIM_RUNNING && i < j->n_tasks; i++) {
		const struct sim_task *task = &j->tasks[i];
		const struct sc_tasks *spec = t->groups[task->group].tasks;
		struct gpuq_val *m = gpuq_add(a, list, gpuq_map(a)), *devices;

		gpuq_put(a, m, "node", gpuq_str(a, w->nodes[task->node].name));
		devices = gpuq_put(a, m, "devices", gpuq_list(a));
		for (uint32_t d = 0; d < task->n_devices; d++)
			gpuq_add(a, devices, gpuq_int(a, task->devices[d]));
		gpuq_put(a, m, "milli", gpuq_int(a, task->milli));
		if (spec->role)
			gpuq_put(a, m, "role", gpuq_str(a, spec->role));
		if (spec->group)
			gpuq_put(a, m, "group", gpuq_str(a, spec->group));
		if (spec->mig)
			gpuq_put(a, m, "mig", gpuq_str(a, spec->mig));
	}
	return list;
}

static void put_job(struct gpuq_arena *a, const struct world *w, struct gpuq_val *jobs,
		    const struct sim_job *j)
{
	struct gpuq_val *m = gpuq_put(a, jobs, j->name, gpuq_map(a));

	gpuq_put(a, m, "state", gpuq_str(a, world_fates[world_fate(j)]));
	gpuq_put(a, m, "tasks", gpuq_int(a, j->state == SIM_RUNNING ? j->n_tasks : 0));
	gpuq_put(a, m, "placement", placement(a, w, j));
	gpuq_put(a, m, "moved", gpuq_bool(a, false));
	gpuq_put(a, m, "planned_start",
		 j->state == SIM_PENDING && j->planned_us ? in_units(a, w, j->planned_us)
							  : gpuq_null(a));
	gpuq_put(a, m, "reasons", reasons(a, w, j));
}

static struct gpuq_val *queues(struct gpuq_arena *a, const struct world *w)
{
	struct gpuq_val *map = gpuq_map(a);

	for (uint32_t q = 0; q < w->n_queues; q++) {
		const struct sim_queue *in = &w->shares[q];
		struct gpuq_val *m = gpuq_put(a, map, in->name, gpuq_map(a));

		gpuq_put(a, m, "allocated", milli(a, in->allocated_milli));
		gpuq_put(a, m, "fair_share", milli(a, in->fair_milli));
		gpuq_put(a, m, "quota", milli(a, in->quota_milli));
	}
	return map;
}

struct gpuq_val *outcome_make(struct gpuq_arena *a, struct world *w)
{
	static const char *const ends[] = { "completed", "failed", "timeout", "cancelled" };
	struct gpuq_val *out = gpuq_map(a), *jobs, *ended, *evictions;

	for (int f = 0; f < SIM_FATE_ENDED; f++) {
		struct gpuq_val *list = gpuq_put(a, out, world_fates[f], gpuq_list(a));

		for (uint32_t i = 0; i < w->n_jobs; i++)
			if ((int)world_fate(&w->jobs[i]) == f)
				gpuq_add(a, list, gpuq_str(a, w->jobs[i].name));
	}
	jobs = gpuq_put(a, out, "jobs", gpuq_map(a));
	for (uint32_t i = 0; i < w->n_jobs; i++)
		put_job(a, w, jobs, &w->jobs[i]);
	gpuq_put(a, out, "queues", queues(a, w));
	evictions = gpuq_put(a, out, "evictions", gpuq_list(a));
	for (uint32_t i = 0; i < w->n_evictions; i++) {
		struct gpuq_val *m = gpuq_add(a, evictions, gpuq_map(a));

		gpuq_put(a, m, "job", gpuq_str(a, w->jobs[w->evictions[i].job].name));
		gpuq_put(a, m, "mode", gpuq_str(a, w->evictions[i].mode));
		gpuq_put(a, m, "cause", gpuq_str(a, w->evictions[i].cause));
		gpuq_put(a, m, "by", gpuq_null(a));
		gpuq_put(a, m, "rule", gpuq_null(a));
	}
	gpuq_put(a, out, "moves", gpuq_list(a));
	ended = gpuq_put(a, out, "ended", gpuq_map(a));
	for (uint32_t i = 0; i < w->n_jobs; i++)
		if (world_fate(&w->jobs[i]) == SIM_FATE_ENDED)
			gpuq_put(a, ended, w->jobs[i].name, gpuq_str(a, ends[w->jobs[i].ended]));
	return out;
}
