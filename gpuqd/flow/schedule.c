#include "gpuqd/flow/schedule.h"

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/base/spool.h"
#include "gpuqd/sched/cycle_record.h"
#include "gpuqd/sched/left_out.h"
#include "gpuqd/sched/sched.h"
#include "gpuqd/flow/carry_out.h"
#include "gpuqd/flow/census_watch.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/quota_warn.h"
#include "gpuqd/snapshot/snapshot_take_past.h"
#include "gpuqd/flow/publish.h"
#include "gpuqd/flow/since.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/state/equivalent.h"
#include "gpuqd/state/asks/ask.h"
#include "libgpuq/limits.h"

/* A burst of submissions is one decision; a single one has no noticeable delay. On a large site a
 * cycle takes its time: then cycles are less frequent, so that the loop spends at most a fifth of
 * its time on them. */
#define QUIET_US 2000
#define AT_MOST_US 50000
#define REST_FACTOR 4
#define OTHERS_US                                                                                  \
	1000000 /* between cycles for the sake of foreign pods, while nothing is pending */
#define END_MOST 500 /* hopeless jobs, in one cycle */

/* Pending jobs that are alike and get entries of their own in a snapshot: more where they were not
 * enough, and less again after a while. */
#define ALIKE_LEAST 64
#define ALIKE_FACTOR 4
#define ALIKE_LESS 16 /* one part in this many, each cycle */
/* A cycle is done in steps: this many in the turn in which its snapshot is taken, which is all of
 * most cycles, the others in the turns that follow. The work of a step is counted, so that its end
 * does not depend on the machine: different requests that are put into the snapshot before it is
 * taken; jobs that are put into it then; node visits of the decision; actions of the plan that are carried out; jobs whose results
 * are published. */
#define STEPS_FIRST 32
#define PREPARE_STEP 128
#define TAKE_STEP 512
#define TAKE_TRIES 3 /* as nodes change while jobs are added; then they are added at once */
#define DECIDE_STEP 8192
#define CARRY_STEP 8
#define TELL_STEP 64
/* Where this many jobs are pending, a cycle after which nothing came but jobs examines these alone:
 * left_out.h. Time changes the order of the others: it is seen to at this interval. */
#define LEAVE_LEAST 1024
#define LEAVE_NEW_MOST 4096 /* new jobs, which are added in one turn */
#define WHOLE_EVERY_US (10 * GPUQ_US_PER_S)

/* The present stage. */
enum at { AT_REST, PREPARE, TAKE, SEAL, DECIDE, CARRY, TELL };

struct schedule {
	struct journal *j;
	struct loop *l;
	struct loop_timer *soon, *later, *unblock, *others;
	int64_t unblock_us; /* when `unblock` fires; wall clock */
	int64_t first_kick_us; /* of the pending cycle; monotonic */
	bool ready;
	bool site_told; /* faults of the site have been logged */
	struct gpuq_arena mem;
	uint32_t alike_most;
	bool mortals; /* some job may end while pending */
	/* The cycle in progress, and the publishing of its results after it was carried out. */
	enum at at;
	bool acts; /* it will be carried out */
	bool carrying; /* the current event is its own */
	bool site_changed; /* since it was begun */
	bool again; /* an event that the next cycle must see */
	int64_t now_us; /* of its snapshot; ledger */
	uint64_t n_node_changes; /* of the model, when jobs began to be added */
	int n_tries;
	int64_t took_us;
	uint32_t most; /* entries of jobs that are alike */
	struct snapshot_early *early;
	struct snapshot *sn;
	struct gpuq_buf packed; /* of it, if cycles are recorded */
	struct since since;
	struct sched_run *run;
	struct plan plan;
	struct carry_at carried;
	struct tell tell;
	struct loop_work *work;
	/* The jobs that the next cycle may leave out. */
	struct left_out left;
	bool part; /* the cycle in progress leaves out the settled jobs */
	bool leaves; /* the last one has reported all jobs, and decided nothing */
	bool changed; /* something else than new jobs has happened since its snapshot */
	uint32_t n_new; /* jobs submitted or released since then */
	int64_t whole_us, wake_us; /* of the last one for all jobs: when, and until; ledger */
	struct spool *record_to; /* NULL = cycles are not recorded */
	uint64_t n_cycles;
	int64_t last_end_us, last_took_us; /* of the last cycle; monotonic */
	schedule_plan_fn on_plan;
	void *on_plan_arg;
	struct schedule_stats stats;
};

