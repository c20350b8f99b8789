#include "gpuqd/flow/advise/estimate.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/base/worker.h"
#include "gpuqd/sched/estimate/estimate.h"
#include "gpuqd/flow/advise/estimate_past.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "libgpuq/units.h"

/* Bound of a run: node visits and jobs evaluated, in all its cycles: about a tenth of a second.
 * Twice that when usual run times are simulated as well. */
#define STEPS_MAX UINT64_C(200000)
/* Pending jobs of a queue that are evaluated together. */
#define FRONT 128u
/* A snapshot is taken in the loop: it may spend at most a fifth of its time on that. */
#define REST_FACTOR 4
/* New jobs are estimated for the record of estimates: at most this often and this many at a time;
 * then the thread is idle for a multiple of the time it took. */
#define RECORD_US (20 * GPUQ_US_PER_S)
#define RECORD_REST_FACTOR 20
#define FRESH_MAX 256

const char *const start_by_words[N_START_BY] = { [START_NOW] = "now",
						 [START_CLAIM] = "claim",
						 [START_RESERVATION] = "reservation",
						 [START_SIMULATION] = "simulation",
						 [START_UNKNOWN] = "unknown" };

struct question {
	struct question *next;
	uint64_t ticket;
	estimate_fn fn; /* NULL = the reply is no longer wanted */
	void *arg;
	struct gpuq_arena mem;
	struct job_key *jobs;
	struct start_guest *guests;
	uint32_t n_jobs, n_guests;
	uint32_t *at; /* by job, then guest: index into the run's jobs; SNAP_NONE with rc */
	int *rc;
};

/* The thread owns all it works on until it has ended. */
struct run {
	struct estimator *e;
	struct question *questions;
	struct snapshot *s;
	struct gpuq_arena mem;
	uint32_t *jobs, n; /* of s, each once */
	uint32_t *at; /* by job of s: into jobs; SNAP_NONE */
	int64_t *usual_us; /* by job of s; NULL = nothing is known */
	uint32_t next_id; /* of the model: guests get it and the ids after it */
	uint32_t n_learned;
	struct estimate *out, *likely; /* likely NULL = as out */
	struct estimate_reach reach;
	int64_t began_us;
	int rc;
	struct gpuq_err err;
};

struct estimator {
	struct journal *j;
	struct loop *l;
	struct past *past;
	struct loop_timer *soon, *record;
	struct question *asked, **asked_end;
	uint32_t n_asked;
	uint64_t last_ticket;
	uint32_t fresh[FRESH_MAX], n_fresh; /* submitted jobs without an estimate so far */
	struct run *run; /* in progress */
	struct worker *worker;
	atomic_bool quit;
	int64_t rest_until_us, record_from_us; /* monotonic */
};

/* ---- the thread ---- */

static bool go_on(void *arg)
{
	const struct estimator *e = arg;

	return !atomic_load(&e->quit);
}

static void work(void *arg)
{
	struct run *r = arg;
	struct estimate_config config = { .max_steps = STEPS_MAX,
					  .front = FRONT,
					  .claims = true,
					  .go_on = go_on,
					  .go_on_arg = r->e };

	r->rc = estimate_starts(r->s, &config, r->jobs, r->n, &r->mem, r->out, &r->reach, &r->err);
	config.run_us = r->usual_us;
	if (r->rc == 0 && r->likely)
		r->rc = estimate_starts(r->s, &config, r->jobs, r->n, &r->mem, r->likely, NULL,
					&r->err);
}

/* ---- answers ---- */

static struct job_key key_of(const struct snap_job *j)
{
	return (struct job_key){ j->key.id, j->key.index };
}

static bool fill_pods(struct gpuq_arena *a, const struct snapshot *s, const struct estimate *e,
		      struct start_answer *out)
{
	struct start_pod *pods = gpuq_arena_calloc(a, e->n_pods + 1, sizeof(*pods));

