/* Cycles that go on over several turns of the loop, while things happen. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/spool.h"
#include "gpuqd/flow/schedule.h"
#include "gpuqd/sched/cycle_record.h"
#include "gpuqd/sched/sched.h"
#include "gpuqd/snapshot/snapshot_take.h"
#include "tests/unit/journal_rig.h"
#include "tests/unit/site_text.h"

#define NODES 800
#define DEVICES 8
#define JOBS 5000
#define MORE 40000
#define NODE_CPU_MILLI 64000

static struct journal_rig rig;
static struct schedule *schedule;
static struct loop_timer *guard;
static void (*meanwhile)(void); /* once, in a turn in which the cycle is under way */
static void (*each_turn)(void); /* in every turn in which it has come so far */
static enum when { PREPARING, TAKING, DECIDING, PLACING } when; /* ...and has come so far */
static bool (*is_done)(void); /* asked at the end of each turn */
static int n_placed, n_turns_placed, n_placed_now;

static void count(void *arg, const struct event *ev)
{
	(void)arg;
	n_placed += ev->type == EV_JOB_PLACED;
	n_placed_now += ev->type == EV_JOB_PLACED;
}

static uint64_t n_cycles(void)
{
	struct schedule_stats s;

	schedule_stats(schedule, &s);
	return s.n_cycles;
}

static bool has_come(void)
{
	const bool begun = rig.model->readers->alike_turn[ALIKE_CYCLE] > 0;
	const bool taken = begun && !rig.model->readers->take_next;

	if (when == PREPARING)
		return rig.model->readers->early_turn > 0 && !begun;
	if (when == TAKING) /* in those that many_more() made */
		return begun && !taken && rig.model->readers->take_next->key.id > JOBS;
	return when == DECIDING ? taken : n_placed > 0;
}

/* At the end of each turn. */
static void on_turn(void *arg)
{
	(void)arg;
	n_turns_placed += n_placed_now > 0;
	if (meanwhile && has_come()) {
		cr_expect_eq(n_cycles(), when == PLACING, "it is to be under way");
		cr_expect_lt(n_placed, JOBS / 2);
		meanwhile();
		meanwhile = NULL;
	}
	if (each_turn && has_come())
		each_turn();
	n_placed_now = 0;
	if (is_done && is_done())
		loop_stop(rig.loop, 0);
}

static void give_up(void *arg)
{
	guard = NULL;
	loop_stop(arg, 1);
}

/* No two are alike. */
static void submit_many(int n)
{
	char text[256];

	for (int i = 0; i < n; i++) {
		snprintf(text, sizeof(text),
			 "{name: job-%d, command: [run, '%d'], gpus: 1, cpus: %d, memory: %dMi, "
			 "env: {N: '%d'}}",
			 i, i, 1 + i % 7, 64 + i, i);
		cr_assert_null(submit_text(rig.model, text, NULL));
	}
}

static void setup(void)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	meanwhile = each_turn = NULL;
	is_done = NULL;
	when = DECIDING;
	log_set_level(LOG_L_WARN);
	n_placed = n_turns_placed = n_placed_now = 0;
	journal_rig_open(&rig, fresh(NODES, DEVICES));
	submit_many(JOBS);
	journal_subscribe(rig.journal, count, NULL);
	cr_assert_eq(schedule_new(rig.journal, &schedule, &err), 0, "%s", err.text);
	loop_add_hook(rig.loop, on_turn, NULL);
	schedule_ready(schedule, true);
}

static void teardown(void)
{
	schedule_free(schedule);
	journal_rig_close(&rig);
}

TestSuite(schedule, .init = setup, .fini = teardown);

static void run(bool (*until)(void))
{
	is_done = until;
	guard = loop_after(rig.loop, 60 * GPUQ_US_PER_S, give_up, rig.loop);
	cr_expect_eq(loop_run(rig.loop), 0);
	loop_cancel(guard);
}

static bool all_placed(void)
{
	return n_placed >= JOBS;
}

static bool rest_placed(void)
{
	return n_placed >= JOBS - 2;
}

static bool all_but_one_placed(void)
{
	return n_placed >= JOBS - 1;
}

