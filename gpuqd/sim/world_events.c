#include <string.h>

#include "gpuqd/carry/obey.h"
#include "gpuqd/sim/world_int.h"
#include "gpuqd/sim/world_cuts.h"
#include "gpuqd/sim/world_cycle.h"
#include "gpuqd/sim/world_events.h"
#include "gpuqd/sim/world_jobs.h"
#include "gpuqd/sim/world_pools.h"

/* Events from outside, and those that fall due. */

#define EXIT_TERMINATED 143 /* of evicted jobs */

/* End what runs on a lost node. */
static int lose_node(struct world *w, const struct sim_node *node, struct gpuq_err *err)
{
	const struct sim_eviction e = { .mode = "requeue", .cause = "infra" };
	const struct obey_to to = { world_event_fn, w };
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < w->n_jobs; i++) {
		struct sim_job *j = &w->jobs[i];
		const struct job *of = j->state == SIM_RUNNING ? world_model_job(w, j) : NULL;
		bool over = false;

		if (of)
			rc = obey_lose(&to, of, node->name, &over, err);
		if (rc == 0 && over && j->state != SIM_ENDED)
			rc = world_evicted(w, j, e, err);
	}
	return rc;
}

/* ---- time ---- */

static int64_t earlier(int64_t x, int64_t y)
{
	return x < y ? x : y;
}

static int64_t end_by_walltime(const struct job *j)
{
	int64_t at;

	if (!model_job_is_live(j) || !j->life->start_us ||
	    __builtin_add_overflow(j->life->start_us, j->time_limit_us, &at))
		return GPUQ_UNLIMITED;
	return at;
}

/* Return the shortest limit of its own and of its queues; 0 = none. */
static int64_t idle_limit(const struct world *w, const struct sim_job *sim, const struct job *j,
			  char rule[64])
{
	const int64_t own = world_runtime(w, world_template(w, sim)->spec->idle_limit, 0);
	const int64_t limit_us = load_idle_limit_us(w->m, j, rule);

	return own && (!limit_us || own < limit_us) ? own : limit_us;
}

/* Return when it will have been idle too long if this continues; GPUQ_UNLIMITED = never. */
static int64_t idle_due(const struct world *w, const struct sim_job *sim, const struct job *j)
{
	const struct idle_clock c = { j->life->start_us, w->m->policy.idle_window_us };
	char rule[64];
	const int64_t limit_us = idle_limit(w, sim, j, rule);
	struct idle idle = { .any = false };

	if (!model_job_is_live(j) || limit_us == 0 || sim->use != 0 || model_job_gpus_milli(j) == 0)
		return GPUQ_UNLIMITED;
	if (j->life->load)
		idle = j->life->load->idle;
	idle_measured(&idle, &c, w->now_us, IDLE_NOTHING);
	return idle_due_us(&idle, &c, limit_us);
}

/* Return an instant that is still to come, or none. */
static int64_t later(const struct world *w, int64_t at_us)
{
	return at_us > w->now_us ? at_us : GPUQ_UNLIMITED;
}

/* Return the next instant after now at which something falls due. */
static int64_t next_instant(struct world *w)
{
	int64_t next =
		earlier(later(w, w->wake_us), earlier(world_pools_next(w), world_cuts_next(w)));

	for (uint32_t i = 0; i < w->n_jobs; i++) {
		const struct sim_job *sim = &w->jobs[i];
		const struct job *j = sim->state == SIM_ENDED ? NULL : world_model_job(w, sim);

		if (!j && sim->state == SIM_PENDING) /* in its array */
			j = model_find_job(w->m,
					   (struct job_key){ world_template(w, sim)->id, -1 });
		if (!j)
			continue;
		next = earlier(next, later(w, end_by_walltime(j)));
		next = earlier(next, later(w, idle_due(w, sim, j)));
		if (model_job_is_live(j))
			continue;
		if (j->wish->deadline_us)
			next = earlier(next, later(w, clock_job_deadline_us(w->m, j)));
		for (uint32_t d = 0; d < deps_count(j); d++)
			if (j->deps->items[d].state == DEP_DONE)
				next = earlier(next, later(w, j->deps->items[d].at_us));
	}
	return next;
}

static int time_out(struct world *w, struct sim_job *sim, const struct job *j,
		    enum gpuq_cause cause, const char *rule, struct gpuq_err *err)
{
	struct event ev = { .type = EV_JOB_EVICT_ASKED, .job = j->key };
	int rc;

