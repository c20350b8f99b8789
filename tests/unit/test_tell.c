/* What a cycle tells waiting jobs: events for what is news, and for nothing else. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/core/sched.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/flow/schedule.h"
#include "gpuqd/flow/tell.h"
#include "gpuqd/store/store.h"
#include "tests/unit/model_rig.h"

static char dir[64];
static struct loop *loop;
static struct store *store;
static struct model *model;
static struct journal *journal;
static uint32_t n_told;

static void count(void *arg, const struct event *ev)
{
	n_told += ev->type == EV_JOB_REASONS;
}

static void setup(void)
{
	const struct store_opts o = { .map_bytes = 16 << 20, .unsafe_fs = true };
	const struct journal_opts jo = { 0 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool is_new;

	snprintf(dir, sizeof(dir), "/tmp/gpuq-tell.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(loop_new(&loop, &err), 0);
	cr_assert_eq(store_open(dir, &o, &store, &is_new, &err), 0, "%s", err.text);
	model = fresh(1, 2);
	cr_assert_eq(journal_new(loop, store, model, &jo, &journal, &err), 0, "%s", err.text);
	journal_subscribe(journal, count, NULL);
}

static void teardown(void)
{
	static const char *const files[] = { "data.mdb", "lock.mdb", "gpuqd.lock" };
	char path[128];

	store_close_writer(store);
	journal_free(journal);
	store_close(store);
	model_free(model);
	loop_free(loop);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		unlink(path);
	}
	rmdir(dir);
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
	cr_assert_eq(snapshot_take(model, now_us, &s, &err), 0, "%s", err.text);
	cr_assert_eq(sched_cycle(s, &mem, &p, &err), 0, "%s", err.text);
	tell_jobs(journal, s, &p, &mem);
	snapshot_free(s);
	gpuq_arena_done(&mem);
	return n_told;
}

static const struct job *job(uint32_t id)
{
	const struct job *j = job_find(model, (struct job_key){ id, -1 });

	cr_assert_not_null(j);
	return j;
}

Test(tell, only_what_is_news)
{
	/* Three that no node could ever hold, and one that could start. */
	for (int i = 0; i < 3; i++)
		submit_text(model, "{command: [true], gpus: 3}", NULL);
	submit_text(model, "{command: [true], gpus: 1}", NULL);
	cr_expect_eq(cycle(T0 + GPUQ_US_PER_S), 3);
	for (uint32_t id = 1; id <= 3; id++) {
		cr_assert_eq(job(id)->n_reasons, 1);
		cr_expect_eq(job(id)->reasons[0].code, GPUQ_R_UNSATISFIABLE);
		cr_expect(job(id)->ranked);
	}
	cr_expect_eq(job(4)->n_reasons, 0);
	cr_expect_eq(cycle(T0 + 2 * GPUQ_US_PER_S), 0, "nothing has changed");
	/* Points for waiting are whole: at 1,000 a day the first one comes within minutes. */
	cr_expect_eq(cycle(T0 + 600 * GPUQ_US_PER_S), 3);
	cr_expect_gt(job(1)->terms.age, 0);
	cr_expect_eq(job(1)->priority, job(1)->terms.total);
}

Test(tell, one_that_changes_among_many)
{
	struct event hold = { .type = EV_JOB_HELD, .job = { 2, -1 }, .at_us = T0 };
	struct gpuq_err err = GPUQ_ERR_INIT;

	for (int i = 0; i < 5; i++)
		submit_text(model, "{command: [true], gpus: 3}", NULL);
	cr_expect_eq(cycle(T0 + GPUQ_US_PER_S), 5);
	cr_assert_eq(journal_apply(journal, &hold, &err), 0, "%s", err.text);
	cr_expect_eq(cycle(T0 + GPUQ_US_PER_S), 1);
	cr_expect_eq(job(2)->reasons[0].code, GPUQ_R_HELD_USER);
	cr_expect_eq(job(3)->reasons[0].code, GPUQ_R_UNSATISFIABLE);
}