static bool one_cycle(void)
{
	return n_cycles() > 0;
}

static const struct job *job(uint32_t id)
{
	return model_find_job(rig.model, (struct job_key){ id, -1 });
}

/* Every node has enough for what it was given. */
static void expect_nothing_twice(void)
{
	node_each(rig.model, n) {
		int64_t cpu = 0;
		int taken[DEVICES] = { 0 };
		struct pod *p;

		DL_FOREACH2(n->pods, p, node_next) {
			cpu += p->job->request->spec.groups[0].cpu_milli;
			for (uint32_t i = 0; i < p->n_devices; i++)
				cr_expect_eq(taken[p->devices[i]]++, 0, "device given twice");
		}
		cr_expect_leq(cpu, NODE_CPU_MILLI);
	}
}

Test(schedule, all_start_over_several_turns)
{
	run(all_placed);
	cr_expect_eq(n_placed, JOBS);
	cr_expect_gt(n_turns_placed, 1, "%d", n_turns_placed);
	expect_nothing_twice();
}

static void apply(struct event *ev)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_expect_eq(journal_apply(rig.journal, ev, &err), 0, "%s", err.text);
}

/* One of the last jobs is held and one is cancelled; a node is drained, another loses its
 * devices but for one. */
static void disturb(void)
{
	struct event hold = { .type = EV_JOB_HELD, .job = { JOBS, -1 } };
	struct event cancel = { .type = EV_JOB_CANCEL_ASKED, .job = { JOBS - 1, -1 } };
	struct event drain = { .type = EV_NODE_DRAIN };
	struct device_fact device = { "GPU-x", "TEST", 1024, true };
	struct node_fact f = { .name = "n620",
			       .cpu_milli = NODE_CPU_MILLI,
			       .memory_bytes = INT64_C(1) << 38,
			       .max_pods = 110,
			       .devices = &device,
			       .n_devices = 1,
			       .ready = true,
			       .note = "" };
	struct event seen = { .type = EV_NODE_SEEN, .node = &f };

	drain.drain.name = "n610";
	drain.drain.on = true;
	drain.drain.why = "";
	cr_expect_null(model_find_node(rig.model, "n610")->pods);
	cr_expect_null(model_find_node(rig.model, "n620")->pods);
	apply(&hold);
	apply(&cancel);
	apply(&drain);
	apply(&seen);
}

static void expect_undisturbed(void)
{
	struct schedule_stats stats;
	const struct pod *p;
	int n = 0;

	schedule_stats(schedule, &stats);
	cr_expect_gt(stats.n_dropped, 3, "%d", (int)stats.n_dropped);
	cr_expect_eq(n_placed, JOBS - 2);
	cr_expect_eq(job(JOBS)->state, GPUQ_JOB_PENDING);
	cr_expect(!job(JOBS - 1) || job(JOBS - 1)->ended);
	cr_expect_null(model_find_node(rig.model, "n610")->pods);
	DL_FOREACH2(model_find_node(rig.model, "n620")->pods, p, node_next)
		n++;
	cr_expect_leq(n, 1);
	expect_nothing_twice();
}

Test(schedule, what_changes_while_it_decides_is_decided_again)
{
	meanwhile = disturb;
	run(rest_placed);
	expect_undisturbed();
}

Test(schedule, what_changes_while_it_is_carried_out_is_decided_again)
{
	when = PLACING;
	meanwhile = disturb;
	run(rest_placed);
	expect_undisturbed();
}

static void new_site(void)
{
	static const char text[] = "version: 1\nqueues: [{name: default, stopped: true}]\n";
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct event ev = { .type = EV_SITE_APPLIED };

	site_text_pack(text, &b);
	ev.site.bytes = b.data;
	ev.site.len = b.len;
	ev.site.who = "ann";
	apply(&ev);
	gpuq_buf_done(&b);
}

/* Nothing is decided any more by what the site was. */
Test(schedule, another_site_begins_it_anew)
{
	meanwhile = new_site;
	run(one_cycle);
	cr_expect_eq(n_placed, 0);
}

