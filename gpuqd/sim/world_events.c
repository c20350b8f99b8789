#include <string.h>

#include "gpuqd/sim/world_int.h"

/* What happens to the world from outside, and what time brings. */

/* ---- dependencies ---- */

/* What the jobs meant by a dependency (one, or the members of an array) have done. */
struct progress {
	uint32_t n, ended, completed;
	int64_t begun_us; /* the first of them; GPUQ_UNLIMITED = none has */
	int64_t end_us; /* the last of those that ended */
};

static struct progress progress_of(const struct world *w, const struct sim_job *j,
				   const struct sc_depend *d)
{
	struct progress p = { .begun_us = GPUQ_UNLIMITED, .end_us = INT64_MIN };

	for (uint32_t i = 0; d->job && i < w->n_jobs; i++) {
		const struct sim_job *on = &w->jobs[i];

		if (strcmp(on->name, d->job) != 0 &&
		    strcmp(world_template(w, on)->spec->name, d->job) != 0)
			continue;
		if (d->type == GPUQ_DEP_AFTERCORR && on->element >= 0 && j->element >= 0 &&
		    on->element != j->element)
			continue;
		p.n++;
		if (on->begun && on->begun_us < p.begun_us)
			p.begun_us = on->begun_us;
		if (on->state != SIM_ENDED)
			continue;
		p.ended++;
		p.completed += on->ended == SIM_COMPLETED;
		p.end_us = on->end_us > p.end_us ? on->end_us : p.end_us;
	}
	return p;
}

/* When a dependency comes true: INT64_MIN = it never will, GPUQ_UNLIMITED = it waits for
 * an event. */
static int64_t comes_true(const struct world *w, const struct sim_job *j, const struct sc_depend *d)
{
	const struct progress p = progress_of(w, j, d);
	const bool ok = p.completed == p.n;
	int64_t at = p.ended == p.n ? p.end_us : GPUQ_UNLIMITED;

	if (p.n == 0)
		return INT64_MIN;
	/* What ended without having begun has nothing left to wait for. */
	if (d->type == GPUQ_DEP_AFTER && p.begun_us < at)
		at = p.begun_us;
	if (at == GPUQ_UNLIMITED)
		return at;
	if ((ok && d->type == GPUQ_DEP_AFTERNOTOK) ||
	    (!ok && (d->type == GPUQ_DEP_AFTEROK || d->type == GPUQ_DEP_AFTERCORR)))
		return INT64_MIN;
	return at + world_us(w, d->delay);
}

/* Jobs of the same name and user that were submitted before it have all ended. */
static int depends_singleton(const struct world *w, const struct sim_job *j)
{
	const struct sc_job *spec = world_template(w, j)->spec;

	for (uint32_t i = 0; &w->jobs[i] < j; i++) {
		const struct sc_job *other = world_template(w, &w->jobs[i])->spec;
		const char *name = other->jobname ? other->jobname : other->name;

		if (w->jobs[i].state != SIM_ENDED && strcmp(other->user, spec->user) == 0 &&
		    strcmp(name, spec->jobname ? spec->jobname : spec->name) == 0 && other != spec)
			return 1;
	}
	return 0;
}

/* 0 it holds, 1 not yet, 2 never. */
static int depends(const struct world *w, const struct sim_job *j, const struct sc_depend *d)
{
	int64_t at;

	if (d->type == GPUQ_DEP_SINGLETON)
		return depends_singleton(w, j);
	at = comes_true(w, j, d);
	return at == INT64_MIN ? 2 : at > w->now_us;
}

int world_depends_all(struct world *w, const struct sim_job *j, const char **on)
{
	const struct sc_job *spec = world_template(w, j)->spec;
	const struct sc_depend *all = spec->depends.items, *any = spec->depends_any.items;
	int worst = 0, best = spec->depends_any.n ? 2 : 0;

	for (size_t i = 0; i < spec->depends.n; i++) {
		const int one = depends(w, j, &all[i]);

		if (one > worst)
			*on = all[i].job ? all[i].job : "";
		worst = one > worst ? one : worst;
	}
	for (size_t i = 0; i < spec->depends_any.n; i++) {
		const int one = depends(w, j, &any[i]);

		if (one < best)
			best = one;
	}
	if (best > worst)
		*on = any[0].job ? any[0].job : "";
	return best > worst ? best : worst;
}

