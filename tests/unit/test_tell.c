/* Reports of a cycle to pending jobs: events for changes, and for nothing else. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/sched.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "gpuqd/flow/publish.h"
#include "tests/unit/journal_rig.h"
#include "gpuqd/state/record/model_apply.h"

static struct journal_rig rig;
static uint32_t n_told;

static void count(void *arg, const struct event *ev)
{
	n_told += ev->type == EV_JOB_REASONS;
}

static void setup(void)
{
	journal_rig_open(&rig, fresh(2, 2));
	journal_subscribe(rig.journal, count, NULL);
}

static void teardown(void)
{
	journal_rig_close(&rig);
}

TestSuite(tell, .init = setup, .fini = teardown);

/* A cycle at that time of which nothing is carried out; how many were told something. */
static uint32_t cycle(int64_t now_us)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s;
	struct plan p;

	n_told = 0;
	cr_assert_eq(snapshot_take(rig.model, now_us, &s, &err), 0, "%s", err.text);
	s->config.consolidation = false; /* what waits for others is another matter */
	cr_assert_eq(sched_cycle(s, &mem, &p, &err), 0, "%s", err.text);
	tell_jobs(rig.journal, s, &p, &mem);
	snapshot_free(s);
	gpuq_arena_done(&mem);
	return n_told;
}

static const struct job *job(uint32_t id)
{
	const struct job *j = model_find_job(rig.model, (struct job_key){ id, -1 });

	cr_assert_not_null(j);
	return j;
}

Test(tell, only_what_is_news)
{
	/* Three that no node could ever hold, and one that could start. */
	for (int i = 0; i < 3; i++)
		submit_text(rig.model, "{command: [true], gpus: 3}", NULL);
	submit_text(rig.model, "{command: [true], gpus: 1}", NULL);
	cr_expect_eq(cycle(T0 + GPUQ_US_PER_S), 3);
	for (uint32_t id = 1; id <= 3; id++) {
		cr_assert_eq(job(id)->outlook->n_reasons, 1);
		cr_expect_eq(job(id)->outlook->reasons[0].code, GPUQ_R_UNSATISFIABLE);
		cr_expect(job(id)->outlook->ranked);
	}
	cr_expect_eq(job(4)->outlook->n_reasons, 0);
	cr_expect_eq(cycle(T0 + 2 * GPUQ_US_PER_S), 0, "nothing has changed");
	/* Points for waiting are whole: at 1,000 a day the first one comes within minutes. */
	cr_expect_eq(cycle(T0 + 600 * GPUQ_US_PER_S), 3);
	cr_expect_gt(job(1)->outlook->terms.age, 0);
	cr_expect_eq(job(1)->outlook->terms.total, job(1)->outlook->terms.total);
}

Test(tell, one_that_changes_among_many)
{
	struct event hold = { .type = EV_JOB_HELD, .job = { 2, -1 }, .at_us = T0 };
	struct gpuq_err err = GPUQ_ERR_INIT;

	for (int i = 0; i < 5; i++)
		submit_text(rig.model, "{command: [true], gpus: 3}", NULL);
	cr_expect_eq(cycle(T0 + GPUQ_US_PER_S), 5);
	cr_assert_eq(journal_apply(rig.journal, &hold, &err), 0, "%s", err.text);
	cr_expect_eq(cycle(T0 + GPUQ_US_PER_S), 1);
	cr_expect_eq(job(2)->outlook->reasons[0].code, GPUQ_R_HELD_USER);
	cr_expect_eq(job(3)->outlook->reasons[0].code, GPUQ_R_UNSATISFIABLE);
}

static int64_t fragmented_us(void)
{
	int64_t us = 0;

	for (const struct usage *u = rig.model->usages; u; u = u->hh.next)
		us += u->us[CHARGE_FRAGMENTED];
	return us;
}

static void at(enum event_type type, uint32_t id, int64_t at_us, int64_t milli)
{
	struct event ev = { .type = type, .job = { id, -1 }, .at_us = at_us };
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (type == EV_JOB_FRAGMENTED) {
		ev.fragmented.flavor = "default";
		ev.fragmented.milli = milli;
	} else {
		ev.ended.state = GPUQ_JOB_CANCELLED;
	}
	cr_assert_eq(model_apply(rig.model, &ev, &err), 0, "%s", err.text);
}

