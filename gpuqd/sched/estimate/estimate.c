#include "gpuqd/sched/estimate/estimate_int.h"

#include <string.h>

#include "gpuqd/util/amount.h"
#include "gpuqd/snapshot/cost.h"
#include "gpuqd/sched/sched.h"
#include "gpuqd/util/sort.h"

#define CYCLES_AT_ONCE 10 /* until the same moment yields nothing more */

/* ---- the jobs to be estimated ---- */

/* True if nothing changed that a reader would notice; numbers may differ. */
static bool same_reason(const struct plan_reason *x, const struct plan_reason *y)
{
	return x->code == y->code && strcmp(x->object, y->object) == 0;
}

/* Note the reason for which the job is pending from now on, if it is another one. */
static int note_reason(struct lived *l, struct estimate *e, const struct plan_reason *why)
{
	const uint32_t n = e->n_changes;
	struct estimate_change *changes;

	if (n > 0 && same_reason(&e->changes[n - 1].why, why))
		return 0;
	/* Capacity in powers of two. */
	if ((n & (n - 1)) == 0) {
		changes = estimate_lived_copy(l, e->changes, n, n ? 2 * (size_t)n : 1,
					      sizeof(*changes));
		if (!changes)
			return gpuq_no_memory(l->err);
		e->changes = changes;
	}
	e->changes[n] = (struct estimate_change){ l->s.config.now_us, *why };
	e->changes[n].why.object = gpuq_arena_strdup(l->mem, why->object);
	e->n_changes++;
	return e->changes[n].why.object ? 0 : gpuq_no_memory(l->err);
}

/* Return the reason that the plan gives for a job; NULL if it has none. */
static const struct plan_reason *reason_of(const struct snapshot *s, const struct plan *p,
					   uint32_t job)
{
	const struct plan_reason *why;

	return plan_reasons(s, p, job, &why) ? why : NULL;
}

/* Note the reasons of all jobs in question that have not started. */
static int note_all(struct lived *l, const struct plan *p)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < l->n_out; i++) {
		const uint32_t at = l->now_of[l->out[i].job];
		const struct plan_reason *why = at == SNAP_NONE ? NULL : reason_of(&l->s, p, at);

		if (l->out[i].start_us == GPUQ_UNLIMITED && why)
			rc = note_reason(l, &l->out[i], why);
	}
	return rc;
}

/* Return the estimate of the job, if one was requested. The first element that starts represents
 * its array. */
static struct estimate *asked(struct lived *l, uint32_t origin)
{
	for (uint32_t i = 0; i < l->n_out; i++)
		if (l->out[i].job == origin && l->out[i].start_us == GPUQ_UNLIMITED)
			return &l->out[i];
	return NULL;
}

/* Return how the start was found: at once, by preempting others, at its start reservation, or in
 * the course of the simulation. */
static enum estimate_by start_by(const struct lived *l, const struct estimate *e)
{
	if (e->n_victims > 0 || l->from->jobs[e->job].n_promises > 0)
		return ESTIMATE_CLAIM;
	if (l->first)
		return ESTIMATE_NOW;
	return l->planned_us[e->job] >= e->start_us && l->planned_us[e->job] != GPUQ_UNLIMITED
		       ? ESTIMATE_RESERVATION
		       : ESTIMATE_SIMULATION;
}

/* after_us: the time until its places are free. */
static void note_start(struct lived *l, uint32_t origin, uint32_t job, const struct plan_action *a,
		       int64_t after_us)
{
	struct estimate *e;

	while ((e = asked(l, origin)) != NULL) {
		e->start_us = amount_later(l->s.config.now_us, after_us);
		e->by = start_by(l, e);
		e->flavor = a->flavor;
		e->pods = l->lives[job].pods;
		e->n_pods = l->lives[job].n_pods;
		l->n_left--;
	}
}

/* ---- the first cycle ---- */

/* True if the action preempts work for that job. */
static bool leaves_for(const struct plan_action *a, uint32_t claimant)
{
	return a->claimant == claimant &&
	       (a->kind == PLAN_EVICT || a->kind == PLAN_SHRINK || a->kind == PLAN_MOVE);
}

