#include "gpuqd/sim/outcome.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/sched/quota/priority.h"
#include "gpuqd/sim/world_pools.h"
#include "gpuqd/state/cuts/cut.h"
#include "libgpuq/spec/profile.h"

static struct gpuq_val *milli(struct gpuq_arena *a, int64_t m)
{
	return m == GPUQ_UNLIMITED ? gpuq_null(a) : gpuq_real(a, (double)m / 1000);
}

static struct gpuq_val *span(struct gpuq_arena *a, const struct world *w, int64_t us)
{
	if (us % w->unit_us == 0)
		return gpuq_int(a, us / w->unit_us);
	return gpuq_real(a, (double)us / (double)w->unit_us);
}

struct gpuq_val *outcome_time(struct gpuq_arena *a, const struct world *w, int64_t us)
{
	return span(a, w, us - WORLD_BASE_US);
}

static struct gpuq_val *reason_value(struct gpuq_arena *a, const struct world *w,
				     const struct plan_reason *r, int64_t v)
{
	switch (r->unit) {
	case PLAN_GPUS:
		return milli(a, v);
	case PLAN_TIME:
		return outcome_time(a, w, v);
	case PLAN_BYTES:
		return gpuq_int(a, v >> 20);
	default:
		return gpuq_int(a, v);
	}
}

/* Return the obstacle by the case's name for it: a plan knows jobs by their keys. */
static const char *object_of(struct gpuq_arena *a, const struct world *w,
			     const struct plan_reason *r)
{
	const char *at = strchr(r->object, ':'), *name;
	struct snap_key key = { 0, -1 };

	if (r->code == GPUQ_R_DEPENDENCY || r->code == GPUQ_R_DEPENDENCY_NEVER) {
		/* "afterok:17": replace the job alone by its name in the case */
		if (!at || sscanf(at + 1, "%" SCNu32 "_%" SCNd32, &key.id, &key.index) < 1)
			return strcmp(r->object, "singleton") == 0 ? "" : r->object;
		name = world_key_name(w, key);
		return name ? name : "";
	}
	if (r->code != GPUQ_R_PRIORITY && r->code != GPUQ_R_VICTIMS)
		return r->object;
	if (sscanf(r->object, "%" SCNu32 "_%" SCNd32, &key.id, &key.index) < 1)
		return r->object;
	name = world_key_name(w, key);
	return name ? gpuq_arena_strdup(a, name) : r->object;
}

static void put_reason(struct gpuq_arena *a, const struct world *w, struct gpuq_val *m,
		       const struct plan_reason *r)
{
	gpuq_put(a, m, "code", gpuq_str(a, gpuq_reason_word(r->code)));
	gpuq_put(a, m, "have", reason_value(a, w, r, r->have));
	gpuq_put(a, m, "need", reason_value(a, w, r, r->need));
	gpuq_put(a, m, "object", gpuq_str(a, object_of(a, w, r)));
}

static struct gpuq_val *reasons(struct gpuq_arena *a, const struct world *w,
				const struct sim_job *j)
{
	struct gpuq_val *list = gpuq_list(a);

	for (uint32_t i = 0; j->state == SIM_PENDING && i < j->n_reasons; i++)
		put_reason(a, w, gpuq_add(a, list, gpuq_map(a)), &j->reasons[i]);
	return list;
}

/* Return the bounds of the scheduler that ended a search for a pending job. */
static struct gpuq_val *bounds(struct gpuq_arena *a, const struct sim_job *j)
{
	struct gpuq_val *list = gpuq_list(a);

	for (uint32_t i = 0; j->state == SIM_PENDING && i < j->n_bounds; i++) {
		struct gpuq_val *m = gpuq_add(a, list, gpuq_map(a));

		gpuq_put(a, m, "bound", gpuq_str(a, plan_bound_word(j->bounds[i].what)));
		gpuq_put(a, m, "most", gpuq_int(a, j->bounds[i].most));
	}
	return list;
}

/* Return the sub-group of a task: named ones are filled one after the other. */
static const char *group_name(const struct sim_template *t, const struct sim_task *tasks,
			      uint32_t n, uint32_t at)
{
	const struct sc_tasks *all = t->spec->tasks.items;
	uint32_t nth = 0;

	if (t->spec->min_groups == SC_ABSENT)
		return t->groups[tasks[at].group].tasks->group;
	for (uint32_t i = 0; i < n; i++)
		nth += tasks[i].group == tasks[at].group && tasks[i].index < tasks[at].index;
	for (size_t i = 0; i < t->spec->tasks.n; i++) {
		const uint32_t count = (uint32_t)(all[t->order[i]].count / 1000);

		if (nth < count)
			return all[t->order[i]].group;
		nth -= count;
	}
	return NULL;
}

/* Return the terms of a pending job's priority in its queue. */
static struct gpuq_val *priority(struct gpuq_arena *a, const struct sim_job *j)
{
	const struct priority_terms *t = &j->terms;
	struct gpuq_val *v;