Test(schedule, another_site_while_the_snapshot_is_begun)
{
	when = PREPARING;
	meanwhile = new_site;
	run(one_cycle);
	cr_expect_null(meanwhile);
	cr_expect_eq(n_placed, 0);
}

/* One that was prepared has gone, another comes late. */
static void replace_one(void)
{
	struct event cancel = { .type = EV_JOB_CANCEL_ASKED, .job = { JOBS / 2, -1 } };

	disturb();
	apply(&cancel);
	submit_many(1);
	cr_assert_null(submit_text(rig.model, "{command: [late], gpus: 1, cpus: 40}", NULL));
}

Test(schedule, what_changes_before_it_is_taken_is_seen)
{
	struct schedule_stats stats;

	when = PREPARING;
	meanwhile = replace_one;
	run(all_but_one_placed);
	schedule_stats(schedule, &stats);
	cr_expect_eq(stats.n_dropped, 0);
	cr_expect_eq(n_placed, JOBS - 1);
	cr_expect_eq(job(JOBS)->state, GPUQ_JOB_PENDING);
	cr_expect_null(model_find_node(rig.model, "n610")->pods);
	expect_nothing_twice();
}

/* Submit enough for several turns of adding them to the snapshot. */
static void many_more(void)
{
	char text[128];

	for (int i = 0; i < MORE; i++) {
		snprintf(text, sizeof(text), "{command: [more], gpus: 1, hold: true, memory: %dMi}",
			 90000 + i);
		cr_assert_null(submit_text(rig.model, text, NULL));
	}
}

/* One of the jobs that are in the snapshot by now is held and two end, the very next one ends, and so
 * does the last; another comes. */
static void change_jobs(void)
{
	const struct readers *r = rig.model->readers;
	const struct job_key next = r->take_next->key, last = r->take_last->key;
	struct event hold = { .type = EV_JOB_HELD, .job = { JOBS, -1 } };
	const struct job_key gone[] = { { 1, -1 }, { JOBS - 1, -1 }, next, last };

	apply(&hold);
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
		struct event cancel = { .type = EV_JOB_CANCEL_ASKED, .job = gone[i] };

		apply(&cancel);
	}
	cr_assert_neq(r->take_next->key.id, next.id);
	cr_assert_eq(r->take_last->key.id, last.id - 1);
	submit_many(1);
}

static bool all_but_two_placed(void)
{
	return n_placed >= JOBS - 2;
}

Test(schedule, what_changes_while_jobs_are_added_is_decided_again)
{
	struct schedule_stats stats;

	many_more();
	when = TAKING;
	meanwhile = change_jobs;
	run(all_but_two_placed);
	cr_expect_null(meanwhile);
	schedule_stats(schedule, &stats);
	cr_expect_eq(stats.n_dropped, 3, "%d", (int)stats.n_dropped);
	cr_expect_eq(n_placed, JOBS - 2);
	cr_expect_eq(job(JOBS)->state, GPUQ_JOB_PENDING);
	expect_nothing_twice();
}

/* A node that was added to it has changed: what it is now counts. */
Test(schedule, nodes_that_change_while_jobs_are_added_are_seen)
{
	struct schedule_stats stats;

	many_more();
	when = TAKING;
	meanwhile = disturb;
	run(rest_placed);
	cr_expect_null(meanwhile);
	schedule_stats(schedule, &stats);
	cr_expect_eq(stats.n_dropped, 0);
	cr_expect_eq(n_placed, JOBS - 2);
	cr_expect_null(model_find_node(rig.model, "n610")->pods);
	expect_nothing_twice();
}

/* Read all that was recorded; the caller frees it. */
static struct gpuq_buf recorded(void)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	char chunk[4096], path[160];
	size_t n;

	for (unsigned i = 1;; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/cycles/cycles-%08u.mp", rig.dir, i);
		f = fopen(path, "rb");
		if (!f)
			break;
		while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
			gpuq_buf_add(&b, chunk, n);
		fclose(f);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/cycles", rig.dir);
	rmdir(path);
	return b;
}