static void fire_later(void *arg);
static void kick(struct schedule *s);

static void tell_shares(struct schedule *s, const struct snapshot *sn, const struct plan *p)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);

	for (uint32_t q = 0; p->fair_share && q < sn->n_queues; q++) {
		const int64_t *fair = plan_fair_told(sn, p, q, &mem);
		struct event ev = { .type = EV_QUEUE_SHARE };

		ev.share.name = sn->queues[q].name;
		for (uint32_t f = 0; fair && f < sn->n_flavors; f++)
			ev.share.fair_milli += fair[f];
		if (fair)
			journal_apply(s->j, &ev, NULL);
	}
	gpuq_arena_done(&mem);
}

static void end(struct schedule *s, const struct job *j, enum gpuq_job_state state,
		const char *message)
{
	struct event ev = { .type = EV_JOB_ENDED, .job = j->key };

	ev.ended.exit_code = -1;
	ev.ended.state = state;
	ev.ended.message = message;
	journal_apply(s->j, &ev, NULL);
}

static bool is_mortal(const struct job *j)
{
	return j->wish->deadline_us || j->wish->kill_on_invalid_dep;
}

/* End jobs that can never start, where their owners requested that. Returns whether there may be
 * more of them: each end requests the next cycle. */
static bool end_hopeless(struct schedule *s, int64_t now)
{
	const struct model *m = journal_model(s->j);
	const uint32_t n_before = m->n_jobs_by_state[GPUQ_JOB_PENDING];

	if (!s->mortals)
		return false;
	s->mortals = false;
	job_each(m, j) {
		bool never = false;

		if (j->state != GPUQ_JOB_PENDING || !is_mortal(j))
			continue;
		s->mortals = true;
		if (n_before - m->n_jobs_by_state[GPUQ_JOB_PENDING] >= END_MOST)
			return true;
		if (j->wish->deadline_us && clock_job_deadline_us(m, j) <= now) {
			end(s, j, GPUQ_JOB_DEADLINE, "its deadline passed while it was pending");
			continue;
		}
		if (j->wish->kill_on_invalid_dep)
			deps_are_awaited(j, now, &never);
		if (never)
			end(s, j, GPUQ_JOB_CANCELLED, "its dependency can no longer be met");
	}
	return false;
}

/* Return when a node that is avoided, or short of a resource, or a pool whose requests failed may be
 * tried again, which the core does not know. */
static int64_t next_backoff_end(const struct model *m, int64_t now)
{
	int64_t next = GPUQ_UNLIMITED;

	node_each(m, n) {
		const int64_t short_until = node_lacks_until(n, now);

		if (n->backoff_until_us > now && n->backoff_until_us < next)
			next = n->backoff_until_us;
		next = short_until < next ? short_until : next;
	}
	for (const struct ask_pool *p = m->ask_pools; p; p = p->hh.next)
		if (p->closed_until_us > now && p->closed_until_us < next)
			next = p->closed_until_us;
	return next;
}

/* Record snapshot and plan, before any of the plan happens. A directory that cannot be written is
 * reported once. */