/* Return what an action of the first cycle takes from a job: its pods, and the work since its last
 * checkpoint. */
static struct estimate_victim victim_of(const struct lived *l, const struct plan *p,
					const struct plan_action *a)
{
	const struct snap_job *j = &l->s.jobs[a->job];
	struct estimate_victim v = { .job = a->job, .kind = a->kind, .rule = a->rule };

	for (uint32_t i = j->alloc_first; i < j->alloc_first + j->n_allocs; i++) {
		bool goes = a->kind != PLAN_SHRINK;

		for (uint32_t k = 0; !goes && k < a->n_pods; k++)
			goes = p->pods[a->pod_first + k].index == l->s.allocs[i].index;
		if (!goes)
			continue;
		v.n_pods++;
		v.gpus_milli = amount_sum(v.gpus_milli, cost_of_alloc(&l->s, &l->s.allocs[i]));
	}
	v.lost_gpu_ms = cost_of_loss(&l->s, j, v.gpus_milli);
	return v;
}

/* Before anything of the plan is applied: indexes are those of the original. */
static int note_victims(struct lived *l, const struct plan *p, struct estimate *e)
{
	struct estimate_victim *victims;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_actions; i++)
		n += leaves_for(&p->actions[i], e->job);
	victims = estimate_lived_copy(l, NULL, 0, n, sizeof(*victims));
	if (!victims)
		return gpuq_no_memory(l->err);
	n = 0;
	for (uint32_t i = 0; i < p->n_actions; i++) {
		if (!leaves_for(&p->actions[i], e->job))
			continue;
		victims[n] = victim_of(l, p, &p->actions[i]);
		if (victims[n].rule)
			victims[n].rule = gpuq_arena_strdup(l->mem, victims[n].rule);
		n++;
	}
	e->victims = victims;
	e->n_victims = n;
	return 0;
}

/* Return how long the victims of a claim may take to end; -1 = it has no victims. */
static int64_t grace_for(const struct lived *l, const struct plan *p, uint32_t claimant)
{
	int64_t most = -1;

	for (uint32_t i = 0; i < p->n_actions; i++)
		if (leaves_for(&p->actions[i], claimant)) {
			const int64_t grace = l->s.jobs[p->actions[i].job].grace_us;

			most = grace > most ? grace : most;
		}
	return most;
}

/* Note from the first cycle, which is that of the present, the victims of claims and the planned
 * starts. */
static int note_first(struct lived *l, const struct plan *p)
{
	int rc = 0;

	l->grace_us = estimate_lived_copy(l, NULL, 0, l->s.n_jobs, sizeof(*l->grace_us));
	l->planned_us = estimate_lived_copy(l, NULL, 0, l->s.n_jobs, sizeof(*l->planned_us));
	if (!l->grace_us || !l->planned_us)
		return gpuq_no_memory(l->err);
	for (uint32_t i = 0; i < l->s.n_jobs; i++) {
		l->grace_us[i] = -1;
		l->planned_us[i] = GPUQ_UNLIMITED;
	}
	for (uint32_t i = 0; i < p->n_actions; i++) {
		if (p->actions[i].kind == PLAN_RESERVE)
			l->planned_us[p->actions[i].job] = p->actions[i].start_us;
		if (l->config->claims && p->actions[i].kind == PLAN_NOMINATE)
			l->grace_us[p->actions[i].job] = grace_for(l, p, p->actions[i].job);
	}
	for (uint32_t i = 0; rc == 0 && l->config->claims && i < l->n_out; i++)
		rc = note_victims(l, p, &l->out[i]);
	return rc;
}

/* ---- time ---- */

/* Compare so that those of a job stand together, and keep their order there. */
static int cmp_action(const void *ctx, uint32_t x, uint32_t y)
{
	const struct plan_action *a = ctx;

	return a[x].job != a[y].job ? sort_i64(a[y].job, a[x].job) : sort_i64(x, y);
}