	if (j->state != SIM_PENDING || j->n_reasons == 0)
		return gpuq_null(a);
	v = priority_terms_val(a, t);
	gpuq_put(a, v, "total", gpuq_int(a, t->total));
	return v;
}

static struct gpuq_val *placement(struct gpuq_arena *a, const struct world *w,
				  const struct sim_job *j)
{
	const struct sim_template *t = world_template(w, j);
	struct gpuq_val *list = gpuq_list(a);
	uint32_t n;
	const struct sim_task *tasks = world_places(j, &n);

	for (uint32_t i = 0; i < n; i++) {
		const struct sim_task *task = &tasks[i];
		const struct sc_tasks *spec = t->groups[task->group].tasks;
		const char *group = group_name(t, tasks, n, i);
		char profile[GPUQ_PROFILE_ROOM];
		struct gpuq_val *m = gpuq_add(a, list, gpuq_map(a)), *devices;

		gpuq_put(a, m, "node", gpuq_str(a, w->nodes[task->node].name));
		devices = gpuq_put(a, m, "devices", gpuq_list(a));
		for (uint32_t d = 0; d < task->n_devices; d++)
			gpuq_add(a, devices, gpuq_int(a, task->devices[d]));
		gpuq_put(a, m, "milli", gpuq_int(a, task->milli));
		if (spec->role)
			gpuq_put(a, m, "role", gpuq_str(a, spec->role));
		if (group)
			gpuq_put(a, m, "group", gpuq_str(a, group));
		if (task->mig || (spec->mig && !spec->mig_ok))
			gpuq_put(a, m, "mig",
				 gpuq_str(a, gpuq_profile_name(task->mig ? task->mig : spec->mig,
							       profile)));
	}
	return list;
}

static struct gpuq_val *estimate(struct gpuq_arena *a, const struct world *w,
				 const struct sim_estimate *e)
{
	struct gpuq_val *m = gpuq_map(a), *list;

	gpuq_put(a, m, "start",
		 e->start_us == GPUQ_UNLIMITED ? gpuq_null(a) : outcome_time(a, w, e->start_us));
	list = gpuq_put(a, m, "reasons", gpuq_list(a));
	for (uint32_t i = 0; i < e->n; i++) {
		struct gpuq_val *why = gpuq_add(a, list, gpuq_map(a));

		gpuq_put(a, why, "at", outcome_time(a, w, e->at_us[i]));
		put_reason(a, w, why, &e->why[i]);
	}
	return m;
}