static void record(struct schedule *s, const struct snapshot *sn, const struct gpuq_buf *packed,
		   const struct plan *plan)
{
	struct gpuq_buf text = GPUQ_BUF_INIT, bytes = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc;

	cycle_text(sn, plan, &text);
	cycle_record_write(&bytes, PACKAGE_VERSION, s->n_cycles, packed, gpuq_buf_str(&text),
			   text.len);
	rc = bytes.failed || text.failed ? gpuq_no_memory(&err)
					 : spool_add(s->record_to, bytes.data, bytes.len, &err);
	if (rc < 0) {
		log_err("schedule.record", "error=%s: cycles are not recorded any more",
			LOGS(err.text));
		s->record_to = NULL;
	}
	gpuq_buf_done(&text);
	gpuq_buf_done(&bytes);
}

static void count(struct schedule *s, const struct snapshot *sn, const struct plan *p, int64_t wake)
{
	struct schedule_stats *t = &s->stats;

	t->n_reserved = 0;
	for (uint32_t i = 0; i < p->n_actions; i++) {
		const enum plan_kind kind = p->actions[i].kind;

		t->n_places += s->ready && kind == PLAN_PLACE;
		t->n_evictions += s->ready &&
				  (kind == PLAN_EVICT || kind == PLAN_SHRINK || kind == PLAN_MOVE);
		t->n_reserved += kind == PLAN_RESERVE;
	}
	t->n_cut_short += p->cut_short;
	t->last_steps = p->steps;
	t->n_jobs = 0;
	for (uint32_t i = 0; i < sn->n_jobs; i++)
		t->n_jobs += sn->jobs[i].alike ? sn->jobs[i].n_waiting : 1;
	t->wake_us = wake;
}

/* Drop all that is left of the cycle. */
static void forget(struct schedule *s)
{
	snapshot_early_drop(s->early);
	s->early = NULL;
	sched_drop(s->run);
	s->run = NULL;
	since_end(&s->since);
	snapshot_free(s->sn);
	s->sn = NULL;
	gpuq_buf_done(&s->packed);
	gpuq_arena_reset(&s->mem);
	s->at = AT_REST;
	s->site_changed = false;
}

/* Abandon the cycle in progress, or the publishing of its results. */
static void stop(struct schedule *s)
{
	loop_work_cancel(s->work);
	s->work = NULL;
	forget(s);
}

static bool is_under_way(const struct schedule *s)
{
	return s->at != AT_REST && s->at != TELL;
}

static bool failed(struct schedule *s, const struct gpuq_err *err)
{
	log_err("schedule.cycle", "error=%s", LOGS(err->text));
	s->stats.n_failed++;
	forget(s);
	return false;
}

/* Begin to take the snapshot of the present: changes from now on are noted. */
static void take_begin(struct schedule *s)
{
	loop_enter(s->l, "schedule.snapshot");
	s->now_us = loop_now_us(s->l);
	s->acts = s->ready;
	s->again = s->changed = false;
	s->n_new = 0;
	s->n_node_changes = journal_model(s->j)->n_node_changes;
	since_begin(&s->since, s->j);
}

/* Take it as a whole, in this turn. */
static bool take_at_once(struct schedule *s)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc;

	snapshot_early_drop(s->early);
	s->early = NULL;
	take_begin(s);
	rc = s->part ? snapshot_take_part(journal_model(s->j), s->now_us, s->most, &s->sn, &err)
		     : snapshot_take_few(journal_model(s->j), s->now_us, s->most,
					 s->record_to ? &s->packed : NULL, &s->sn, &err);
	if (rc < 0)
		return failed(s, &err);
	s->at = SEAL;
	return true;
}

/* Take all but jobs. */
static bool take(struct schedule *s)
{
	take_begin(s);
	if (s->n_tries++ == TAKE_TRIES || !snapshot_early_jobs_begin(s->early, s->now_us, s->most))
		return take_at_once(s);
	s->at = TAKE;
	return true;
}