/* One device is free on each of two nodes, and two jobs request both on one. */
static void take_apart(void)
{
	for (int i = 0; i < 2; i++)
		submit_text(rig.model, "{command: [true], gpus: 1}", NULL);
	cr_assert_eq(place(rig.model, (struct job_key){ 1, -1 }, 1, "n0", 0), 0);
	cr_assert_eq(place(rig.model, (struct job_key){ 2, -1 }, 1, "n1", 0), 0);
	for (int i = 0; i < 2; i++)
		submit_text(rig.model, "{command: [true], gpus: 2}", NULL);
}

Test(tell, devices_apart_are_charged_once)
{
	take_apart();
	cycle(T0 + GPUQ_US_PER_S);
	cr_expect_eq(job(3)->outlook->reasons[0].code, GPUQ_R_FRAGMENTED);
	cr_expect_eq(job(4)->outlook->reasons[0].code, GPUQ_R_FRAGMENTED);
	cr_assert_not_null(job(3)->life->apart, "it has waited longer");
	cr_expect_null(job(4)->life->apart);
	cr_expect_str_eq(job(3)->life->apart->flavor, "default");
	cr_expect_eq(job(3)->life->apart->milli, 2000);
	/* Once it has ended, the next one is charged; once there is room, none is. */
	at(EV_JOB_ENDED, 3, T0 + 2 * GPUQ_US_PER_S, 0);
	cycle(T0 + 2 * GPUQ_US_PER_S);
	cr_assert_not_null(job(4)->life->apart);
	at(EV_JOB_ENDED, 4, T0 + 3 * GPUQ_US_PER_S, 0);
	cycle(T0 + 3 * GPUQ_US_PER_S);
	cr_expect_eq(rig.model->n_apart, 0);
}

Test(tell, what_lay_apart_is_charged_as_long_as_it_waited)
{
	take_apart();
	at(EV_JOB_FRAGMENTED, 3, T0 + GPUQ_US_PER_S, 2000);
	at(EV_JOB_FRAGMENTED, 3, T0 + 4 * GPUQ_US_PER_S, 0);
	cr_expect_eq(fragmented_us(), 6 * GPUQ_US_PER_S);
	at(EV_JOB_FRAGMENTED, 3, T0 + 5 * GPUQ_US_PER_S, 1000);
	at(EV_JOB_ENDED, 3, T0 + 6 * GPUQ_US_PER_S, 0);
	cr_expect_eq(fragmented_us(), 7 * GPUQ_US_PER_S);
	cr_expect_eq(rig.model->n_apart, 0);
}

/* ---- jobs that are alike ---- */

static uint32_t next_of(uint64_t *seed, uint32_t n)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (uint32_t)(*seed % n);
}

/* Some jobs more of a few kinds; some that wait are held, let go or cancelled. */
static void happen(uint64_t *seed, int64_t now_us)
{
	static const char *const kinds[] = {
		"{command: [true], gpus: 1}",
		"{command: [true], gpus: 2}",
		"{command: [true], gpus: 3}",
		"{command: [true], gpus: 1, nice: 5}",
		"{command: [true], gpus: 1, hold: true}",
		"{command: [true], gpus: 3, array: 0-3}",
		"{command: [true], gpus: 2, depends: [afterok:1]}",
	};
	const uint32_t n = next_of(seed, 12);

	for (uint32_t i = 0; i < n; i++) /* what depends on a job that is gone is refused */
		submit_text(rig.model, kinds[next_of(seed, sizeof(kinds) / sizeof(kinds[0]))],
			    NULL);
	for (int i = 0; i < 4; i++) {
		static const enum event_type types[] = { EV_JOB_HELD, EV_JOB_RELEASED,
							 EV_JOB_CANCEL_ASKED };
		struct event ev = { .type = types[next_of(seed, 7) % 3],
				    .at_us = now_us,
				    .job = { 1 + next_of(seed, rig.model->next_job_id), -1 } };

		journal_apply(rig.journal, &ev, NULL); /* refused where there is no such job */
	}
	cr_assert(equivalent_holds(rig.model));
}

static void start_first(const struct snapshot *s, const struct plan *p)
{
	for (uint32_t i = 0; i < p->n_actions; i++) {
		const struct plan_action *a = &p->actions[i];
		const struct plan_pod *pod = &p->pods[a->pod_first];

		if (a->kind != PLAN_PLACE || a->key.index >= 0 || pod->n_devices != 1)
			continue;
		cr_assert_eq(place(rig.model, (struct job_key){ a->key.id, -1 }, 1,
				   s->nodes[pod->node].name,
				   (uint16_t)p->devices[pod->device_first]),
			     0);
		return;
	}
}

