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
#include "gpuqd/sched/sched.h"
#include "gpuqd/flow/carry_out.h"
#include "gpuqd/flow/census_watch.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/quota_warn.h"
#include "gpuqd/snapshot/snapshot_take_past.h"
#include "gpuqd/flow/publish.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "libgpuq/limits.h"

/* A burst of submissions is one decision; a single one does not wait noticeably. On a
 * large site a cycle takes its time: then it comes less often, so that the loop spends
 * at most a fifth of itself on it. */
#define QUIET_US 2000
#define AT_MOST_US 50000
#define REST_FACTOR 4
#define END_MOST 500 /* hopeless jobs, in one cycle */

/* Of waiting jobs that are alike so many are shown to a cycle one by one: more where they were
 * not enough, and less again after a while. */
#define ALIKE_LEAST 64
#define ALIKE_FACTOR 4
#define ALIKE_LESS 16 /* one part in so many, each cycle */
/* Jobs that are told what a cycle found out about them: in its own turn, and in one step of
 * those behind it. */
#define TELL_FIRST 1024
#define TELL_STEP 64

#define TELL "schedule.tell"

struct schedule {
	struct journal *j;
	struct loop *l;
	struct loop_timer *soon, *later, *unblock;
	int64_t unblock_us; /* when `unblock` fires; wall clock */
	int64_t first_kick_us; /* of the pending cycle; monotonic */
	bool ready;
	bool site_told; /* what is wrong with the site has been logged */
	struct gpuq_arena mem;
	uint32_t alike_most;
	bool mortals; /* some job may end while it waits */
	/* What jobs are being told of; sn NULL = all have been. */
	struct snapshot *sn;
	struct plan plan;
	struct tell tell;
	struct loop_work *telling;
	struct spool *record_to; /* NULL = cycles are not recorded */
	uint64_t n_cycles;
	int64_t last_end_us, last_took_us; /* of the last cycle; monotonic */
	schedule_plan_fn on_plan;
	void *on_plan_arg;
	struct schedule_stats stats;
};

static void fire_later(void *arg);