/* True if only new jobs need be examined. */
static bool may_leave_out(const struct schedule *s)
{
	const int64_t now = loop_now_us(s->l);

	return s->leaves && !s->changed && s->ready && !s->record_to &&
	       s->n_new <= LEAVE_NEW_MOST && now < s->wake_us && now >= s->whole_us &&
	       now - s->whole_us < WHOLE_EVERY_US;
}

/* Begin the snapshot, or take it at once. */
static bool prepare(struct schedule *s)
{
	s->part = may_leave_out(s);
	s->leaves = false;
	s->early = s->part ? NULL : snapshot_early_begin(journal_model(s->j));
	if (!s->early)
		return take_at_once(s);
	s->at = PREPARE;
	return true;
}

/* ---- stages done in steps: each returns whether there is more to do ---- */

static bool prepare_on(struct schedule *s)
{
	loop_enter(s->l, "schedule.prepare");
	return !snapshot_early_go_on(s->early, PREPARE_STEP) || take(s);
}

static bool take_on(struct schedule *s)
{
	struct snapshot_early *early = s->early;
	struct gpuq_err err = GPUQ_ERR_INIT;

	loop_enter(s->l, "schedule.take");
	if (journal_model(s->j)->n_node_changes != s->n_node_changes) {
		forget(s);
		return prepare(s);
	}
	if (!snapshot_early_jobs(early, TAKE_STEP))
		return true;
	loop_enter(s->l, "schedule.snapshot");
	s->early = NULL;
	if (snapshot_take_late(early, s->record_to ? &s->packed : NULL, &s->sn, &err) < 0)
		return failed(s, &err);
	s->at = SEAL;
	return true;
}

static bool seal_on(struct schedule *s)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool more;
	int rc;

	loop_enter(s->l, "schedule.snapshot");
	rc = snapshot_seal_step(s->sn, &more, &err);
	if (rc == 0 && more)
		return true;
	if (rc == 0 && !since_sealed(&s->since, s->sn))
		rc = gpuq_no_memory(&err);
	if (s->part)
		s->sn->left_out = s->left.wanted;
	if (rc == 0)
		rc = sched_begin(s->sn, &s->mem, &s->run, &err);
	if (rc < 0)
		return failed(s, &err);
	s->at = DECIDE;
	return true;
}

static bool decided(struct schedule *s)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const int rc = sched_end(s->run, &s->plan, &err);

	s->run = NULL;
	if (rc < 0)
		return failed(s, &err);
	if (s->part && !left_out_confirmed(&s->left, s->sn, &s->plan)) {
		forget(s);
		return prepare(s);
	}
	if (!plan_few_enough(s->sn, &s->plan)) {
		forget(s);
		s->most *= ALIKE_FACTOR;
		return prepare(s);
	}
	s->most -= s->most / ALIKE_LESS;
	s->alike_most = s->most > ALIKE_LEAST ? s->most : ALIKE_LEAST;
	s->n_cycles++;
	if (s->record_to)
		record(s, s->sn, &s->packed, &s->plan);
	gpuq_buf_done(&s->packed);
	if (s->acts && !s->site_told)
		s->site_told = quota_warn(s->sn);
	s->carried = (struct carry_at){ 0 };
	s->at = CARRY;
	return true;
}

static bool decide_on(struct schedule *s)
{
	loop_enter(s->l, "schedule.decide");
	return sched_go_on(s->run, DECIDE_STEP) || decided(s);
}

/* Return when time alone may change something. */
static int64_t next_wake(struct schedule *s)
{
	const struct model *m = journal_model(s->j);
	const int64_t avoided = snapshot_avoided_end(m, s->now_us);
	int64_t wake = next_backoff_end(m, s->now_us);

	wake = avoided < wake ? avoided : wake;
	if (s->plan.wake_us > s->now_us && s->plan.wake_us < wake)
		wake = s->plan.wake_us;
	return wake;
}

