#include <string.h>

#include "gpuqd/sched/sched.h"
#include "gpuqd/sim/world_int.h"
#include "gpuqd/sim/world_cuts.h"
#include "gpuqd/sim/world_cycle.h"
#include "gpuqd/sim/world_events.h"
#include "gpuqd/sim/world_happen.h"
#include "gpuqd/sim/world_pools.h"

/* One cycle of the world, as gpuqd has it: model -> snapshot -> plan -> events. */

#define REST_CYCLES 10

/* Reasons that are kept, once for all jobs that are alike. */
struct kept {
	const struct plan_reason *from, *to;
};

static const struct plan_reason *keep(struct world *w, const struct plan_reason *from, uint32_t n,
				      struct kept *last)
{
	struct plan_reason *to;

	if (last->from == from)
		return last->to;
	to = gpuq_arena_calloc(&w->cycle, n, sizeof(*to));
	for (uint32_t i = 0; to && i < n; i++) {
		to[i] = from[i];
		to[i].object = gpuq_arena_strdup(&w->cycle, from[i].object);
		if (!to[i].object)
			return NULL;
	}
	*last = (struct kept){ from, to };
	return to;
}

/* Return the bounds that ended a search for the job; NULL without memory. */
static const struct plan_bound *keep_bounds(struct world *w, const struct snapshot *s,
					    const struct plan *p, uint32_t job, uint32_t *n)
{
	struct plan_bound *to = gpuq_arena_calloc(&w->cycle, p->n_bounds + 1, sizeof(*to));

	*n = 0;
	for (uint32_t i = 0; to && i < p->n_bounds; i++)
		if (plan_bound_concerns(s, p, &p->bounds[i], job))
			to[(*n)++] = p->bounds[i];
	return to;
}

/* Keep the reasons of the cycle, for each member that is still pending. */
static int keep_reasons(struct world *w, const struct snapshot *s, const struct plan *p,
			struct gpuq_err *err)
{
	struct kept last = { NULL, NULL };

	for (uint32_t i = 0; i < w->n_jobs; i++)
		w->jobs[i].n_reasons = w->jobs[i].n_bounds = 0;
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct snap_job *job = &s->jobs[i];
		const struct plan_reason *why;
		const struct plan_bound *bounds;
		const uint32_t n = plan_reasons(s, p, i, &why);
		struct priority_terms terms;
		uint32_t n_bounds;

		if (n == 0)
			continue;
		why = keep(w, why, n, &last);
		bounds = keep_bounds(w, s, p, i, &n_bounds);
		if (!why || !bounds)
			return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
		priority_terms(p->priority, i, &terms);
		for (uint32_t r = 0; r < (job->n_ranges ? job->n_ranges : 1); r++) {
			const struct snap_range one = { job->key.index, job->key.index, 1 };
			const struct snap_range *range = job->n_ranges ? &job->ranges[r] : &one;

			for (int32_t k = range->first; k <= range->last; k += range->step) {
				struct sim_job *j =
					world_keyed(w, (struct snap_key){ job->key.id, k });

				if (j->state != SIM_PENDING)
					continue;
				j->reasons = why;
				j->n_reasons = n;
				j->bounds = bounds;
				j->n_bounds = n_bounds;
				j->terms = terms;
			}
		}
	}
	return 0;
}

/* Add; everything is summed over flavors; GPUQ_UNLIMITED absorbs. */
static int64_t sum(int64_t x, int64_t y)
{
	int64_t out;

	return __builtin_add_overflow(x, y, &out) ? GPUQ_UNLIMITED : out;
}

static void keep_shares(struct world *w, const struct snapshot *s, const struct plan *p)
{
	for (uint32_t i = 0; i < w->n_queues; i++) {
		const uint32_t q = snapshot_find_queue(s, w->queues[i].name);
		struct sim_queue *out = &w->shares[i];

		*out = (struct sim_queue){ .name = out->name };
		for (uint32_t f = 0; f < s->n_flavors; f++) {
			const size_t at = (size_t)q * s->n_res + f;

			out->allocated_milli += p->allocated[at];
			out->fair_milli = sum(out->fair_milli, p->fair_share[at]);
			out->demand_milli = sum(out->demand_milli, p->demand[at]);
			out->quota_milli = sum(out->quota_milli, s->shares[at].quota);
			out->limit_milli = sum(out->limit_milli, s->shares[at].limit);
		}
	}
}