	ev.evict.cause = cause;
	ev.evict.by = ev.evict.by_queue = "";
	ev.evict.rule = rule;
	ev.evict.why = "";
	rc = world_event(w, &ev, err);
	if (rc == 0)
		rc = world_end_pods(w, j, true, EXIT_TERMINATED, err);
	sim->end_cause = gpuq_cause_word(cause);
	return rc;
}

/* End a pending job whose deadline has come. */
static int pass_deadline(struct world *w, const struct sim_job *sim, struct gpuq_err *err)
{
	struct event ev = { .type = EV_JOB_ENDED,
			    .job = { world_template(w, sim)->id, sim->element } };

	ev.ended.state = GPUQ_JOB_DEADLINE;
	ev.ended.exit_code = -1;
	ev.ended.message = "";
	return world_event(w, &ev, err);
}

/* Apply what falls due at w->now_us. */
static int fall_due(struct world *w, struct gpuq_err *err)
{
	int rc = world_pools_fall_due(w, err);

	if (rc == 0)
		rc = world_cuts_fall_due(w, err);
	for (uint32_t i = 0; rc == 0 && i < w->n_jobs; i++) {
		struct sim_job *sim = &w->jobs[i];
		const int64_t deadline_us = world_template(w, sim)->deadline_us;
		const struct job *j = sim->state == SIM_ENDED ? NULL : world_model_job(w, sim);
		char rule[64];

		if (j && model_job_is_live(j)) {
			const int64_t limit_us = idle_limit(w, sim, j, rule);

			if (end_by_walltime(j) <= w->now_us)
				rc = time_out(w, sim, j, GPUQ_CAUSE_LIMIT, "", err);
			else if (limit_us && load_idle_for_us(w->m, j, w->now_us) >= limit_us)
				rc = time_out(w, sim, j, GPUQ_CAUSE_IDLE, rule, err);
		} else if (sim->state == SIM_PENDING && deadline_us && deadline_us <= w->now_us) {
			rc = pass_deadline(w, sim, err);
		}
	}
	return rc < 0 ? rc : world_read(w, err);
}

/* The use of devices until then is measured once in every window. */
static int measure(struct world *w, int64_t to_us, struct gpuq_err *err)
{
	const int64_t window_us = w->m->policy.idle_window_us;
	struct job_use *uses = gpuq_arena_calloc(&w->read, w->n_jobs, sizeof(*uses));
	struct event ev = { .type = EV_USE_MEASURED };
	size_t n = 0;
	int rc = 0;

	if (!uses)
		return gpuq_no_memory(err);
	for (uint32_t i = 0; i < w->n_jobs; i++) {
		const struct sim_job *j = &w->jobs[i];

		if (j->state == SIM_RUNNING && j->use >= 0)
			uses[n++] = (struct job_use){ { world_template(w, j)->id, j->element },
						      j->use > 0 ? IDLE_BUSY : IDLE_NOTHING,
						      (int32_t)(j->use / 100) };
	}
	for (int64_t at = w->now_us; n && rc == 0 && at < to_us; at += window_us) {
		ev.at_us = at;
		ev.measured.items = uses;
		ev.measured.n = n;
		rc = world_event(w, &ev, err);
	}
	return rc;
}

static int pass(struct world *w, int64_t to_us, struct gpuq_err *err)
{
	int rc = measure(w, to_us, err);

	w->now_us = to_us;
	return rc;
}

static int advance(struct world *w, int64_t to_us, struct gpuq_err *err)
{
	int rc = 0;

	if (to_us < w->now_us)
		return gpuq_fail_field(err, GPUQ_EINVAL, "to", "time does not run backwards");
	while (rc == 0 && w->now_us < to_us) {
		const int64_t next = next_instant(w);

		if (next > to_us) {
			rc = pass(w, to_us, err);
			break;
		}
		rc = pass(w, next, err);
		if (rc == 0)
			rc = fall_due(w, err);
		if (rc == 0)
			rc = world_rest(w, 0, err);
	}
	return rc < 0 ? rc : fall_due(w, err);
}

/* ---- steps ---- */

/* True if the step concerns the job: by its name, or as a member of an array by the plain name. */
static bool meant(const struct world *w, const struct sim_job *j, const char *name)
{
	return strcmp(j->name, name) == 0 || strcmp(world_template(w, j)->spec->name, name) == 0;
}

static int set_queue(struct world *w, struct sim_job *sim, const struct job_key key,
		     const char *queue, struct gpuq_err *err)
{
	const struct sim_template *t = world_template(w, sim);
	struct event ev = { .type = EV_JOB_UPDATED, .job = key };

	ev.updated.spec = &t->job;
	ev.updated.request_bytes = &t->id;
	ev.updated.request_len = sizeof(t->id);
	ev.updated.as_written = true;
	ev.updated.queue = queue;
	ev.updated.qos = t->qos;
	ev.updated.who = ev.updated.changes = "";
	ev.updated.time_limit_us = t->walltime_us;
	return world_event(w, &ev, err);
}

