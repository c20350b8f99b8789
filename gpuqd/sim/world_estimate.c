#include "gpuqd/sched/estimate/estimate.h"
#include "gpuqd/sim/world_int.h"
#include "gpuqd/sim/world_cycle.h"
#include "gpuqd/sim/world_estimate.h"

/* Starts of pending jobs: the present world, simulated without further events. */

static int keep(struct world *w, struct snapshot *s, const struct estimate *e, struct gpuq_err *err)
{
	const struct snap_job *job = &s->jobs[e->job];
	const struct snap_key key = { job->key.id,
				      job->n_ranges ? job->ranges[0].first : job->key.index };
	struct sim_estimate *out = gpuq_arena_calloc(&w->arena, 1, sizeof(*out));

	if (!out)
		return gpuq_no_memory(err);
	out->start_us = e->start_us;
	out->n = e->n_changes;
	out->at_us = gpuq_arena_calloc(&w->arena, out->n, sizeof(*out->at_us));
	out->why = gpuq_arena_calloc(&w->arena, out->n, sizeof(*out->why));
	if (!out->at_us || !out->why)
		return gpuq_no_memory(err);
	for (uint32_t i = 0; i < out->n; i++) {
		out->at_us[i] = e->changes[i].at_us;
		out->why[i] = e->changes[i].why;
		out->why[i].object = gpuq_arena_strdup(&w->arena, e->changes[i].why.object);
		if (!out->why[i].object)
			return gpuq_no_memory(err);
	}
	world_keyed(w, key)->estimate = out;
	return 0;
}

int world_estimate(struct world *w, struct gpuq_err *err)
{
	const struct estimate_config config = { 0 };
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct snapshot *s = world_snapshot(w, err);
	struct estimate *all;
	uint32_t *jobs, n = 0;
	int rc = 0;

	if (!s)
		return err->code;
	jobs = gpuq_arena_calloc(&mem, s->n_jobs + 1, sizeof(*jobs));
	all = gpuq_arena_calloc(&mem, s->n_jobs + 1, sizeof(*all));
	if (!jobs || !all)
		rc = gpuq_no_memory(err);
	for (uint32_t i = 0; i < w->n_jobs; i++)
		w->jobs[i].estimate = NULL;
	for (uint32_t i = 0; rc == 0 && i < s->n_jobs; i++)
		if (s->jobs[i].state == SNAP_PENDING)
			jobs[n++] = i;
	if (rc == 0)
		rc = estimate_starts(s, &config, jobs, n, &mem, all, NULL, err);
	for (uint32_t i = 0; rc == 0 && i < n; i++)
		rc = keep(w, s, &all[i], err);
	snapshot_free(s);
	gpuq_arena_done(&mem);
	return rc;
}