/* Note what the next cycle may leave out, once all jobs have been reported. */
static void leave_out(struct schedule *s)
{
	if (!s->part)
		s->whole_us = s->now_us;
	else if (s->wake_us < s->plan.wake_us)
		s->plan.wake_us = s->wake_us; /* for the sake of the others */
	s->wake_us = s->plan.wake_us;
	left_out_done(&s->left);
	s->leaves = s->acts && (s->part || s->sn->n_jobs >= LEAVE_LEAST) &&
		    left_out_take(&s->left, s->sn, &s->plan);
}

static bool carried_out(struct schedule *s)
{
	int64_t wake, now = loop_now_us(s->l);

	leave_out(s);
	wake = next_wake(s);
	s->stats.n_dropped += s->carried.n_dropped;
	s->again |= s->carried.n_dropped > 0;
	since_end(&s->since);
	if (s->acts && s->on_plan && !s->part)
		s->on_plan(s->on_plan_arg, s->sn, &s->plan);
	tell_shares(s, s->sn, &s->plan);
	loop_cancel(s->later);
	s->later = NULL;
	if (wake != GPUQ_UNLIMITED)
		s->later = loop_after(s->l, wake > now ? wake - now + 1000 : 1000, fire_later, s);
	count(s, s->sn, &s->plan, wake);
	loop_enter(s->l, "schedule.tell");
	tell_begin(&s->tell, s->j, s->sn, &s->plan, s->part, &s->mem);
	s->at = TELL;
	return true;
}

static bool carry_on(struct schedule *s)
{
	bool all;

	loop_enter(s->l, "schedule.carry");
	s->carrying = true;
	all = !s->acts || carry_out(s->j, &s->since, &s->plan, &s->carried, CARRY_STEP, &s->mem);
	/* A node that came or went since the snapshot may make a request needless. */
	if (all && s->acts && !s->part && journal_model(s->j)->n_node_changes == s->n_node_changes)
		carry_out_asks(s->j, &s->since, &s->plan);
	else if (all && s->acts && (s->plan.n_asks || s->plan.n_cuts))
		s->again = true;
	s->carrying = false;
	return !all || carried_out(s);
}

static bool tell_on(struct schedule *s)
{
	const bool told = tell_some(&s->tell, TELL_STEP);

	if (told)
		forget(s);
	return !told;
}

static void count_time(struct schedule *s)
{
	s->last_end_us = loop_clock_us();
	s->last_took_us = s->took_us;
	s->stats.last_us = s->took_us;
	s->stats.sum_us += s->took_us;
	if (s->took_us > s->stats.most_us)
		s->stats.most_us = s->took_us;
	s->stats.last_at_us = loop_now_us(s->l);
}

static bool step(struct schedule *s)
{
	static bool (*const parts[])(struct schedule *) = {
		[PREPARE] = prepare_on, [TAKE] = take_on,   [SEAL] = seal_on,
		[DECIDE] = decide_on,   [CARRY] = carry_on,
	};
	const int64_t start = loop_clock_us();
	bool more;

	if (s->at == TELL)
		return tell_on(s);
	/* The snapshot is outdated as a whole. */
	if (journal_read_only(s->j) || s->since.all || s->site_changed) {
		forget(s);
		schedule_kick(s);
		return false;
	}
	more = parts[s->at](s);
	s->took_us += loop_clock_us() - start;
	if (is_under_way(s))
		return more;
	count_time(s);
	if (s->again)
		kick(s);
	return more;
}

/* Continue a long cycle over several turns, so that nothing waits for all of it. */
static bool go_on(void *arg)
{
	struct schedule *s = arg;
	const bool more = step(s);

	if (!more)
		s->work = NULL;
	return more;
}