static void tell_shares(struct schedule *s, const struct snapshot *sn, const struct plan *p)
{
	for (uint32_t q = 0; p->fair_share && q < sn->n_queues; q++) {
		struct event ev = { .type = EV_QUEUE_SHARE };

		ev.share.name = sn->queues[q].name;
		for (uint32_t f = 0; f < sn->n_flavors; f++)
			ev.share.fair_milli += p->fair_share[(size_t)q * sn->n_res + f];
		journal_apply(s->j, &ev, NULL);
	}
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

/* What can never start ends, where its owner asked for that. Returns whether there may be more
 * of them: each end asks for the next cycle. */
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

/* When a node that was left alone may be asked again, the core does not know. */
static int64_t next_backoff_end(const struct model *m, int64_t now)
{
	int64_t next = GPUQ_UNLIMITED;

	node_each(m, n)
		if (n->backoff_until_us > now && n->backoff_until_us < next)
			next = n->backoff_until_us;
	return next;
}

/* What it saw and what it decided, before anything of that happens. A folder that cannot
 * be written is told once. */
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

/* What is to be decided, and on what. */
static int decide(struct schedule *s, int64_t now, struct gpuq_buf *packed, struct snapshot **sn,
		  struct plan *plan, struct gpuq_err *err)
{
	const struct model *m = journal_model(s->j);
	uint32_t most = s->alike_most;

	for (;; most *= ALIKE_FACTOR) {
		int rc;

		loop_enter(s->l, "schedule.snapshot");
		rc = snapshot_take_few(m, now, most, packed, sn, err);
		loop_enter(s->l, "schedule.decide");
		if (rc == 0)
			rc = sched_cycle(*sn, &s->mem, plan, err);
		if (rc < 0 || plan_few_enough(*sn, plan)) {
			most -= most / ALIKE_LESS;
			s->alike_most = most > ALIKE_LEAST ? most : ALIKE_LEAST;
			return rc;
		}
		snapshot_free(*sn);
		*sn = NULL;
		gpuq_arena_reset(&s->mem);
		if (packed)
			gpuq_buf_clear(packed);
	}
}

static void stop_telling(struct schedule *s)
{
	loop_work_cancel(s->telling);
	s->telling = NULL;
	snapshot_free(s->sn);
	s->sn = NULL;
	gpuq_arena_reset(&s->mem);
}

/* A long line hears of the cycle in several turns, so that nobody waits for all of it. */
static bool go_on_telling(void *arg)
{
	struct schedule *s = arg;
	const bool told = tell_some(&s->tell, TELL_STEP);

	if (told)
		stop_telling(s);
	return !told;
}

static void cycle(struct schedule *s)
{
	const struct model *m = journal_model(s->j);
	int64_t now = loop_now_us(s->l), wake;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf packed = GPUQ_BUF_INIT;
	struct snapshot *sn = NULL;
	struct plan plan;
	int rc;

	stop_telling(s);
	if (journal_read_only(s->j))
		return;
	if (end_hopeless(s, now))
		return;
	carry_out_renounce_lost(s->j);
	census_watch(s->j);
	rc = decide(s, now, s->record_to ? &packed : NULL, &sn, &plan, &err);
	if (rc < 0) {
		log_err("schedule.cycle", "error=%s", LOGS(err.text));
		s->stats.n_failed++;
		snapshot_free(sn);
		gpuq_buf_done(&packed);
		gpuq_arena_reset(&s->mem);
		return;
	}
	s->n_cycles++;
	if (s->record_to)
		record(s, sn, &packed, &plan);
	gpuq_buf_done(&packed);
	if (s->ready && !s->site_told)
		s->site_told = quota_warn(sn);
	loop_enter(s->l, "schedule.carry");
	if (s->ready)
		carry_out(s->j, sn, &plan, &s->mem);
	if (s->ready && s->on_plan)
		s->on_plan(s->on_plan_arg, sn, &plan);
	tell_shares(s, sn, &plan);
	loop_cancel(s->later);
	s->later = NULL;
	wake = next_backoff_end(m, now);
	if (snapshot_avoided_end(m, now) < wake)
		wake = snapshot_avoided_end(m, now);
	if (plan.wake_us > now && plan.wake_us < wake)
		wake = plan.wake_us;
	if (wake != GPUQ_UNLIMITED)
		s->later = loop_after(s->l, wake - now + 1000, fire_later, s);
	count(s, sn, &plan, wake);
	s->sn = sn;
	s->plan = plan;
	loop_enter(s->l, TELL);
	tell_begin(&s->tell, s->j, s->sn, &s->plan, &s->mem);
	if (tell_some(&s->tell, TELL_FIRST))
		stop_telling(s);
	else
		s->telling = loop_work_as(s->l, TELL, go_on_telling, s);
}

static void fire_soon(void *arg)
{
	struct schedule *s = arg;

	int64_t start = loop_clock_us();
	const char *before = loop_enter(s->l, LOOP_HERE);

	s->soon = NULL;
	s->first_kick_us = 0;
	cycle(s);
	loop_leave(s->l, before);
	s->last_end_us = loop_clock_us();
	s->last_took_us = s->last_end_us - start;
	s->stats.last_us = s->last_took_us;
	s->stats.sum_us += s->last_took_us;
	if (s->last_took_us > s->stats.most_us)
		s->stats.most_us = s->last_took_us;
	s->stats.last_at_us = loop_now_us(s->l);
}

static void fire_later(void *arg)
{
	struct schedule *s = arg;

	s->later = NULL;
	schedule_kick(s);
}

void schedule_kick(struct schedule *s)
{
	int64_t now = loop_mono_us(s->l), delay = QUIET_US;

	if (!s->first_kick_us)
		s->first_kick_us = now;
	else if (now + delay > s->first_kick_us + AT_MOST_US)
		return; /* the timer that is set fires soon enough */
	if (s->last_end_us + REST_FACTOR * s->last_took_us > now + delay)
		delay = s->last_end_us + REST_FACTOR * s->last_took_us - now;
	loop_cancel(s->soon);
	s->soon = loop_after(s->l, delay, fire_soon, s);
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

/* Some job that something outside blocked may be tried again; then the next one. */
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

void schedule_ready(struct schedule *s, bool ready)
{
	s->ready = ready;
	if (ready)
		schedule_kick(s);
}

static void on_event(void *arg, const struct event *ev)
{
	struct schedule *s = arg;
	const struct job *j;

	switch (ev->type) {
	case EV_JOB_REASONS:
	case EV_JOB_FRAGMENTED:
	case EV_QUEUE_SHARE:
	case EV_POD_CREATED:
	case EV_POD_STARTED:
	case EV_POD_GONE:
	case EV_JOB_PLACED:
	case EV_JOB_NOMINATED:
	case EV_JOB_GROWN:
	case EV_KEYS_EXPIRED:
	case EV_AUDITED:
	case EV_AUDIT_DROPPED:
	case EV_JOB_NOTHING_BESIDE:
		return; /* nothing becomes possible by these */
	case EV_POD_LEAVING:
		if (!ev->told) /* those that we told are known to leave */
			schedule_kick(s);
		return;
	case EV_SITE_APPLIED:
		s->site_told = false;
		schedule_kick(s);
		return;
	case EV_JOB_BLOCKED:
		if (ev->blocked.reason.code != GPUQ_R_NONE)
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
	s->mortals = true; /* for all that is known */
	/* Found out now, so that the first cycle need not. */
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
	loop_cancel(s->later);
	loop_cancel(s->unblock);
	stop_telling(s);
	gpuq_arena_done(&s->mem);
	free(s);
}
