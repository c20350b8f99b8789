#include <stdio.h>
#include <string.h>

#include "gpuqd/carry/carry.h"
#include "gpuqd/carry/obey.h"
#include "gpuqd/sim/world_int.h"
#include "gpuqd/sim/world_happen.h"
#include "gpuqd/state/record/model_apply.h"

/* Events of the model, and their effects on the case's jobs. */

#define EXIT_TERMINATED 143 /* of evicted jobs */

static void note_end(struct world *w, struct job_key key, enum gpuq_job_state state, int64_t at_us)
{
	struct sim_job *j = world_keyed(w, (struct snap_key){ key.id, key.index });

	j->state = SIM_ENDED;
	j->end_us = at_us;
	j->ended = state == GPUQ_JOB_COMPLETED                                  ? SIM_COMPLETED
		   : state == GPUQ_JOB_TIMEOUT || state == GPUQ_JOB_DEADLINE    ? SIM_TIMEOUT
		   : state == GPUQ_JOB_CANCELLED || state == GPUQ_JOB_PREEMPTED ? SIM_CANCELLED
										: SIM_FAILED;
	j->left |= state == GPUQ_JOB_PREEMPTED;
}

/* Ended jobs leave the model: note what is still needed of them. */
static void note(struct world *w, const struct event *ev, bool live)
{
	struct sim_job *j;

	switch (ev->type) {
	case EV_JOB_ENDED:
		note_end(w, ev->job, ev->ended.state, ev->at_us);
		break;
	case EV_JOB_CANCEL_ASKED:
		if (!live)
			note_end(w, ev->job, GPUQ_JOB_CANCELLED, ev->at_us);
		break;
	case EV_JOB_PLACED:
		j = world_keyed(w, (struct snap_key){ ev->job.id, ev->job.index });
		if (!j->begun)
			j->begun_us = ev->at_us;
		j->begun = true;
		j->moving = false;
		break;
	case EV_JOB_REQUEUED:
		j = world_keyed(w, (struct snap_key){ ev->job.id, ev->job.index });
		j->checkpoint_us = 0;
		break;
	default:
		break;
	}
}

int world_event(struct world *w, struct event *ev, struct gpuq_err *err)
{
	const struct job *j = ev->job.id ? model_find_job(w->m, ev->job) : NULL;
	const bool live = j && model_job_is_live(j);
	int rc;

	if (!ev->at_us)
		ev->at_us = w->now_us;
	rc = model_apply(w->m, ev, err);
	if (rc == 0)
		note(w, ev, live);
	return rc;
}

int world_event_fn(void *world, struct event *ev, struct gpuq_err *err)
{
	return world_event(world, ev, err);
}

const struct job *world_model_job(const struct world *w, const struct sim_job *j)
{
	return model_find_job(w->m, (struct job_key){ world_template(w, j)->id, j->element });
}

int world_tell_past(struct world *w, const struct sim_job *j, struct gpuq_err *err)
{
	static const enum gpuq_job_state states[] = { GPUQ_JOB_COMPLETED, GPUQ_JOB_FAILED,
						      GPUQ_JOB_TIMEOUT, GPUQ_JOB_CANCELLED };
	struct event ev = { .type = EV_DEP_ENDED, .job = { world_template(w, j)->id, j->element } };
	int rc = 0;

	if (j->begun) {
		ev.dep.state = GPUQ_JOB_RUNNING;
		ev.dep.start_us = j->begun_us;
		rc = world_event(w, &ev, err);
	}
	if (rc == 0 && j->state == SIM_ENDED) {
		ev.at_us = j->end_us;
		ev.dep.state = states[j->ended];
		rc = world_event(w, &ev, err);
	}
	return rc;
}

/* ---- the cluster obeys ---- */

/* Pods need no proof here that they are gpuqd's. */
void world_token(char out[33])
{
	snprintf(out, 33, "%032x", 0);
}

struct starting {
	struct world *w;
	int64_t at_us;
};

