#include <string.h>

#include "gpuqd/sim/world_int.h"

/* Carrying out a plan. Those who are told to leave hold what they have until
 * world_release(), which is before the next decision. */

struct deed { /* one action and what it is about */
	struct world *w;
	const struct snapshot *s;
	const struct plan *p;
	const struct plan_action *a;
	struct sim_job *j;
	struct gpuq_err *err;
};

static int nonsense(const struct deed *d, const char *what)
{
	return gpuq_fail(d->err, GPUQ_EINVAL, "the plan is not about this world: job %s %s",
			 d->j->name, what);
}

struct sim_job *world_keyed(struct world *w, struct snap_key key)
{
	const struct sim_template *t = &w->templates[key.id - 1];

	return &w->jobs[t->first_job +
			(key.index < 0 ? 0 : (uint32_t)((key.index - t->first) / t->step))];
}

const char *world_key_name(const struct world *w, struct snap_key key)
{
	const struct sim_template *t =
		key.id - 1 < w->n_templates ? &w->templates[key.id - 1] : NULL;
	const int64_t at = t && key.index >= 0 ? (key.index - t->first) / t->step : 0;

	if (!t || at < 0 || at >= t->n_jobs)
		return NULL;
	return key.index < 0 ? t->spec->name : w->jobs[t->first_job + (uint32_t)at].name;
}

bool world_complete(const struct world *w, const struct sim_job *j)
{
	const struct sim_template *t = world_template(w, j);
	uint32_t have[GPUQ_GROUPS_MAX] = { 0 };

	for (uint32_t i = 0; i < j->n_tasks; i++)
		have[j->tasks[i].group] += !j->tasks[i].releasing;
	for (uint32_t g = 0; g < t->n_groups; g++)
		if (have[g] < t->groups[g].min)
			return false;
	return true;
}

/* Tasks of an action, behind those in `kept`; n of them. */
static struct sim_task *take_places(const struct deed *d, const struct sim_task *kept, uint32_t n)
{
	struct sim_task *all =
		gpuq_arena_calloc(&d->w->arena, (size_t)n + d->a->n_pods, sizeof(*all));

	if (n && all)
		memcpy(all, kept, n * sizeof(*all));
	for (uint32_t i = 0; all && i < d->a->n_pods; i++) {
		const struct plan_pod *pod = &d->p->pods[d->a->pod_first + i];
		struct sim_task *t = &all[n + i];

		*t = (struct sim_task){ .node = pod->node,
					.group = pod->group,
					.index = pod->index,
					.n_devices = pod->n_devices,
					.milli = pod->milli };
		t->devices = gpuq_arena_calloc(&d->w->arena, pod->n_devices, sizeof(*t->devices));
		if (!t->devices)
			all = NULL;
		else if (pod->n_devices)
			memcpy(t->devices, &d->p->devices[pod->device_first],
			       pod->n_devices * sizeof(*t->devices));
	}
	if (!all)
		world_no_memory(d->err);
	return all;
}

static void drop_promises(struct sim_job *j)
{
	j->promises = NULL;
	j->n_promises = 0;
	j->owns = false;
}

static int do_place(struct deed *d)
{
	struct sim_job *j = d->j;

	if (j->state != SIM_PENDING)
		return nonsense(d, "starts twice");
	j->tasks = take_places(d, NULL, 0);
	if (!j->tasks)
		return GPUQ_ENOMEM;
	j->n_tasks = d->a->n_pods;
	j->state = SIM_RUNNING;
	j->start_us = d->w->now_us;
	j->idle = (struct idle){ .any = false };
	if (!j->begun)
		j->begun_us = j->start_us;
	j->begun = true;
	j->yield_us = d->a->yield_us;
	j->given_us = d->a->walltime_us;
	j->moving = false;
	drop_promises(j);
	return 0;
}

/* Does anybody leave for it? Else it waits for what is leaving anyway. */
static bool is_claim(const struct deed *d)
{
	for (uint32_t i = 0; i < d->p->n_actions; i++)
		if (d->p->actions[i].kind != PLAN_NOMINATE &&
		    d->p->actions[i].claimant == d->a->job)
			return true;
	return false;
}

static int do_nominate(struct deed *d)
{
	if (d->j->state != SIM_PENDING)
		return nonsense(d, "is nominated and runs");
	d->j->promises = take_places(d, NULL, 0);
	if (!d->j->promises)
		return GPUQ_ENOMEM;
	d->j->n_promises = d->a->n_pods;
	d->j->owns |= is_claim(d);
	return 0;
}

static int do_release(struct deed *d)
{
	drop_promises(d->j);
	return 0;
}

static int do_grow(struct deed *d)
{
	struct sim_job *j = d->j;
	struct sim_task *all;

	if (j->state != SIM_RUNNING)
		return nonsense(d, "grows and does not run");
	for (uint32_t i = 0; i < d->a->n_pods; i++)
		for (uint32_t t = 0; t < j->n_tasks; t++)
			if (j->tasks[t].index == d->p->pods[d->a->pod_first + i].index)
				return nonsense(d, "grows by a pod that it has");
	all = take_places(d, j->tasks, j->n_tasks);
	if (!all)
		return GPUQ_ENOMEM;
	j->tasks = all;
	j->n_tasks += d->a->n_pods;
	if (world_complete(d->w, j))
		j->short_us = 0;
	return 0;
}

/* Who it is for: a member of an array goes by the array's name where none is meant. */
static const struct sim_job *claimant(const struct deed *d, const char **name)
{
	struct snap_key key;

	*name = NULL;
	if (d->a->claimant == SNAP_NONE)
		return NULL;
	key = d->s->jobs[d->a->claimant].key;
	*name = world_key_name(d->w, key);
	return world_keyed(d->w, key);
}