/* Decide a recorded cycle again, at once, and compare the plans. */
static bool replays(struct cycle_record *record)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct plan plan;
	bool same;

	cr_assert_eq(snapshot_seal(record->snapshot, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(record->snapshot, &mem, &plan, &err), 0, "%s", err.text);
	cycle_text(record->snapshot, &plan, &text);
	same = text.len == record->plan_len && memcmp(text.data, record->plan, text.len) == 0;
	gpuq_buf_done(&text);
	gpuq_arena_done(&mem);
	snapshot_free(record->snapshot);
	return same;
}

/* Record cycles in steps, the first of which is disturbed there. The parts that were dropped when it
 * was carried out are in its plan: all replay to the same. */
static void expect_replay(enum when where, void (*event)(void), bool (*until)(void))
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct schedule_stats stats;
	struct cycle_record record;
	struct spool *spool;
	struct gpuq_buf b;
	struct rec r;
	char path[128];
	int n = 0;

	snprintf(path, sizeof(path), "%s/cycles", rig.dir);
	cr_assert_eq(spool_open(path, "cycles", INT64_C(1) << 30, &spool, &err), 0, "%s", err.text);
	schedule_record(schedule, spool);
	when = where;
	meanwhile = event;
	run(until);
	schedule_stats(schedule, &stats);
	cr_expect_gt(stats.n_dropped, 2, "%d", (int)stats.n_dropped);
	schedule_record(schedule, NULL);
	spool_close(spool);
	b = recorded();
	r = (struct rec){ (unsigned char *)b.data, (unsigned char *)b.data + b.len, false };
	for (; r.p < r.end; n++) {
		cr_assert_eq(cycle_record_read(&r, &record, &err), 0, "%s", err.text);
		if (n == 0) {
			char *plan = strndup(record.plan, record.plan_len), dropped[32];

			snprintf(dropped, sizeof(dropped), "place %d on ", JOBS);
			cr_assert_not_null(plan);
			cr_expect_not_null(strstr(plan, dropped), "%s is dropped", dropped);
			free(plan);
		}
		cr_expect(replays(&record), "cycle %d", n);
	}
	cr_expect_eq((uint64_t)n, stats.n_cycles);
	gpuq_buf_done(&b);
}

Test(schedule, a_recorded_cycle_in_steps_replays_with_what_was_dropped)
{
	expect_replay(DECIDING, disturb, rest_placed);
}

Test(schedule, so_does_one_whose_jobs_changed_while_they_were_added)
{
	many_more();
	expect_replay(TAKING, change_jobs, all_but_two_placed);
}

static int n_drains;

static void drain_or_not(void)
{
	struct event drain = { .type = EV_NODE_DRAIN };

	drain.drain.name = "n790";
	drain.drain.on = n_drains++ % 2 == 0;
	drain.drain.why = "";
	apply(&drain);
}

/* Nor is it begun anew for ever. */
Test(schedule, nodes_that_change_all_the_time)
{
	many_more();
	when = TAKING;
	each_turn = drain_or_not;
	n_drains = 0;
	run(one_cycle);
	cr_expect_eq(n_drains, 3, "%d", n_drains);
}

/* Nothing happens between its steps: it is what is taken at once. */
Test(schedule, a_snapshot_taken_in_steps_is_the_same)
{
	static const uint32_t steps[] = { 1, 7, 1000 };
	const int64_t now = T0 + 24 * 3600 * GPUQ_US_PER_S;
	struct gpuq_buf want = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct snapshot *s;

	cr_assert_null(submit_text(rig.model, "{command: [a], gpus: 1, array: 0-9}", NULL));
	for (int i = 0; i < 5; i++)
		cr_assert_null(submit_text(rig.model, "{command: [b], gpus: 1}", NULL));
	cr_assert_eq(snapshot_take_few(rig.model, now, 2, &want, &s, &err), 0, "%s", err.text);
	snapshot_free(s);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct snapshot_early *e = snapshot_early_begin(rig.model);
		struct gpuq_buf is = GPUQ_BUF_INIT;

		cr_assert_not_null(e);
		while (!snapshot_early_go_on(e, steps[i]))
			;
		cr_assert(snapshot_early_jobs_begin(e, now, 2));
		while (!snapshot_early_jobs(e, steps[i]))
			;
		cr_assert_eq(snapshot_take_late(e, &is, &s, &err), 0, "%s", err.text);
		cr_expect_eq(is.len, want.len);
		cr_expect(is.len == want.len && memcmp(is.data, want.data, is.len) == 0);
		snapshot_free(s);
		gpuq_buf_done(&is);
	}
	gpuq_buf_done(&want);
}