/* Split off an element whose priority differs from the others'. */
static int split(struct world *w, const struct sim_job *sim, struct job_key key,
		 struct gpuq_err *err)
{
	struct event ev = { .type = EV_JOB_NICED, .job = key };

	ev.nice = world_template(w, sim)->spec->nice / 1000;
	return sim->element >= 0 && sim->state == SIM_PENDING ? world_event(w, &ev, err) : 0;
}

/* Returns 1; 0 when the job is not in a state for that. */
static int change_job(struct world *w, struct sim_job *sim, const struct sc_step *s,
		      struct gpuq_err *err)
{
	const struct job_key key = { world_template(w, sim)->id, sim->element };
	const struct job *j = world_model_job(w, sim);
	struct event ev = { .type = EV_JOB_CANCEL_ASKED, .job = key };
	int rc = 0;

	if (s->event == SC_FINISH && sim->state != SIM_RUNNING)
		return 0;
	if (sim->state == SIM_ENDED)
		return s->event != SC_USE;
	switch (s->event) {
	case SC_FINISH:
		rc = world_end_pods(w, j, true, (int)(s->exit_code / 1000), err);
		break;
	case SC_CANCEL:
		ev.cancel.who = "";
		rc = world_event(w, &ev, err);
		j = rc == 0 ? world_model_job(w, sim) : NULL;
		if (j && model_job_is_live(j))
			rc = world_end_pods(w, j, true, EXIT_TERMINATED, err);
		break;
	case SC_HOLD:
	case SC_RELEASE:
		ev.type = s->event == SC_HOLD ? EV_JOB_HELD : EV_JOB_RELEASED;
		ev.held.who = "";
		rc = world_event(w, &ev, err);
		break;
	case SC_SET_PRIORITY:
		rc = split(w, sim, key, err);
		sim->priority = s->priority;
		break;
	case SC_USE:
		sim->use = s->use;
		break;
	default:
		rc = set_queue(w, sim, key, s->queue, err);
	}
	return rc < 0 ? rc : 1;
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
		if (meant(w, &w->jobs[i], s->job)) {
			const int rc = change_job(w, &w->jobs[i], s, err);

			if (rc < 0)
				return rc;
			n += rc;
		}
	if (n == 0)
		return gpuq_fail_field(err, GPUQ_EINVAL, "job", "%s is not there or not %s", s->job,
				       s->event == SC_FINISH ? "running" : "known");
	return 0;
}

static int change_node(struct world *w, const struct sc_step *s, struct gpuq_err *err)
{
	const uint32_t n = s->node ? world_node(w, s->node) : SNAP_NONE;
	int rc;

	if (n == SNAP_NONE)
		return gpuq_fail_field(err, GPUQ_EINVAL, "node", "unknown node %s",
				       s->node ? s->node : "(none)");
	if (!world_node_exists(&w->nodes[n]))
		return gpuq_fail_field(err, GPUQ_EINVAL, "node", "node %s does not exist yet",
				       s->node);
	w->nodes[n].state = s->event == SC_NODE_DOWN ? SNAP_DOWN : SNAP_READY;
	rc = world_node_event(w, &w->nodes[n], err);
	return rc == 0 && s->event == SC_NODE_DOWN ? lose_node(w, &w->nodes[n], err) : rc;
}

int world_step(struct world *w, const struct sc_step *s, struct gpuq_err *err)
{
	const int64_t at = s->event == SC_ADVANCE && s->to != SC_ABSENT ? s->to : s->at;
	int rc = 0;

	w->n_steps++;
	if (at != SC_ABSENT)
		rc = advance(w, world_at(w, at), err);
	if (rc < 0)
		return rc;
	switch (s->event) {
	case SC_ADVANCE:
		break;
	case SC_SUBMIT:
		rc = world_submit(w, s->submit, err);
		break;
	case SC_REQUEST_FAILED:
		rc = world_pools_step(w, s, err);
		break;
	case SC_NODE_CUT:
	case SC_CUT_FAILED:
		rc = world_cuts_step(w, s, err);
		break;
	case SC_NODE_DOWN:
	case SC_NODE_UP:
		rc = s->pool && s->event == SC_NODE_UP ? world_pools_step(w, s, err)
						       : change_node(w, s, err);
		break;
	default:
		rc = change_jobs(w, s, err);
	}
	if (rc == 0)
		rc = world_read(w, err);
	return rc < 0 ? rc : world_rest(w, 0, err);
}