static int apply_at(void *arg, struct event *ev, struct gpuq_err *err)
{
	const struct starting *s = arg;

	ev->at_us = s->at_us;
	return world_event(s->w, ev, err);
}

int world_start_pods(struct world *w, struct sim_job *j, int64_t at_us, struct gpuq_err *err)
{
	struct starting s = { w, at_us };
	const struct obey_to to = { apply_at, &s };
	const struct job *of = world_model_job(w, j);

	return of ? obey_start(&to, of, err) : 0;
}

int world_end_pods(struct world *w, const struct job *j, bool all, int exit_code,
		   struct gpuq_err *err)
{
	const struct obey_to to = { world_event_fn, w };

	return obey_end(&to, j, all, exit_code, err);
}

int world_release(struct world *w, bool *any, struct gpuq_err *err)
{
	bool all;
	int rc = 0;

	*any = false;
	for (uint32_t i = 0; rc == 0 && i < w->n_jobs; i++) {
		const struct job *j =
			w->jobs[i].state == SIM_ENDED ? NULL : world_model_job(w, &w->jobs[i]);

		if (!j || !obey_leaves(j, &all))
			continue;
		*any = true;
		rc = world_end_pods(w, j, all, EXIT_TERMINATED, err);
	}
	return rc == 0 && *any ? world_read(w, err) : rc;
}

/* ---- effects of a plan ---- */

struct carrying {
	struct world *w;
	const struct snapshot *s;
	struct gpuq_err *err;
	int rc;
};

/* Return the devices it had when it was evicted. */
static int64_t milli_leaving(const struct job *j, bool all)
{
	const struct pod *p;
	int64_t milli = 0;

	DL_FOREACH2(j->pods, p, job_next)
		milli += model_pod_takes(p) && (all || p->dropped) && p->n_devices ? p->gpus_milli
										   : 0;
	return milli;
}

static int note_eviction(struct carrying *c, struct sim_job *j, const struct plan_action *a)
{
	const struct job *of = world_model_job(c->w, j);
	struct sim_eviction e = { .cause = gpuq_cause_word(a->cause), .rule = a->rule };

	e.mode = a->kind == PLAN_MOVE     ? "move"
		 : a->kind == PLAN_SHRINK ? "shrink"
		 : of->wish->requeue      ? "requeue"
					  : "cancel";
	if (a->claimant != SNAP_NONE)
		e.by = world_key_name(c->w, c->s->jobs[a->claimant].key);
	e.milli = milli_leaving(of, a->kind != PLAN_SHRINK);
	if (e.rule) {
		e.rule = gpuq_arena_strdup(&c->w->arena, e.rule);
		if (!e.rule)
			return gpuq_no_memory(c->err);
	}
	if (a->kind == PLAN_MOVE)
		j->moving = j->moved = true;
	return world_evicted(c->w, j, e, c->err);
}

static void on_news(void *arg, enum carry_news news, const struct plan_action *a,
		    const struct event *ev, const struct gpuq_err *err)
{
	struct carrying *c = arg;
	struct sim_job *j = world_keyed(c->w, a->key);

	(void)ev;
	if (c->rc < 0)
		return;
	switch (news) {
	case CARRY_PLACED:
	case CARRY_GROWN:
		c->rc = world_start_pods(c->w, j, c->w->now_us, c->err);
		break;
	case CARRY_EVICTED:
		c->rc = note_eviction(c, j, a);
		break;
	case CARRY_STALE:
		c->rc = gpuq_fail(c->err, GPUQ_EINTERNAL, "job %s: its claim cannot be carried out",
				  j->name);
		break;
	case CARRY_REFUSED:
		*c->err = *err;
		c->rc = err->code;
		break;
	default:
		break;
	}
}

static int carry_apply(void *arg, struct event *ev, struct gpuq_err *err)
{
	struct carrying *c = arg;

	return world_event(c->w, ev, err);
}