static void not_ready(void)
{
	schedule_ready(schedule, false);
}

Test(schedule, nothing_starts_once_the_cluster_is_lost)
{
	meanwhile = not_ready;
	loop_after(rig.loop, GPUQ_US_PER_S / 2, give_up, rig.loop);
	loop_run(rig.loop);
	cr_expect_null(meanwhile, "it has happened");
	cr_expect_eq(n_placed, 0);
}

/* ---- jobs that are left out ---- */

#define GANGS 2000

static uint32_t n_looked_at(void)
{
	struct schedule_stats s;

	schedule_stats(schedule, &s);
	return s.n_jobs;
}

/* Submit gangs that are larger than what will be free, each another one. */
static void submit_gangs(int n)
{
	char text[128];

	for (int i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "{command: [gang], gpus: 8, pods: 700, memory: %dMi}",
			 1000 + i);
		cr_assert_null(submit_text(rig.model, text, NULL));
	}
}

/* The newest job. */
static const struct job *last_job(void)
{
	return job(rig.model->next_job_id - 1);
}

static bool last_is_told(void)
{
	return last_job()->outlook->n_reasons > 0 &&
	       last_job()->outlook->reasons[0].code == GPUQ_R_RESOURCES;
}

static bool last_is_placed(void)
{
	return last_job()->pods != NULL;
}

/* One more comes: it is released, which the journal hears of. */
static void one_more(const char *text)
{
	struct event ev = { .type = EV_JOB_RELEASED };

	cr_assert_null(submit_text(rig.model, text, NULL));
	ev.job = last_job()->key;
	ev.held.admin = true;
	apply(&ev);
}

#define GANG "{command: [one], gpus: 8, pods: 701, memory: 2Mi, hold: true}"

/* Others come until it was the only one that was looked at, beside what runs. */
static bool alone_is_looked_at(void)
{
	if (!last_is_told())
		return false;
	if (n_looked_at() < JOBS + GANGS)
		return true;
	one_more(GANG);
	return false;
}

Test(schedule, a_new_job_is_looked_at_without_those_that_cannot_start)
{
	struct event held = { .type = EV_JOB_HELD, .held.admin = false };

	submit_gangs(GANGS);
	run(last_is_told);
	cr_expect_geq(n_looked_at(), JOBS + GANGS);
	one_more(GANG);
	run(alone_is_looked_at);
	cr_expect_leq(n_looked_at(), JOBS + 2);
	/* It fits: that changes what there is for the others, and all are looked at. */
	one_more("{command: [fits], gpus: 1, memory: 1Mi, hold: true}");
	run(last_is_placed);
	cr_expect_geq(n_looked_at(), JOBS + GANGS);
	/* So they are after whatever else happens. */
	one_more(GANG);
	run(alone_is_looked_at);
	held.job = job(JOBS + 1)->key;
	apply(&held);
	one_more(GANG);
	run(last_is_told);
	cr_expect_geq(n_looked_at(), JOBS + GANGS);
}

/* It was told that it is held: released, it is looked at, and starts. */
Test(schedule, one_that_is_released_is_not_left_out)
{
	struct event release = { .type = EV_JOB_RELEASED };

	submit_gangs(GANGS);
	cr_assert_null(
		submit_text(rig.model, "{command: [a], gpus: 1, memory: 3Mi, hold: true}", NULL));
	release.job = last_job()->key;
	submit_gangs(1);
	run(last_is_told);
	one_more(GANG);
	run(alone_is_looked_at);
	cr_expect(job(release.job.id)->settled);
	apply(&release);
	one_more("{command: [fits], gpus: 1, memory: 4Mi, hold: true}");
	run(last_is_placed);
	cr_expect_not_null(job(release.job.id)->pods);
}