struct snapshot *world_snapshot(struct world *w, struct gpuq_err *err)
{
	struct snapshot_more more;
	struct snapshot *s = NULL;

	world_more(w, &more);
	return snapshot_take_with(w->m, w->now_us, &more, &s, err) == 0 ? s : NULL;
}

/* True if jobs are evicted for it; else it waits for pods that leave anyway. */
static bool is_claim(const struct plan *p, const struct plan_action *a)
{
	for (uint32_t i = 0; i < p->n_actions; i++)
		if (p->actions[i].kind != PLAN_NOMINATE && p->actions[i].claimant == a->job)
			return true;
	return false;
}

bool world_changes(const struct plan *p)
{
	for (uint32_t i = 0; i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];

		if (a->kind != PLAN_RESERVE && (a->kind != PLAN_NOMINATE || is_claim(p, a)))
			return true;
	}
	return false;
}

/* Remember places that a job waits for though none is evicted for it: gpuqd does not keep them. */
static int keep_hope(struct world *w, const struct plan *p, const struct plan_action *a,
		     struct gpuq_err *err)
{
	struct sim_job *j = world_keyed(w, a->key);
	struct sim_task *all = gpuq_arena_calloc(&w->cycle, a->n_pods, sizeof(*all));

	if (!all)
		return gpuq_no_memory(err);
	for (uint32_t i = 0; i < a->n_pods; i++) {
		const struct plan_pod *pod = &p->pods[a->pod_first + i];
		uint32_t *devices = gpuq_arena_calloc(&w->cycle, pod->n_devices, sizeof(*devices));

		if (!devices)
			return gpuq_no_memory(err);
		if (pod->n_devices)
			memcpy(devices, &p->devices[pod->device_first],
			       pod->n_devices * sizeof(*devices));
		all[i] = (struct sim_task){ .node = pod->node,
					    .group = pod->group,
					    .index = pod->index,
					    .devices = devices,
					    .n_devices = pod->n_devices,
					    .milli = pod->milli };
	}
	j->hopes = all;
	j->n_hopes = a->n_pods;
	return 0;
}

static int keep_claim(struct world *w, const struct snapshot *s, const struct plan *p,
		      const struct plan_claim *claim, struct gpuq_err *err)
{
	struct sim_claim *out =
		world_append(w, &w->claims, &w->n_claims, &w->room_claims, sizeof(*out), err);
	const struct sim_job *j = world_keyed(w, claim->key);

	if (!out || !j)
		return out ? 0 : GPUQ_ENOMEM;
	*out = (struct sim_claim){ .job = (uint32_t)(j - w->jobs), .need = claim->need };
	memcpy(out->passed, claim->passed, sizeof(out->passed));
	out->sides = gpuq_arena_calloc(&w->arena, claim->n_sides, sizeof(*out->sides));
	if (!out->sides)
		return gpuq_no_memory(err);
	out->n_sides = claim->n_sides;
	for (uint32_t i = 0; i < claim->n_sides; i++) {
		const struct plan_side *side = &p->claim_sides[claim->side_first + i];
		const char *name = s->queues[side->queue].name;

		out->sides[i] = (struct sim_side){ gpuq_arena_strdup(&w->arena, name), side->before,
						   side->after, side->fair_share, side->quota };
		if (!out->sides[i].queue)
			return gpuq_no_memory(err);
	}
	return 0;
}

/* Keep readings that only the plan has. */
static int keep_plan(struct world *w, const struct snapshot *s, const struct plan *p,
		     struct gpuq_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < w->n_jobs; i++)
		w->jobs[i].planned_us = w->jobs[i].n_hopes = 0;
	for (uint32_t i = 0; rc == 0 && i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];

		if (a->kind == PLAN_RESERVE)
			world_keyed(w, a->key)->planned_us = a->start_us;
		else if (a->kind == PLAN_NOMINATE && !is_claim(p, a))
			rc = keep_hope(w, p, a, err);
	}
	for (uint32_t i = 0; rc == 0 && i < p->n_claims; i++)
		rc = keep_claim(w, s, p, &p->claims[i], err);
	return rc;
}

int world_carry(struct world *w, const struct snapshot *s, const struct plan *p,
		struct gpuq_err *err)
{
	int rc = keep_plan(w, s, p, err);