static void put_job(struct gpuq_arena *a, const struct world *w, struct gpuq_val *jobs,
		    const struct sim_job *j)
{
	struct gpuq_val *m = gpuq_put(a, jobs, j->name, gpuq_map(a));
	uint32_t n;

	gpuq_put(a, m, "state", gpuq_str(a, world_fates[world_fate(j)]));
	world_places(j, &n);
	gpuq_put(a, m, "tasks", gpuq_int(a, n));
	gpuq_put(a, m, "placement", placement(a, w, j));
	gpuq_put(a, m, "moved", gpuq_bool(a, j->moved));
	gpuq_put(a, m, "planned_start",
		 j->state == SIM_PENDING && j->planned_us ? outcome_time(a, w, j->planned_us)
							  : gpuq_null(a));
	if (j->state == SIM_RUNNING && j->given_us)
		gpuq_put(a, m, "walltime", span(a, w, j->given_us));
	gpuq_put(a, m, "reasons", reasons(a, w, j));
	gpuq_put(a, m, "bounds", bounds(a, j));
	if (j->state == SIM_PENDING && j->estimate)
		gpuq_put(a, m, "estimate", estimate(a, w, j->estimate));
	gpuq_put(a, m, "priority", priority(a, j));
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

static struct gpuq_val *word(struct gpuq_arena *a, const char *s)
{
	return s ? gpuq_str(a, s) : gpuq_null(a);
}

/* Return all that jobs lost since the last mark; moves = only of jobs that were moved. */
static struct gpuq_val *evictions(struct gpuq_arena *a, const struct world *w, bool moves)
{
	struct gpuq_val *list = gpuq_list(a);

	for (uint32_t i = w->marked_evictions; i < w->n_evictions; i++) {
		const struct sim_eviction *e = &w->evictions[i];
		struct gpuq_val *m;

		if (moves && strcmp(e->mode, "move") != 0)
			continue;
		m = gpuq_add(a, list, gpuq_map(a));
		gpuq_put(a, m, "job", gpuq_str(a, w->jobs[e->job].name));
		if (!moves)
			gpuq_put(a, m, "mode", gpuq_str(a, e->mode));
		gpuq_put(a, m, "cause", gpuq_str(a, e->cause));
		gpuq_put(a, m, "by", word(a, e->by));
		gpuq_put(a, m, "rule", word(a, e->rule));
	}
	return list;
}

/* Return the numbers behind preemptions for a job: use and entitlement of the queues on both sides,
 * in devices. */
static struct gpuq_val *claims(struct gpuq_arena *a, const struct world *w)
{
	static const char *const passed[N_PLAN_PASSED] = { "firm", "busy", "shielded",
							   "not_needed" };
	struct gpuq_val *list = gpuq_list(a);

	for (uint32_t i = w->marked_claims; i < w->n_claims; i++) {
		const struct sim_claim *c = &w->claims[i];
		struct gpuq_val *m = gpuq_add(a, list, gpuq_map(a)), *sides, *others;

		gpuq_put(a, m, "job", gpuq_str(a, w->jobs[c->job].name));
		gpuq_put(a, m, "need", milli(a, c->need));
		sides = gpuq_put(a, m, "queues", gpuq_list(a));
		for (uint32_t k = 0; k < c->n_sides; k++) {
			const struct sim_side *side = &c->sides[k];
			struct gpuq_val *v = gpuq_add(a, sides, gpuq_map(a));

			gpuq_put(a, v, "queue", gpuq_str(a, side->queue));
			gpuq_put(a, v, "before", milli(a, side->before));
			gpuq_put(a, v, "after", milli(a, side->after));
			gpuq_put(a, v, "fair_share", milli(a, side->fair_share));
			gpuq_put(a, v, "quota", milli(a, side->quota));
		}
		others = gpuq_put(a, m, "passed_over", gpuq_map(a));
		for (int k = 0; k < N_PLAN_PASSED; k++)
			gpuq_put(a, others, passed[k], gpuq_int(a, c->passed[k]));
	}
	return list;
}

/* Return how far the pools have grown. */
static struct gpuq_val *pools(struct gpuq_arena *a, const struct world *w)
{
	struct gpuq_val *map = gpuq_map(a);

	for (uint32_t p = 0; p < w->n_pools; p++) {
		const struct pool_count n = world_pools_count(w, p);
		struct gpuq_val *m = gpuq_put(a, map, w->pools[p].spec->name, gpuq_map(a));

		gpuq_put(a, m, "nodes", gpuq_int(a, n.nodes));
		gpuq_put(a, m, "asked", gpuq_int(a, n.asked));
		gpuq_put(a, m, "requests", gpuq_int(a, n.requests));
	}
	return map;
}

/* Return the nodes that were cut, or are being cut. */
static struct gpuq_val *cuts(struct gpuq_arena *a, const struct world *w)
{
	struct gpuq_val *map = gpuq_map(a);

	for (uint32_t i = 0; i < w->n_nodes; i++) {
		const struct node *n = model_find_node(w->m, w->nodes[i].name);
		struct gpuq_val *m;
		const char *job;

		if (!n || !n->cut)
			continue;
		m = gpuq_put(a, map, w->nodes[i].name, gpuq_map(a));
		job = world_key_name(w, (struct snap_key){ n->cut->job.id, n->cut->job.index });
		gpuq_put(a, m, "layout", gpuq_str(a, n->cut->layout));
		gpuq_put(a, m, "state", gpuq_str(a, cut_state_words[n->cut->state]));
		gpuq_put(a, m, "job", job ? gpuq_str(a, job) : gpuq_null(a));
	}
	return map;
}

static bool has_layouts(const struct world *w)
{
	for (uint32_t p = 0; p < w->n_pools; p++)
		if (w->pools[p].spec->mig)
			return true;
	return false;
}

struct gpuq_val *outcome_make(struct gpuq_arena *a, struct world *w)
{
	static const char *const ends[] = { "completed", "failed", "timeout", "cancelled" };
	struct gpuq_val *out = gpuq_map(a), *jobs, *ended;

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
	if (w->n_pools)
		gpuq_put(a, out, "pools", pools(a, w));
	if (has_layouts(w))
		gpuq_put(a, out, "cuts", cuts(a, w));
	gpuq_put(a, out, "evictions", evictions(a, w, false));
	gpuq_put(a, out, "moves", evictions(a, w, true));
	gpuq_put(a, out, "claims", claims(a, w));
	ended = gpuq_put(a, out, "ended", gpuq_map(a));
	for (uint32_t i = 0; i < w->n_jobs; i++)
		if (world_fate(&w->jobs[i]) == SIM_FATE_ENDED)
			gpuq_put(a, ended, w->jobs[i].name, gpuq_str(a, ends[w->jobs[i].ended]));
	ended = gpuq_put(a, out, "end_cause", gpuq_map(a));
	for (uint32_t i = 0; i < w->n_jobs; i++)
		if (world_fate(&w->jobs[i]) == SIM_FATE_ENDED && w->jobs[i].end_cause)
			gpuq_put(a, ended, w->jobs[i].name, gpuq_str(a, w->jobs[i].end_cause));
	return out;
}