static int note(struct deed *d, const char *mode)
{
	struct sim_eviction e = { .mode = mode,
				  .cause = gpuq_cause_word(d->a->cause),
				  .rule = d->a->rule };
	const struct sim_job *by = claimant(d, &e.by);

	for (uint32_t t = 0; t < d->j->n_tasks; t++)
		if (d->j->tasks[t].releasing)
			e.milli += (int64_t)d->j->tasks[t].n_devices * d->j->tasks[t].milli;
	if (by && strcmp(mode, "move") != 0 && strcmp(by->queue, d->j->queue) != 0) {
		d->j->evicted_us = world_instant(d->w->now_us);
		d->j->evicted_for = by->queue;
	}
	if (e.rule) {
		e.rule = gpuq_arena_strdup(&d->w->arena, e.rule);
		if (!e.rule)
			return world_no_memory(d->err);
	}
	return world_evicted(d->w, d->j, e, d->err);
}

static int leave(struct deed *d, const char *mode)
{
	struct sim_job *j = d->j;

	if (j->state != SIM_RUNNING)
		return nonsense(d, "leaves and does not run");
	for (uint32_t t = 0; t < j->n_tasks; t++)
		j->tasks[t].releasing = true;
	j->requeue = strcmp(mode, "cancel") != 0;
	j->left = !j->requeue;
	return note(d, mode);
}

static int do_evict(struct deed *d)
{
	const struct sc_job *spec = world_template(d->w, d->j)->spec;

	return leave(d, spec->preempt_mode == SC_PREEMPT_CANCEL ? "cancel" : "requeue");
}

static int do_move(struct deed *d)
{
	int rc = leave(d, "move");

	if (rc < 0)
		return rc;
	d->j->promises = take_places(d, NULL, 0);
	if (!d->j->promises)
		return GPUQ_ENOMEM;
	d->j->n_promises = d->a->n_pods;
	d->j->owns = d->j->moving = d->j->moved = true;
	return 0;
}

static int do_shrink(struct deed *d)
{
	struct sim_job *j = d->j;

	if (j->state != SIM_RUNNING)
		return nonsense(d, "shrinks and does not run");
	for (uint32_t i = 0; i < d->a->n_pods; i++) {
		const uint32_t index = d->p->pods[d->a->pod_first + i].index;
		uint32_t t = 0;

		while (t < j->n_tasks && j->tasks[t].index != index)
			t++;
		if (t == j->n_tasks)
			return nonsense(d, "shrinks by a pod that it has not");
		j->tasks[t].releasing = true;
	}
	j->shrunk_us = world_instant(d->w->now_us);
	return note(d, "shrink");
}

static int do_reserve(struct deed *d)
{
	d->j->planned_us = d->a->start_us;
	return 0;
}

static int (*const deeds[])(struct deed *) = {
	[PLAN_PLACE] = do_place, [PLAN_NOMINATE] = do_nominate, [PLAN_RELEASE] = do_release,
	[PLAN_EVICT] = do_evict, [PLAN_SHRINK] = do_shrink,     [PLAN_GROW] = do_grow,
	[PLAN_MOVE] = do_move,   [PLAN_RESERVE] = do_reserve,
};

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
		return world_no_memory(err);
	out->n_sides = claim->n_sides;
	for (uint32_t i = 0; i < claim->n_sides; i++) {
		const struct plan_side *side = &p->claim_sides[claim->side_first + i];
		const char *name = s->queues[side->queue].name;

		out->sides[i] = (struct sim_side){ gpuq_arena_strdup(&w->arena, name), side->before,
						   side->after, side->fair_share, side->quota };
		if (!out->sides[i].queue)
			return world_no_memory(err);
	}
	return 0;
}

int world_apply(struct world *w, const struct snapshot *s, const struct plan *p,
		struct gpuq_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < w->n_jobs; i++) {
		w->jobs[i].planned_us = 0;
		if (!w->jobs[i].owns)
			drop_promises(&w->jobs[i]);
	}
	for (uint32_t i = 0; rc == 0 && i < p->n_actions; i++) {
		struct deed d = { w, s, p, &p->actions[i], NULL, err };

		d.j = world_keyed(w, d.a->key);
		rc = deeds[d.a->kind](&d);
	}
	for (uint32_t i = 0; rc == 0 && i < p->n_claims; i++)
		rc = keep_claim(w, s, p, &p->claims[i], err);
	return rc;
}

bool world_changes(const struct plan *p)
{
	for (uint32_t i = 0; i < p->n_actions; i++) {
		const struct deed d = { .p = p, .a = &p->actions[i] };

		if (d.a->kind != PLAN_RESERVE && (d.a->kind != PLAN_NOMINATE || is_claim(&d)))
			return true;
	}
	return false;
}

static void end_leaving(struct world *w, struct sim_job *j)
{
	if (j->requeue) {
		j->state = SIM_PENDING;
		j->attempt++;
		j->start_us = j->checkpoint_us = j->short_us = 0;
		j->requeue = false;
		return;
	}
	j->state = SIM_ENDED;
	j->end_us = w->now_us;
	j->ended = SIM_CANCELLED;
}

bool world_release(struct world *w)
{
	bool changed = false;

	for (uint32_t i = 0; i < w->n_jobs; i++) {
		struct sim_job *j = &w->jobs[i];
		uint32_t kept = 0;

		for (uint32_t t = 0; j->state == SIM_RUNNING && t < j->n_tasks; t++)
			if (!j->tasks[t].releasing)
				j->tasks[kept++] = j->tasks[t];
		if (j->state != SIM_RUNNING || kept == j->n_tasks)
			continue;
		j->n_tasks = kept;
		changed = true;
		if (kept == 0)
			end_leaving(w, j);
	}
	return changed;
}