int world_happen(struct world *w, const struct snapshot *s, const struct plan *p,
		 struct gpuq_err *err)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct carrying c = { w, s, err, 0 };
	const struct carry_to to = {
		.apply = carry_apply, .token = world_token, .news = on_news, .arg = &c
	};

	carry_plan(&to, w->m, s, p, &mem);
	gpuq_arena_done(&mem);
	return c.rc;
}

/* ---- readings ---- */

static int copy_places(struct world *w, struct sim_task *task, const uint16_t *devices, uint32_t n,
		       int64_t milli)
{
	task->devices = gpuq_arena_calloc(&w->read, n, sizeof(*task->devices));
	if (!task->devices)
		return -1;
	for (uint32_t d = 0; d < n; d++)
		task->devices[d] = devices[d];
	task->n_devices = n;
	task->milli = (int32_t)milli;
	return 0;
}

static int read_tasks(struct world *w, struct sim_job *j, const struct job *of)
{
	const struct pod *p;
	uint32_t n = 0;

	DL_FOREACH2(of->pods, p, job_next)
		n += model_pod_takes(p);
	j->tasks = gpuq_arena_calloc(&w->read, n, sizeof(*j->tasks));
	j->n_tasks = 0;
	if (!j->tasks)
		return -1;
	DL_FOREACH2(of->pods, p, job_next) {
		struct sim_task *task = &j->tasks[j->n_tasks];

		if (!model_pod_takes(p))
			continue;
		*task = (struct sim_task){ .node = world_node(w, p->node->name),
					   .group = p->group,
					   .index = p->index,
					   .mig = p->mig,
					   .releasing = p->dropped || of->life->leave_us };
		if (copy_places(w, task, p->devices, p->n_devices, model_pod_cores(p)) < 0)
			return -1;
		j->n_tasks++;
	}
	return 0;
}

static int read_promise(struct world *w, struct sim_job *j, const struct job *of)
{
	const struct promise *p = of->life->promise;

	j->promises = gpuq_arena_calloc(&w->read, p->n_pods, sizeof(*j->promises));
	if (!j->promises)
		return -1;
	for (uint32_t i = 0; i < p->n_pods; i++) {
		const struct promised_pod *pod = &p->pods[i];

		j->promises[i] = (struct sim_task){ .node = world_node(w, pod->node),
						    .group = pod->group,
						    .index = i,
						    .mig = pod->mig };
		if (copy_places(w, &j->promises[i], pod->devices, pod->n_devices,
				!pod->n_devices
					? 0
					: model_share_cores(model_find_node(w->m, pod->node),
							    &of->request->spec.groups[pod->group],
							    pod->gpus_milli / pod->n_devices)) < 0)
			return -1;
	}
	j->n_promises = p->n_pods;
	return 0;
}

static int read_job(struct world *w, struct sim_job *j)
{
	const struct job *of = world_model_job(w, j);
	int rc = 0;

	j->promises = j->hopes;
	j->n_promises = j->n_hopes;
	if (!of || of->array) {
		j->state = SIM_PENDING;
		j->n_tasks = 0;
		return 0;
	}
	j->state = model_job_is_live(of) ? SIM_RUNNING : SIM_PENDING;
	j->attempt = of->attempt;
	j->start_us = of->life->start_us;
	j->given_us =
		j->state == SIM_RUNNING && of->time_limit_us != world_template(w, j)->walltime_us
			? of->time_limit_us
			: 0;
	j->queue = of->queue->name;
	if (of->life->promise)
		rc = read_promise(w, j, of);
	else
		j->moving = false;
	return rc < 0 ? rc : read_tasks(w, j, of);
}

int world_read(struct world *w, struct gpuq_err *err)
{
	gpuq_arena_reset(&w->read);
	for (uint32_t i = 0; i < w->n_jobs; i++) {
		struct sim_job *j = &w->jobs[i];

		if (j->state == SIM_ENDED) {
			j->n_tasks = j->n_promises = j->n_reasons = j->n_bounds = 0;
			j->moving = false;
			j->planned_us = 0;
		} else if (read_job(w, j) < 0) {
			return gpuq_no_memory(err);
		}
	}
	return 0;
}