	if (!pods)
		return false;
	for (uint32_t i = 0; i < e->n_pods; i++)
		pods[i] = (struct start_pod){ .node = s->nodes[e->pods[i].node].name,
					      .group = e->pods[i].group,
					      .index = e->pods[i].index,
					      .devices = e->pods[i].devices,
					      .n_devices = e->pods[i].n_devices,
					      .gpus_milli = (int64_t)e->pods[i].n_devices *
							    e->pods[i].milli };
	out->pods = pods;
	out->n_pods = e->n_pods;
	return true;
}

static bool fill_victims(struct gpuq_arena *a, const struct snapshot *s, const struct estimate *e,
			 struct start_answer *out)
{
	struct start_victim *victims = gpuq_arena_calloc(a, e->n_victims + 1, sizeof(*victims));

	if (!victims)
		return false;
	for (uint32_t i = 0; i < e->n_victims; i++) {
		const struct estimate_victim *v = &e->victims[i];
		const struct snap_job *j = &s->jobs[v->job];

		victims[i] = (struct start_victim){ .job = key_of(j),
						    .queue = s->queues[j->queue].name,
						    .user = s->users[j->user],
						    .rule = v->rule ? v->rule : "",
						    .moves = v->kind == PLAN_MOVE,
						    .n_pods = v->n_pods,
						    .gpus_milli = v->gpus_milli,
						    .grace_us = j->grace_us,
						    .lost_gpu_ms = v->lost_gpu_ms };
	}
	out->victims = victims;
	out->n_victims = e->n_victims;
	return true;
}

static bool fill_waits(struct gpuq_arena *a, const struct estimate *e, struct start_answer *out)
{
	static const enum gpuq_unit units[] = { [PLAN_COUNT] = GPUQ_UNIT_COUNT,
						[PLAN_GPUS] = GPUQ_UNIT_GPUS,
						[PLAN_CPU] = GPUQ_UNIT_CORES,
						[PLAN_BYTES] = GPUQ_UNIT_BYTES,
						[PLAN_TIME] = GPUQ_UNIT_TIME };
	struct start_wait *waits = gpuq_arena_calloc(a, e->n_changes + 1, sizeof(*waits));

	if (!waits)
		return false;
	for (uint32_t i = 0; i < e->n_changes; i++) {
		const struct plan_reason *r = &e->changes[i].why;

		waits[i].at_us = e->changes[i].at_us;
		waits[i].why = (struct reason_fact){ r->code, r->object, units[r->unit],
						     r->have, r->need,   r->ask };
	}
	out->waits = waits;
	out->n_waits = e->n_changes;
	return true;
}

static bool fill(struct gpuq_arena *a, const struct run *r, uint32_t at, struct start_answer *out)
{
	static const enum start_by by[] = { [ESTIMATE_UNKNOWN] = START_UNKNOWN,
					    [ESTIMATE_NOW] = START_NOW,
					    [ESTIMATE_CLAIM] = START_CLAIM,
					    [ESTIMATE_RESERVATION] = START_RESERVATION,
					    [ESTIMATE_SIMULATION] = START_SIMULATION };
	const struct estimate *e = &r->out[at];
	const struct estimate *likely = r->likely ? &r->likely[at] : e;

	out->by = by[e->by];
	out->start_us = e->start_us;
	out->likely_us = likely->start_us;
	out->flavor = e->flavor == SNAP_NONE ? "" : r->s->flavors[e->flavor].name;
	return fill_pods(a, r->s, e, out) && fill_victims(a, r->s, e, out) && fill_waits(a, e, out);
}

static void tell(struct question *q, int rc, const struct start_answer *answers,
		 const struct start_assumed *assumed, const struct gpuq_err *err)
{
	const estimate_fn fn = q->fn;

	q->fn = NULL;
	if (fn)
		fn(q->arg, rc, answers, rc == 0 ? q->n_jobs + q->n_guests : 0, assumed, err);
}