/* Start the job in the copy, and note it if it is in question. */
static int starts(struct lived *l, const struct plan *p, const struct plan_action *a,
		  int64_t after_us)
{
	const uint32_t origin = l->lives[a->job].origin;
	/* An element of an array gets the entry after its array, if it has none yet. */
	uint32_t at = a->job;
	int rc = estimate_lived_start(l, a->job, p, a, &at);

	if (rc == 0)
		note_start(l, origin, at, a, after_us);
	return rc;
}

/* Change the copy by one action of a cycle. Jobs obey at once, as in a scenario. */
static int apply_one(struct lived *l, const struct plan *p, const struct plan_action *a,
		     bool *changed)
{
	const bool runs = l->s.jobs[a->job].state == SNAP_RUNNING;

	switch (a->kind) {
	case PLAN_PLACE:
		*changed = true;
		return starts(l, p, a, 0);
	case PLAN_NOMINATE:
		/* The victims are gone at once, and it starts: the time that this takes is
		 * reported, not simulated. */
		if (!l->first || l->grace_us[a->job] < 0)
			return 0;
		*changed = true;
		return starts(l, p, a, l->grace_us[a->job]);
	case PLAN_GROW:
		*changed |= runs;
		return runs ? estimate_lived_grow(l, a->job, p, a) : 0;
	case PLAN_EVICT:
		*changed |= runs;
		if (runs)
			estimate_lived_evict(l, a->job);
		return 0;
	case PLAN_SHRINK:
		*changed |= runs;
		if (runs)
			estimate_lived_shrink(l, a->job, p, a);
		return 0;
	case PLAN_MOVE:
		*changed |= runs;
		return runs ? estimate_lived_move(l, a->job, p, a) : 0;
	case PLAN_RELEASE:
		estimate_lived_drop_promises(l, a->job);
		return 0;
	case PLAN_RESERVE:
		return 0;
	}
	return 0;
}

/* Apply the actions of later indexes first: an element that gets an entry of its own moves the
 * indexes of all after it. */
static int apply(struct lived *l, const struct plan *p, bool *changed)
{
	uint32_t *ix = estimate_lived_copy(l, NULL, 0, p->n_actions, sizeof(*ix));
	uint32_t *scratch = estimate_lived_copy(l, NULL, 0, p->n_actions, sizeof(*scratch));
	int rc = 0;

	if (!ix || !scratch)
		return gpuq_no_memory(l->err);
	for (uint32_t i = 0; i < p->n_actions; i++)
		ix[i] = i;
	sort_ix(ix, scratch, p->n_actions, cmp_action, p->actions);
	for (uint32_t i = 0; rc == 0 && i < p->n_actions; i++)
		rc = apply_one(l, p, &p->actions[ix[i]], changed);
	return rc;
}

/* Decide once and apply it to the copy. */
static int one_cycle(struct lived *l, bool *changed, int64_t *wake_us)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	bool renewed = false;
	struct plan p;
	int rc = sched_cycle(&l->s, &mem, &p, l->err);

	*changed = false;
	if (rc == 0 && l->first)
		rc = note_first(l, &p);
	if (rc == 0 && l->first)
		rc = estimate_aside_begin(l, p.priority);
	if (rc == 0)
		rc = note_all(l, &p);
	if (rc == 0)
		rc = apply(l, &p, changed);
	if (rc == 0)
		l->steps += p.steps + l->s.n_jobs + l->s.n_allocs + l->s.n_nodes;
	if (rc == 0 && (*changed || l->first))
		rc = estimate_aside_renew(l, &renewed);
	/* Only the present preempts: later preemptions would depend on too many guesses. */
	l->first = l->s.config.reclaim = l->s.config.consolidation = false;
	if (rc == 0 && (*changed || renewed))
		rc = estimate_lived_settle(l);
	if (rc == 0)
		*wake_us = p.wake_us;
	gpuq_arena_done(&mem);
	return rc;
}

/* Return the next moment at which anything changes: work ends, pods are gone, or the plan asks to
 * be woken. */