int64_t world_eligible_us(const struct world *w, const struct sim_job *j)
{
	const struct sim_template *t = world_template(w, j);
	const struct sc_depend *all = t->spec->depends.items, *any = t->spec->depends_any.items;
	int64_t since = t->submit_us, first = GPUQ_UNLIMITED;

	since = t->begin_us > since ? t->begin_us : since;
	since = j->released_us > since ? j->released_us : since;
	for (size_t i = 0; i < t->spec->depends.n; i++) {
		const int64_t at =
			all[i].type == GPUQ_DEP_SINGLETON ? INT64_MIN : comes_true(w, j, &all[i]);

		since = at > since && at <= w->now_us ? at : since;
	}
	for (size_t i = 0; i < t->spec->depends_any.n; i++) {
		const int64_t at = any[i].type == GPUQ_DEP_SINGLETON ? t->submit_us
								     : comes_true(w, j, &any[i]);

		first = at != INT64_MIN && at < first ? at : first;
	}
	return first > since && first <= w->now_us ? first : since;
}

/* ---- ends ---- */

static void end_job(struct world *w, struct sim_job *j, enum sim_end how, int64_t at_us)
{
	if (j->state == SIM_ENDED)
		return;
	j->n_tasks = j->state == SIM_RUNNING ? j->n_tasks : 0;
	j->state = SIM_ENDED;
	j->ended = how;
	j->end_us = at_us;
	j->n_reasons = 0;
	j->planned_us = 0;
	j->n_promises = 0;
	j->owns = j->moving = false;
}

static void time_out(struct world *w, struct sim_job *j, enum gpuq_cause cause)
{
	if (j->state == SIM_ENDED)
		return;
	end_job(w, j, SIM_TIMEOUT, w->now_us);
	j->end_cause = gpuq_cause_word(cause);
}

/* What stood on a lost node is gone. A job that has its minimum left goes on with it; one
 * that has not is kept for as long as the case says, or waits again under its old submit
 * time. */
static int lose_node(struct world *w, uint32_t node, struct gpuq_err *err)
{
	const bool repairs = w->c->config.gang_repair_us > 0;
	const struct sim_eviction e = { .mode = "requeue", .cause = "infra" };
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < w->n_jobs; i++) {
		struct sim_job *j = &w->jobs[i];
		uint32_t kept = 0;

		for (uint32_t t = 0; j->state == SIM_RUNNING && t < j->n_tasks; t++)
			if (j->tasks[t].node != node)
				j->tasks[kept++] = j->tasks[t];
		if (j->state != SIM_RUNNING || kept == j->n_tasks)
			continue;
		j->n_tasks = kept;
		if (kept > 0 && world_complete(w, j))
			continue;
		if (kept > 0 && repairs) {
			j->short_us = j->short_us ? j->short_us : world_instant(w->now_us);
			continue;
		}
		j->state = SIM_PENDING;
		j->n_tasks = 0;
		j->attempt++;
		j->start_us = j->checkpoint_us = j->short_us = 0;
		rc = world_evicted(w, j, e, err);
	}
	return rc;
}

/* ---- time ---- */

static int64_t earlier(int64_t x, int64_t y)
{
	return x < y ? x : y;
}

static int64_t end_by_walltime(const struct world *w, const struct sim_job *j)
{
	int64_t at;

	if (j->state != SIM_RUNNING ||
	    __builtin_add_overflow(j->start_us, world_walltime_us(w, j), &at))
		return GPUQ_UNLIMITED;
	return at;
}

/* An instant that is still to come, or none. */
static int64_t later(const struct world *w, int64_t at_us)
{
	return at_us > w->now_us ? at_us : GPUQ_UNLIMITED;
}

/* The next instant after now at which something happens by itself. */
static int64_t next_instant(struct world *w)
{
	int64_t next = later(w, w->wake_us);

	for (uint32_t i = 0; i < w->n_jobs; i++) {
		const struct sim_job *j = &w->jobs[i];
		const struct sim_template *t = world_template(w, j);
		const struct gpuq_objects *lists[] = { &t->spec->depends, &t->spec->depends_any };

		next = earlier(next, later(w, end_by_walltime(w, j)));
		next = earlier(next, later(w, world_idle_due_us(w, j)));
		if (j->state != SIM_PENDING)
			continue;
		if (t->deadline_us)
			next = earlier(next, later(w, t->deadline_us));
		/* A delay passes by itself. */
		for (int l = 0; l < 2; l++) {
			const struct sc_depend *d = lists[l]->items;

			for (size_t k = 0; k < lists[l]->n; k++)
				if (d[k].type != GPUQ_DEP_SINGLETON && d[k].delay > 0)
					next = earlier(next, later(w, comes_true(w, j, &d[k])));
		}
	}
	return next;
}