static void answer(const struct run *r, struct question *q, const struct start_assumed *assumed)
{
	const uint32_t n = q->n_jobs + q->n_guests;
	struct start_answer *answers = gpuq_arena_calloc(&q->mem, n, sizeof(*answers));
	struct gpuq_err err = r->err;
	int rc = r->rc;

	if (rc == 0 && !answers)
		rc = gpuq_no_memory(&err);
	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		struct start_answer *a = &answers[i];

		*a = (struct start_answer){ .rc = q->rc[i],
					    .by = START_UNKNOWN,
					    .start_us = GPUQ_UNLIMITED,
					    .likely_us = GPUQ_UNLIMITED,
					    .flavor = "" };
		a->job = i < q->n_jobs ? q->jobs[i] : key_of(&r->s->jobs[r->jobs[q->at[i]]]);
		if (a->rc == 0 && !fill(&q->mem, r, q->at[i], a))
			rc = gpuq_no_memory(&err);
	}
	tell(q, rc, answers, assumed, &err);
}

static void question_free(struct question *q)
{
	gpuq_arena_done(&q->mem);
	free(q);
}

static void run_free(struct run *r)
{
	struct question *next;

	if (!r)
		return;
	for (struct question *q = r->questions; q; q = next) {
		next = q->next;
		question_free(q);
	}
	snapshot_free(r->s);
	gpuq_arena_done(&r->mem);
	free(r);
}

/* ---- a run ---- */

static uint32_t want(struct run *r, uint32_t job)
{
	if (r->at[job] == SNAP_NONE) {
		r->at[job] = r->n;
		r->jobs[r->n++] = job;
	}
	return r->at[job];
}

/* Return the entry of a pending job; an element of an array without its own has the array's. */
static uint32_t entry_of(const struct snapshot *s, struct job_key key)
{
	uint32_t at = snapshot_find_job(s, (struct snap_key){ key.id, key.index });

	if (at == SNAP_NONE && key.index >= 0)
		at = snapshot_find_job(s, (struct snap_key){ key.id, -1 });
	return at;
}

static void find(struct run *r, const struct model *m, struct question *q)
{
	for (uint32_t i = 0; i < q->n_jobs; i++) {
		const uint32_t job = entry_of(r->s, q->jobs[i]);

		if (job != SNAP_NONE && r->s->jobs[job].state == SNAP_PENDING)
			q->at[i] = want(r, job);
		else
			q->rc[i] = job != SNAP_NONE || model_find_job(m, q->jobs[i]) ? GPUQ_EINVAL
										     : GPUQ_ENOENT;
	}
}

/* Fill in how long jobs usually run, by job of the snapshot. */
static bool learn(struct run *r, const struct model *m, const struct start_guest *guests)
{
	const struct past *past = r->e->past;

	if (!past_knows_any(past))
		return true;
	r->usual_us = gpuq_arena_calloc(&r->mem, r->s->n_jobs + 1, sizeof(*r->usual_us));
	r->likely = gpuq_arena_calloc(&r->mem, r->n + 1, sizeof(*r->likely));
	if (!r->usual_us || !r->likely)
		return false;
	for (uint32_t i = 0; i < r->s->n_jobs; i++) {
		const struct snap_job *sj = &r->s->jobs[i];
		const struct job *j = model_find_job(m, key_of(sj));
		const struct start_guest *g =
			sj->key.id >= m->next_job_id ? &guests[sj->key.id - m->next_job_id] : NULL;
		uint32_t milli = 0;

		if (j)
			milli = past_usual(past, j->queue->name, j->user, j->name);
		else if (g)
			milli = past_usual(past, g->queue, g->user, g->spec->name);
		r->usual_us[i] = GPUQ_UNLIMITED;
		if (milli == 0 || sj->walltime_us == GPUQ_UNLIMITED)
			continue;
		r->usual_us[i] = sj->walltime_us / 1000 * milli;
		r->n_learned++;
	}
	return true;
}

static uint32_t n_guests(const struct run *r)
{
	uint32_t n = 0;

	for (const struct question *q = r->questions; q; q = q->next)
		n += q->n_guests;
	return n;
}