	if (rc == 0)
		rc = world_happen(w, s, p, err);
	return rc < 0 ? rc : world_read(w, err);
}

/* Make one decision and carry it out. *changed = it changed something. */
static int cycle(struct world *w, bool *changed, struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct snapshot *s;
	struct plan p = { 0 };
	int rc;

	gpuq_arena_reset(&w->cycle); /* with the readings of the last plan */
	for (uint32_t i = 0; i < w->n_jobs; i++)
		w->jobs[i].n_hopes = w->jobs[i].n_reasons = w->jobs[i].n_bounds = 0;
	s = world_snapshot(w, err);
	if (!s)
		return err->code;
	rc = sched_cycle(s, &mem, &p, err);
	*changed = rc == 0 && world_changes(&p);
	if (rc == 0)
		rc = world_carry(w, s, &p, err);
	if (rc == 0)
		rc = world_pools_carry(w, &p, changed, err);
	if (rc == 0)
		rc = world_cuts_carry(w, s, &p, changed, err);
	if (rc == 0)
		rc = keep_reasons(w, s, &p, err);
	if (rc == 0) {
		keep_shares(w, s, &p);
		w->wake_us = p.wake_us;
	}
	snapshot_free(s);
	gpuq_arena_done(&mem);
	return rc;
}

int world_rest(struct world *w, uint32_t max_cycles, struct gpuq_err *err)
{
	const uint32_t max = max_cycles ? max_cycles : REST_CYCLES;
	bool changed = true;
	int rc = 0;

	if (w->n_flavors > WORLD_FLAVORS_MAX)
		return gpuq_fail_field(err, GPUQ_EINVAL, "config.flavors", "more than %d flavors",
				       WORLD_FLAVORS_MAX);
	if (w->n_steps == 0)
		w->first_cycles = max_cycles;
	w->cycles = 1;
	for (uint32_t i = 1; rc == 0 && i <= max && changed; i++) {
		bool left = false;

		rc = cycle(w, &changed, err);
		if (rc == 0)
			rc = world_release(w, &left, err);
		changed |= left;
		if (changed)
			w->cycles = i;
	}
	w->calm = rc == 0 && !changed;
	return rc;
}

/* ---- stability ---- */

static bool same_place(const struct sim_task *x, const struct sim_task *y)
{
	return x->index == y->index && x->node == y->node && x->n_devices == y->n_devices &&
	       x->milli == y->milli &&
	       (x->n_devices == 0 ||
		memcmp(x->devices, y->devices, x->n_devices * sizeof(*x->devices)) == 0);
}

/* A nominated placement that was used is no change. */
static bool same_situation(const struct sim_job *x, const struct sim_job *y)
{
	uint32_t n, m;
	const struct sim_task *a = world_places(x, &n), *b = world_places(y, &m);
	bool same = n == m && (x->state == SIM_ENDED) == (y->state == SIM_ENDED);

	for (uint32_t i = 0; same && i < n; i++) {
		uint32_t k = 0;

		while (k < m && !same_place(&a[i], &b[k]))
			k++;
		same = k < m;
	}
	return same;
}

/* Make another world with the same history. */
static int again(const struct world *w, struct world *out, struct gpuq_err *err)
{
	int rc = world_make(w->c, out, err);

	if (rc == 0)
		rc = world_rest(out, w->first_cycles, err);
	for (uint32_t i = 0; rc == 0 && i < w->n_steps; i++)
		rc = world_step(out, &w->c->steps[i], err);
	return rc;
}

int world_stable(struct world *w, bool *stable, struct gpuq_err *err)
{
	struct world later;
	bool changed, left, same = true;
	int rc;

	/* The last cycle decided nothing: the next one, on the same model, will not either. */
	if (w->calm) {
		*stable = true;
		return 0;
	}
	rc = again(w, &later, err);
	for (int i = 0; rc == 0 && i < 2; i++) {
		rc = cycle(&later, &changed, err);
		if (rc == 0)
			rc = world_release(&later, &left, err);
	}
	for (uint32_t i = 0; rc == 0 && i < w->n_jobs; i++)
		same &= same_situation(&w->jobs[i], &later.jobs[i]);
	world_done(&later);
	if (rc == 0)
		*stable = same;
	return rc;
}