static void expect_same(const struct plan *x, const struct plan *y)
{
	cr_assert_eq(x->n_actions, y->n_actions);
	for (uint32_t i = 0; i < x->n_actions; i++) {
		const struct plan_action *a = &x->actions[i], *b = &y->actions[i];

		cr_assert_eq(a->kind, b->kind);
		cr_assert_eq(a->key.id, b->key.id);
		cr_assert_eq(a->key.index, b->key.index);
		cr_assert_eq(a->start_us, b->start_us);
		cr_assert_eq(a->n_pods, b->n_pods);
		for (uint32_t k = 0; k < a->n_pods; k++)
			cr_assert_eq(x->pods[a->pod_first + k].node,
				     y->pods[b->pod_first + k].node);
	}
}

static uint32_t n_waiting(const struct snapshot *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_jobs; i++)
		n += s->jobs[i].n_waiting;
	return n;
}

/* In a snapshot for a query the job that it is about is separate, and no job is missing. */
static void ask(uint64_t *seed, int64_t now_us, const struct snapshot *all)
{
	const struct snap_job *about = &all->jobs[next_of(seed, all->n_jobs)];
	const struct job_key key = { about->key.id, about->key.index };
	const struct start_question q = { .jobs = &key, .n_jobs = 1, .most = 1 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s;
	uint32_t at;

	cr_assert_eq(snapshot_take_question(rig.model, now_us, &q, NULL, &s, &err), 0, "%s",
		     err.text);
	at = snapshot_find_job(s, about->key);
	cr_assert_neq(at, SNAP_NONE);
	cr_assert(!s->jobs[at].alike);
	cr_assert_eq(s->jobs[at].n_ranges, about->n_ranges);
	cr_assert_eq(n_waiting(s), n_waiting(all));
	cr_assert_leq(s->n_jobs, all->n_jobs);
	snapshot_free(s);
}

/* A key of likeness costs memory: the only job with its request has none, until another requests
 * the same. */
Test(tell, the_only_job_with_its_request_needs_no_key)
{
	const uint32_t first = rig.model->next_job_id;

	submit_text(rig.model, "{command: [true], gpus: 1, cpus: 3}", NULL);
	submit_text(rig.model, "{command: [true], gpus: 1, cpus: 4}", NULL);
	cr_expect_null(equivalent_of(rig.model, job(first)));
	submit_text(rig.model, "{command: [false], gpus: 1, cpus: 3}", NULL);
	cr_assert_not_null(equivalent_of(rig.model, job(first)));
	cr_expect_eq(equivalent_of(rig.model, job(first)),
		     equivalent_of(rig.model, job(first + 2)));
	cr_expect(equivalent_holds(rig.model));
}

/* A plan on few of those that are alike is the plan on all of them, and once it has been
 * told, in several bites, there is nothing that the other could tell. */
Test(tell, a_few_of_those_that_are_alike_are_enough)
{
	uint64_t seed = 88172645463325252;
	uint32_t n_shared = 0;

	for (int round = 0; round < 150; round++) {
		const int64_t now = T0 + (2 + round) * 60 * GPUQ_US_PER_S;
		struct gpuq_arena mem = GPUQ_ARENA_INIT(0), all_mem = GPUQ_ARENA_INIT(0);
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct snapshot *few, *all;
		struct plan p, all_p;
		struct tell t;

		happen(&seed, now);
		for (uint32_t most = next_of(&seed, 4);; most = most * 4 + 1) {
			cr_assert_eq(snapshot_take_few(rig.model, now, most, NULL, &few, &err), 0,
				     "%s", err.text);
			cr_assert_eq(sched_cycle(few, &mem, &p, &err), 0, "%s", err.text);
			if (plan_few_enough(few, &p))
				break;
			snapshot_free(few);
		}
		cr_assert(equivalent_holds(rig.model));
		cr_assert_eq(snapshot_take(rig.model, now, &all, &err), 0, "%s", err.text);
		cr_assert_eq(sched_cycle(all, &all_mem, &all_p, &err), 0, "%s", err.text);
		n_shared += few->n_jobs < all->n_jobs;
		expect_same(&p, &all_p);
		tell_begin(&t, rig.journal, few, &p, false, &mem);
		do
			ask(&seed, now, all); /* questions do not disturb it */
		while (!tell_some(&t, 1 + next_of(&seed, 7)));
		n_told = 0;
		tell_jobs(rig.journal, all, &all_p, &all_mem);
		cr_assert_eq(n_told, 0, "round %d: %u", round, n_told);
		if (round % 16 == 0)
			start_first(all, &all_p);
		snapshot_free(few);
		snapshot_free(all);
		gpuq_arena_done(&mem);
		gpuq_arena_done(&all_mem);
	}
	cr_expect_gt(n_shared, 100);
}