/* What falls due at w->now_us. */
static void fall_due(struct world *w)
{
	for (uint32_t i = 0; i < w->n_jobs; i++) {
		struct sim_job *j = &w->jobs[i];
		const int64_t deadline_us = world_template(w, j)->deadline_us;

		if (end_by_walltime(w, j) <= w->now_us)
			time_out(w, j, GPUQ_CAUSE_LIMIT);
		else if (world_idle_is_due(w, j))
			time_out(w, j, GPUQ_CAUSE_IDLE);
		else if (j->state == SIM_PENDING && deadline_us && deadline_us <= w->now_us)
			end_job(w, j, SIM_TIMEOUT, w->now_us);
	}
}

static int advance(struct world *w, int64_t to_us, struct gpuq_err *err)
{
	int rc = 0;

	if (to_us < w->now_us)
		return gpuq_fail_field(err, GPUQ_EINVAL, "to", "time does not run backwards");
	while (rc == 0 && w->now_us < to_us) {
		const int64_t next = next_instant(w);

		if (next > to_us) {
			rc = world_pass(w, to_us, err);
			break;
		}
		rc = world_pass(w, next, err);
		fall_due(w);
		if (rc == 0)
			rc = world_rest(w, 0, err);
	}
	fall_due(w);
	return rc;
}

/* ---- steps ---- */

/* The jobs a step is about: one, or all members of an array by its plain name. */
static bool meant(const struct world *w, const struct sim_job *j, const char *name)
{
	return strcmp(j->name, name) == 0 || strcmp(world_template(w, j)->spec->name, name) == 0;
}

static int change_job(struct world *w, struct sim_job *j, const struct sc_step *s)
{
	switch (s->event) {
	case SC_FINISH:
		if (j->state != SIM_RUNNING)
			return 0;
		end_job(w, j, s->exit_code ? SIM_FAILED : SIM_COMPLETED, w->now_us);
		break;
	case SC_CANCEL:
		end_job(w, j, SIM_CANCELLED, w->now_us);
		break;
	case SC_HOLD:
	case SC_RELEASE:
		j->hold = s->event == SC_HOLD;
		if (!j->hold)
			j->released_us = world_instant(w->now_us);
		break;
	case SC_SET_PRIORITY:
		j->priority = s->priority;
		break;
	case SC_USE:
		if (j->state == SIM_ENDED)
			return 0;
		j->use = s->use;
		break;
	default:
		j->queue = s->queue;
	}
	return 1;
}

static int change_jobs(struct world *w, const struct sc_step *s, struct gpuq_err *err)
{
	int n = 0;

	if (!s->job)
		return gpuq_fail_field(err, GPUQ_EINVAL, "job", "a step names no job");
	if (s->event == SC_SET_QUEUE) {
		uint32_t q = 0;

		while (s->queue && q < w->n_queues && strcmp(w->queues[q].name, s->queue) != 0)
			q++;
		if (!s->queue || q == w->n_queues)
			return gpuq_fail_field(err, GPUQ_EINVAL, "queue", "unknown queue %s",
					       s->queue ? s->queue : "(none)");
	}
	for (uint32_t i = 0; i < w->n_jobs; i++)
		if (meant(w, &w->jobs[i], s->job))
			n += change_job(w, &w->jobs[i], s);
	if (n == 0)
		return gpuq_fail_field(err, GPUQ_EINVAL, "job", "%s is not there or not %s", s->job,
				       s->event == SC_FINISH ? "running" : "known");
	return 0;
}

static int change_node(struct world *w, const struct sc_step *s, struct gpuq_err *err)
{
	const uint32_t n = s->node ? world_node(w, s->node) : SNAP_NONE;

	if (n == SNAP_NONE)
		return gpuq_fail_field(err, GPUQ_EINVAL, "node", "unknown node %s",
				       s->node ? s->node : "(none)");
	w->nodes[n].state = s->event == SC_NODE_DOWN ? SNAP_DOWN : SNAP_READY;
	return s->event == SC_NODE_DOWN ? lose_node(w, n, err) : 0;
}

int world_step(struct world *w, const struct sc_step *s, struct gpuq_err *err)
{
	const int64_t at = s->event == SC_ADVANCE && s->to != SC_ABSENT ? s->to : s->at;
	int rc = 0;

	if (at != SC_ABSENT)
		rc = advance(w, world_us(w, at), err);
	if (rc < 0)
		return rc;
	switch (s->event) {
	case SC_ADVANCE:
		break;
	case SC_SUBMIT:
		rc = world_submit(w, s->submit, err);
		break;
	case SC_NODE_DOWN:
	case SC_NODE_UP:
		rc = change_node(w, s, err);
		break;
	default:
		rc = change_jobs(w, s, err);
	}
	return rc < 0 ? rc : world_rest(w, 0, err);
}