static void cycle(struct schedule *s)
{
	const int64_t start = loop_clock_us();
	bool more = false;

	s->leaves &= s->at == AT_REST; /* else some jobs have not been told */
	stop(s);
	if (!journal_read_only(s->j) &&
	    (model_is_fenced(journal_model(s->j)) || !end_hopeless(s, loop_now_us(s->l)))) {
		carry_out_renounce_lost(s->j);
		census_watch(s->j);
		s->most = s->alike_most;
		s->n_tries = 0;
		s->again = false;
		more = prepare(s);
	}
	s->took_us = loop_clock_us() - start;
	if (!more)
		count_time(s);
	for (int i = 0; more && i < STEPS_FIRST; i++)
		more = step(s);
	if (more)
		s->work = loop_work_as(s->l, "schedule", go_on, s);
}

static void fire_soon(void *arg)
{
	struct schedule *s = arg;
	const char *before = loop_enter(s->l, LOOP_HERE);

	s->soon = NULL;
	s->first_kick_us = 0;
	cycle(s);
	loop_leave(s->l, before);
}

static void fire_later(void *arg)
{
	struct schedule *s = arg;

	s->later = NULL;
	schedule_kick(s);
}

/* Decide soon. */
static void kick(struct schedule *s)
{
	int64_t now = loop_mono_us(s->l), delay = QUIET_US;

	if (is_under_way(s)) {
		s->again = true;
		return;
	}
	if (!s->first_kick_us)
		s->first_kick_us = now;
	else if (now + delay > s->first_kick_us + AT_MOST_US)
		return; /* the timer that is set fires soon enough */
	if (s->last_end_us + REST_FACTOR * s->last_took_us > now + delay)
		delay = s->last_end_us + REST_FACTOR * s->last_took_us - now;
	loop_cancel(s->soon);
	s->soon = loop_after(s->l, delay, fire_soon, s);
}

void schedule_kick(struct schedule *s)
{
	s->changed = true;
	kick(s);
}

static void fire_unblock(void *arg);

static void unblock_at(struct schedule *s, int64_t until_us)
{
	int64_t now = loop_now_us(s->l);

	if (s->unblock && s->unblock_us <= until_us)
		return;
	loop_cancel(s->unblock);
	s->unblock_us = until_us;
	s->unblock = loop_after(s->l, until_us > now ? until_us - now + 1000 : 0, fire_unblock, s);
}

/* Retry a job that was blocked from outside; then set the timer for the next one. */
static void fire_unblock(void *arg)
{
	struct schedule *s = arg;
	int64_t now = loop_now_us(s->l), next = GPUQ_UNLIMITED;

	s->unblock = NULL;
	job_each(journal_model(s->j), j)
		if (j->life->blocked && j->life->blocked->until_us > now &&
		    j->life->blocked->until_us < next)
			next = j->life->blocked->until_us;
	if (next != GPUQ_UNLIMITED)
		unblock_at(s, next);
	schedule_kick(s);
}

void schedule_on_plan(struct schedule *s, schedule_plan_fn fn, void *arg)
{
	s->on_plan = fn;
	s->on_plan_arg = arg;
}

void schedule_stats(const struct schedule *s, struct schedule_stats *out)
{
	*out = s->stats;
	out->n_cycles = s->n_cycles;
}

void schedule_record(struct schedule *s, struct spool *to)
{
	s->record_to = to;
}

bool schedule_is_ready(const struct schedule *s)
{
	return s->ready;
}

void schedule_ready(struct schedule *s, bool ready)
{
	s->ready = ready;
	if (is_under_way(s))
		stop(s);
	if (ready)
		schedule_kick(s);
}

static void fire_others(void *arg)
{
	struct schedule *s = arg;

	s->others = NULL;
	schedule_kick(s);
}

/* While no job is pending, foreign pods can only make room for elastic ones: that may wait. */
static void kick_for_others(struct schedule *s)
{
	if (!s->others)
		s->others = loop_after(s->l, OTHERS_US, fire_others, s);
}

/* Note a job that is to be evaluated. One that was released while a cycle is reported may be told that it
 * is held. */