static uint32_t n_asked_jobs(const struct run *r)
{
	uint32_t n = 0;

	for (const struct question *q = r->questions; q; q = q->next)
		n += q->n_jobs;
	return n;
}

/* Take the snapshot and number all jobs that are asked about; guests are at its end. */
static int prepare(struct run *r, uint32_t *fresh, uint32_t n_fresh)
{
	const struct model *m = journal_model(r->e->j);
	const uint32_t n = n_guests(r), n_jobs = n_asked_jobs(r) + n_fresh;
	struct start_guest *guests = gpuq_arena_calloc(&r->mem, n + 1, sizeof(*guests));
	struct job_key *jobs = gpuq_arena_calloc(&r->mem, n_jobs + 1, sizeof(*jobs));
	const struct start_question all = { jobs, n_jobs, guests, n, 0 };
	uint32_t k = 0, n_keys = 0;
	int rc;

	if (!guests || !jobs)
		return gpuq_no_memory(&r->err);
	for (struct question *q = r->questions; q; q = q->next) {
		for (uint32_t i = 0; i < q->n_guests; i++)
			guests[k++] = q->guests[i];
		for (uint32_t i = 0; i < q->n_jobs; i++)
			jobs[n_keys++] = q->jobs[i];
	}
	for (uint32_t i = 0; i < n_fresh; i++)
		jobs[n_keys++] = (struct job_key){ fresh[i], -1 };
	r->next_id = m->next_job_id;
	rc = snapshot_take_question(m, loop_now_us(r->e->l), &all, NULL, &r->s, &r->err);
	if (rc < 0)
		return rc;
	r->jobs = gpuq_arena_calloc(&r->mem, r->s->n_jobs + 1, sizeof(*r->jobs));
	r->at = gpuq_arena_calloc(&r->mem, r->s->n_jobs + 1, sizeof(*r->at));
	if (!r->jobs || !r->at)
		return gpuq_no_memory(&r->err);
	memset(r->at, 0xff, r->s->n_jobs * sizeof(*r->at));
	k = 0;
	for (struct question *q = r->questions; q; q = q->next) {
		find(r, m, q);
		for (uint32_t i = 0; i < q->n_guests; i++, k++) {
			const struct snap_key key = { m->next_job_id + k, -1 };

			q->at[q->n_jobs + i] = want(r, snapshot_find_job(r->s, key));
		}
	}
	for (uint32_t i = 0; i < n_fresh; i++) {
		const uint32_t job = entry_of(r->s, (struct job_key){ fresh[i], -1 });

		if (job != SNAP_NONE && r->s->jobs[job].state == SNAP_PENDING)
			want(r, job);
	}
	r->out = gpuq_arena_calloc(&r->mem, r->n + 1, sizeof(*r->out));
	return r->out && learn(r, m, guests) ? 0 : gpuq_no_memory(&r->err);
}

static void plan_next(struct estimator *e);

static void finish(struct run *r)
{
	struct estimator *e = r->e;
	const int64_t now = loop_clock_us();
	struct start_assumed assumed = { .until_us = r->reach.until_us,
					 .ahead_us = loop_ahead_us(e->l),
					 .n_events = r->reach.n_events,
					 .cut_short = r->reach.cut_short,
					 .n_learned = r->n_learned };

	e->run = NULL;
	if (r->rc == 0) {
		assumed.at_us = r->s->config.now_us;
		for (uint32_t i = 0; i < r->s->n_jobs; i++)
			if (r->s->jobs[i].state == SNAP_RUNNING) {
				assumed.n_running++;
				assumed.n_endless += r->s->jobs[i].walltime_us == GPUQ_UNLIMITED;
			}
		/* Only of submitted jobs that do not start at once. */
		for (uint32_t i = 0; i < r->n; i++) {
			const struct snap_job *j = &r->s->jobs[r->out[i].job];

			if (j->key.id < r->next_id && r->out[i].by != ESTIMATE_NOW)
				past_watch(e->past, j->key.id, r->out[i].start_us);
		}
	} else
		log_err("estimate", "error=%s", LOGS(r->err.text));
	e->record_from_us = now + RECORD_REST_FACTOR * (now - r->began_us);
	for (struct question *q = r->questions; q; q = q->next)
		answer(r, q, &assumed);
	run_free(r);
	plan_next(e);
}

