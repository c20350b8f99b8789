#include <string.h>

#include "gpuqd/sched/sched.h"
#include "gpuqd/sim/world_int.h"

/* One cycle of the world: world -> snapshot -> plan -> world. */

#define REST_CYCLES 10

/* Reasons that live on, for jobs that are alike but once. */
struct kept {
	const struct plan_reason *from, *to;
};

static const struct plan_reason *keep(struct world *w, const struct plan_reason *from, uint32_t n,
				      struct kept *last)
{
	struct plan_reason *to;

	if (last->from == from)
		return last->to;
	to = gpuq_arena_calloc(&w->arena, n, sizeof(*to));
	for (uint32_t i = 0; to && i < n; i++) {
		to[i] = from[i];
		to[i].object = gpuq_arena_strdup(&w->arena, from[i].object);
		if (!to[i].object)
			return NULL;
	}
	*last = (struct kept){ from, to };
	return to;
}

/* Reasons of the cycle, for each member that still waits. */
static int keep_reasons(struct world *w, const struct snapshot *s, const struct plan *p,
			struct gpuq_err *err)
{
	struct kept last = { NULL, NULL };

	for (uint32_t i = 0; i < w->n_jobs; i++)
		w->jobs[i].n_reasons = 0;
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct snap_job *job = &s->jobs[i];
		const struct plan_reason *why;
		const uint32_t n = plan_reasons(s, p, i, &why);
		struct priority_terms terms;

		if (n == 0)
			continue;
		why = keep(w, why, n, &last);
		if (!why)
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
				j->terms = terms;
			}
		}
	}
	return 0;
}

/* Everything is summed over flavors; GPUQ_UNLIMITED absorbs. */
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

/* One decision, carried out. *changed = it was one for a change. */
static int cycle(struct world *w, bool *changed, struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct snapshot *s = world_freeze(w, err);
	struct plan p = { 0 };
	int rc;

	if (!s)
		return err->code;
	rc = sched_cycle(s, &mem, &p, err);
	*changed = rc == 0 && world_changes(&p);
	if (rc == 0)
		rc = world_apply(w, s, &p, err);
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
	w->cycles = 1;
	for (uint32_t i = 1; rc == 0 && i <= max && changed; i++) {
		rc = cycle(w, &changed, err);
		changed |= rc == 0 && world_release(w);
		if (changed)
			w->cycles = i;
	}
	return rc;
}

/* ---- would it stay like this? ---- */

static bool same_place(const struct sim_task *x, const struct sim_task *y)
{
	return x->index == y->index && x->node == y->node && x->n_devices == y->n_devices &&
	       x->milli == y->milli &&
	       (x->n_devices == 0 ||
		memcmp(x->devices, y->devices, x->n_devices * sizeof(*x->devices)) == 0);
}

/* A promise that was kept is no change. */
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

static void *dup(struct world *w, const void *items, size_t n, size_t size, bool *failed)
{
	void *p = gpuq_arena_calloc(&w->arena, n, size);

	*failed |= !p;
	if (p && n)
		memcpy(p, items, n * size);
	return p;
}

/* Another world like w, in an arena of its own; what no event changes is shared. */
static int copy(const struct world *w, struct world *out, struct gpuq_err *err)
{
	bool failed = false;

	*out = *w;
	out->arena = (struct gpuq_arena)GPUQ_ARENA_INIT(0);
	out->jobs = dup(out, w->jobs, w->n_jobs, sizeof(*w->jobs), &failed);
	out->shares = dup(out, w->shares, w->n_queues, sizeof(*w->shares), &failed);
	out->evictions = dup(out, w->evictions, w->n_evictions, sizeof(*w->evictions), &failed);
	out->claims = dup(out, w->claims, w->n_claims, sizeof(*w->claims), &failed);
	out->room_claims = w->n_claims;
	out->room_jobs = w->n_jobs;
	out->room_evictions = w->n_evictions;
	for (uint32_t i = 0; !failed && i < w->n_jobs; i++)
		out->jobs[i].tasks = dup(out, w->jobs[i].tasks, w->jobs[i].n_tasks,
					 sizeof(*w->jobs[i].tasks), &failed);
	return failed ? world_no_memory(err) : 0;
}

int world_stable(struct world *w, bool *stable, struct gpuq_err *err)
{
	struct world later;
	bool changed, same = true;
	int rc = copy(w, &later, err);

	for (int i = 0; rc == 0 && i < 2; i++) {
		rc = cycle(&later, &changed, err);
		if (rc == 0)
			world_release(&later);
	}
	for (uint32_t i = 0; rc == 0 && i < w->n_jobs; i++)
		same &= same_situation(&w->jobs[i], &later.jobs[i]);
	world_done(&later);
	if (rc == 0)
		*stable = same;
	return rc;
}