static int64_t next_event(const struct lived *l, int64_t wake_us)
{
	const int64_t now = l->s.config.now_us;
	int64_t next = wake_us > now ? wake_us : GPUQ_UNLIMITED;

	for (uint32_t i = 0; i < l->s.n_jobs; i++) {
		if (l->s.jobs[i].state == SNAP_PENDING)
			continue;
		if (l->lives[i].end_us < next)
			next = l->lives[i].end_us;
		if (l->lives[i].shrinks && l->soon_us < next)
			next = l->soon_us;
	}
	return next;
}

/* A job that was evicted and is pending again competes with all others from then on. */
static int advance(struct lived *l, int64_t to_us)
{
	l->s.config.now_us = to_us;
	for (uint32_t i = 0; i < l->s.n_jobs; i++) {
		const struct snap_job *j = &l->s.jobs[i];

		if (j->state == SNAP_PENDING)
			continue;
		if (l->lives[i].shrinks && l->soon_us <= to_us)
			estimate_lived_shed(l, i);
		if (l->lives[i].end_us > to_us)
			continue;
		if (j->state == SNAP_LEAVING && j->returns)
			estimate_lived_evict(l, i);
		else
			estimate_lived_end(l, i);
	}
	return estimate_lived_settle(l);
}

/* True while the bounds on work and time allow another event; the first few are always simulated. */
static bool may_go_on(const struct lived *l, uint32_t n_events)
{
	const struct estimate_config *config = l->config;

	return (config->max_steps == 0 || l->steps < config->max_steps ||
		n_events < ESTIMATE_EVENTS_LEAST) &&
	       (!config->go_on || config->go_on(config->go_on_arg));
}

/* Let time pass from event to event, until all jobs in question have started or a bound is reached. */
static int live(struct lived *l, struct estimate_reach *reach)
{
	const uint32_t max = l->config->max_events ? l->config->max_events : ESTIMATE_EVENTS_MAX;
	int64_t wake_us = GPUQ_UNLIMITED;
	int rc = 0;

	l->first = true;
	if (l->config->claims) {
		l->s.config.reclaim = l->from->config.reclaim;
		l->s.config.consolidation = l->from->config.consolidation;
	}
	while (rc == 0 && l->n_left > 0) {
		bool changed = true;
		int64_t next;

		if (reach->n_events == max || !may_go_on(l, reach->n_events)) {
			reach->cut_short = true;
			break;
		}
		reach->n_events++;
		for (int i = 0; rc == 0 && changed && l->n_left > 0 && i < CYCLES_AT_ONCE; i++)
			rc = one_cycle(l, &changed, &wake_us);
		reach->until_us = l->s.config.now_us;
		next = next_event(l, wake_us);
		if (next == GPUQ_UNLIMITED)
			break;
		if (rc == 0 && l->n_left > 0)
			rc = advance(l, next);
	}
	return rc;
}

int estimate_starts(const struct snapshot *s, const struct estimate_config *config,
		    const uint32_t *jobs, uint32_t n, struct gpuq_arena *mem, struct estimate *out,
		    struct estimate_reach *reach, struct gpuq_err *err)
{
	struct estimate_reach far = { .until_us = s->config.now_us };
	struct lived l = {
		.from = s, .config = config, .mem = mem, .n_out = n, .n_left = n, .err = err
	};
	int rc;

	if (!s->sealed)
		return gpuq_fail(err, GPUQ_EINVAL, "the snapshot has not been sealed");
	for (uint32_t i = 0; i < n; i++)
		if (jobs[i] >= s->n_jobs || s->jobs[jobs[i]].state != SNAP_PENDING)
			return gpuq_fail(err, GPUQ_EINVAL, "an estimate for a job that waits not");
	l.out = estimate_lived_copy(&l, NULL, 0, n, sizeof(*l.out));
	if (!l.out)
		return gpuq_no_memory(l.err);
	for (uint32_t i = 0; i < n; i++)
		l.out[i] = (struct estimate){ .job = jobs[i],
					      .start_us = GPUQ_UNLIMITED,
					      .flavor = SNAP_NONE };
	rc = estimate_lived_begin(&l);
	if (rc == 0)
		rc = live(&l, &far);
	if (rc == 0 && n > 0)
		memcpy(out, l.out, n * sizeof(*out));
	if (rc == 0 && reach)
		*reach = far;
	return rc;
}