static void on_done(void *arg)
{
	finish(arg);
}

/* Start one run for all questions asked so far. */
static void start_run(struct estimator *e)
{
	const int64_t start = loop_clock_us();
	struct run *r = calloc(1, sizeof(*r));

	if (!r)
		return;
	r->e = e;
	r->began_us = start;
	r->err = (struct gpuq_err)GPUQ_ERR_INIT;
	r->questions = e->asked;
	e->asked = NULL;
	e->asked_end = &e->asked;
	e->n_asked = 0;
	r->rc = prepare(r, e->fresh, e->n_fresh);
	e->n_fresh = 0;
	e->run = r;
	if (r->rc == 0)
		r->rc = worker_run(e->worker, work, on_done, r, &r->err);
	e->rest_until_us = loop_clock_us() + REST_FACTOR * (loop_clock_us() - start);
	if (r->rc < 0)
		finish(r);
}

static void fire_soon(void *arg)
{
	struct estimator *e = arg;

	e->soon = NULL;
	if (!e->run && (e->asked || e->n_fresh))
		start_run(e);
}

static void fire_record(void *arg)
{
	struct estimator *e = arg;

	e->record = NULL;
	if (!e->run && !e->soon)
		fire_soon(e);
}

/* Plan the next run: questions as soon as the pause is over, else the record of estimates when it
 * is due. */
static void plan_next(struct estimator *e)
{
	const int64_t now = loop_clock_us();

	if (e->run || e->soon)
		return;
	if (e->asked) {
		e->soon = loop_after(e->l, e->rest_until_us > now ? e->rest_until_us - now : 0,
				     fire_soon, e);
	} else if (e->n_fresh && !e->record) {
		const int64_t from =
			e->record_from_us > now + RECORD_US ? e->record_from_us - now : RECORD_US;

		e->record = loop_after(e->l, from, fire_record, e);
	}
}

/* ---- entry points ---- */

static void on_event(void *arg, const struct event *ev)
{
	struct estimator *e = arg;

	past_on_event(e->past, journal_model(e->j), ev);
	if (ev->type != EV_JOB_SUBMITTED || e->n_fresh == FRESH_MAX)
		return;
	e->fresh[e->n_fresh++] = ev->job.id;
	plan_next(e);
}

int estimator_new(struct journal *j, struct estimator **out, struct gpuq_err *err)
{
	struct estimator *e = calloc(1, sizeof(*e));
	int rc = 0;

	if (!e)
		return gpuq_no_memory(err);
	e->j = j;
	e->l = journal_loop(j);
	e->asked_end = &e->asked;
	e->past = past_new();
	if (!e->past)
		rc = gpuq_no_memory(err);
	if (rc == 0)
		rc = worker_new(e->l, &e->worker, err);
	if (rc < 0) {
		estimator_free(e);
		return rc;
	}
	worker_give_back(e->worker);
	journal_subscribe(j, on_event, e);
	*out = e;
	return 0;
}

static void refuse_all(struct question *list)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct question *next;

	gpuq_fail(&err, GPUQ_EGONE, "gpuqd is stopping");
	for (; list; list = next) {
		next = list->next;
		tell(list, GPUQ_EGONE, NULL, NULL, &err);
		question_free(list);
	}
}

void estimator_free(struct estimator *e)
{
	if (!e)
		return;
	atomic_store(&e->quit, true);
	worker_free(e->worker, NULL);
	loop_cancel(e->soon);
	loop_cancel(e->record);
	refuse_all(e->asked);
	if (e->run) {
		refuse_all(e->run->questions);
		e->run->questions = NULL;
		run_free(e->run);
	}
	past_free(e->past);
	free(e);
}

