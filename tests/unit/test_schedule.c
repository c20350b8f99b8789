/* Cycles that go on over several turns of the loop, while things happen. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "gpuqd/flow/schedule.h"
#include "tests/unit/journal_rig.h"
#include "tests/unit/site_text.h"

#define NODES 800
#define DEVICES 8
#define JOBS 5000
#define NODE_CPU_MILLI 64000

static struct journal_rig rig;
static struct schedule *schedule;
static struct loop_timer *guard;
static void (*meanwhile)(void); /* once, in a turn in which the cycle is under way */
static enum when { PREPARING, DECIDING, PLACING } when; /* ...and has come so far */
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
	const bool taken = rig.model->readers->alike_turn[ALIKE_CYCLE] > 0;

	if (when == PREPARING)
		return rig.model->readers->early_turn > 0 && !taken;
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

	meanwhile = NULL;
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
	cr_expect_gt(n_turns_placed, 3, "%d", n_turns_placed);
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