static void note_new(struct schedule *s, const struct event *ev)
{
	const struct job *j = model_find_job(journal_model(s->j), ev->job);

	s->n_new++;
	s->mortals |= j && is_mortal(j);
	if (j)
		equivalent_settle(j, false);
	s->changed |= ev->type == EV_JOB_RELEASED && s->at != AT_REST;
	kick(s);
}

/* True if a job that could not start cannot start after this, either. */
static bool releases_nothing(enum event_type type)
{
	return type == EV_JOB_SUBMITTED || type == EV_JOB_RELEASED || type == EV_JOB_REASONS ||
	       type == EV_JOB_FRAGMENTED || type == EV_QUEUE_SHARE || type == EV_KEYS_EXPIRED ||
	       type == EV_AUDITED || type == EV_AUDIT_DROPPED;
}

static void on_event(void *arg, const struct event *ev)
{
	struct schedule *s = arg;
	const struct job *j;

	since_note(&s->since, ev, s->carrying);
	s->changed |= !releases_nothing(ev->type);
	switch (ev->type) {
	case EV_JOB_SUBMITTED:
	case EV_JOB_RELEASED:
		note_new(s, ev);
		return;
	case EV_JOB_REASONS:
	case EV_JOB_FRAGMENTED:
	case EV_QUEUE_SHARE:
	case EV_POD_CREATED:
	case EV_POD_STARTED:
	case EV_POD_AMOUNTS:
	case EV_JOB_FILLED:
	case EV_POD_GONE:
	case EV_JOB_PLACED:
	case EV_JOB_NOMINATED:
	case EV_JOB_GROWN:
	case EV_KEYS_EXPIRED:
	case EV_AUDITED:
	case EV_AUDIT_DROPPED:
	case EV_JOB_NOTHING_BESIDE:
	case EV_JOB_TROUBLE:
		return; /* these make nothing possible */
	case EV_FOREIGN_SEEN:
	case EV_FOREIGN_GONE:
		if (journal_model(s->j)->n_jobs_by_state[GPUQ_JOB_PENDING] > 0)
			schedule_kick(s);
		else
			kick_for_others(s);
		return;
	case EV_POD_LEAVING:
		if (!ev->told) /* signalled by gpuqd: known to leave */
			schedule_kick(s);
		return;
	case EV_SITE_APPLIED:
	case EV_DEFAULT_RULED:
		s->site_told = false;
		if (s->at == PREPARE)
			s->site_changed = true;
		schedule_kick(s);
		return;
	case EV_JOB_BLOCKED:
		if (ev->blocked.reason.code != GPUQ_R_NONE &&
		    ev->blocked.until_us != GPUQ_UNLIMITED)
			unblock_at(s, ev->blocked.until_us);
		schedule_kick(s);
		return;
	default:
		j = ev->job.id ? model_find_job(journal_model(s->j), ev->job) : NULL;
		s->mortals |= j && is_mortal(j);
		schedule_kick(s);
	}
}

int schedule_new(struct journal *j, struct schedule **out, struct gpuq_err *err)
{
	struct schedule *s = calloc(1, sizeof(*s));

	if (!s)
		return gpuq_no_memory(err);
	s->j = j;
	s->l = journal_loop(j);
	s->alike_most = ALIKE_LEAST;
	s->mortals = true; /* as far as is known */
	/* Determined now, so that the first cycle need not. */
	job_each(journal_model(j), one)
		if (one->state == GPUQ_JOB_PENDING)
			equivalent_of(journal_model(j), one);
	journal_subscribe(j, on_event, s);
	*out = s;
	return 0;
}

void schedule_free(struct schedule *s)
{
	if (!s)
		return;
	loop_cancel(s->soon);
	loop_cancel(s->others);
	loop_cancel(s->later);
	loop_cancel(s->unblock);
	stop(s);
	left_out_done(&s->left);
	gpuq_arena_done(&s->mem);
	free(s);
}