/* Copy what must outlive the call: the spec through its tree, as it is stored. */
static bool keep_guest(struct gpuq_arena *a, const struct start_guest *from, struct start_guest *to,
		       struct gpuq_err *err)
{
	struct gpuq_reader reader = { .arena = a, .stored = true, .err = err };
	struct gpuq_val *tree = gpuq_spec_write(a, from->spec);
	struct gpuq_spec *spec = gpuq_arena_calloc(a, 1, sizeof(*spec));

	if (!tree || !spec || gpuq_spec_read(&reader, tree, spec) != 0)
		return false;
	spec->begin_us = from->spec->begin_us;
	spec->deadline_us = from->spec->deadline_us;
	*to = (struct start_guest){
		spec, gpuq_arena_strdup(a, from->user), gpuq_arena_strdup(a, from->queue),
		gpuq_arena_strdup(a, from->qos && *from->qos ? from->qos : "normal"),
		from->time_limit_us
	};
	return to->user && to->queue && to->qos;
}

int estimator_ask(struct estimator *e, const struct job_key *jobs, uint32_t n_jobs,
		  const struct start_guest *guests, uint32_t n_guests_, estimate_fn fn, void *arg,
		  uint64_t *ticket, struct gpuq_err *err)
{
	const uint32_t n = n_jobs + n_guests_;
	struct question *q;
	bool kept = true;

	if (n_jobs > ESTIMATE_JOBS_MAX || n_guests_ > ESTIMATE_JOBS_MAX || n == 0 ||
	    n > ESTIMATE_JOBS_MAX)
		return gpuq_fail(err, GPUQ_EINVAL, "an estimate is for 1 to %d jobs",
				 ESTIMATE_JOBS_MAX);
	for (uint32_t i = 0; i < n_guests_; i++)
		if (!model_find_queue(journal_model(e->j), guests[i].queue))
			return gpuq_fail(err, GPUQ_ENOENT, "no such queue: %s", guests[i].queue);
	if (e->n_asked == ESTIMATE_QUESTIONS_MAX)
		return gpuq_fail(err, GPUQ_EBUSY, "too many estimates in progress: retry later");
	q = calloc(1, sizeof(*q));
	if (!q)
		return gpuq_no_memory(err);
	q->jobs = gpuq_arena_calloc(&q->mem, n_jobs + 1, sizeof(*q->jobs));
	q->guests = gpuq_arena_calloc(&q->mem, n_guests_ + 1, sizeof(*q->guests));
	q->at = gpuq_arena_calloc(&q->mem, n, sizeof(*q->at));
	q->rc = gpuq_arena_calloc(&q->mem, n, sizeof(*q->rc));
	kept = q->jobs && q->guests && q->at && q->rc;
	for (uint32_t i = 0; kept && i < n_guests_; i++)
		kept = keep_guest(&q->mem, &guests[i], &q->guests[i], err);
	if (!kept) {
		question_free(q);
		return gpuq_no_memory(err);
	}
	if (n_jobs)
		memcpy(q->jobs, jobs, n_jobs * sizeof(*jobs));
	q->n_jobs = n_jobs;
	q->n_guests = n_guests_;
	q->fn = fn;
	q->arg = arg;
	*ticket = q->ticket = ++e->last_ticket;
	*e->asked_end = q;
	e->asked_end = &q->next;
	e->n_asked++;
	plan_next(e);
	return 0;
}

static void forget(struct question *list, uint64_t ticket)
{
	for (; list; list = list->next)
		if (list->ticket == ticket)
			list->fn = NULL;
}

void estimator_forget(struct estimator *e, uint64_t ticket)
{
	forget(e->asked, ticket);
	if (e->run)
		forget(e->run->questions, ticket);
}

bool estimator_record(const struct estimator *e, const char *queue, struct start_record *out)
{
	return past_record(e->past, queue, out);
}
