/* Long work in small steps, and the part that held the loop. */
#include <criterion/criterion.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/base/worker.h"

static struct loop *loop;
static struct loop_work *works[3];
static int steps[3], n_between, n_left;

static void setup(void)
{
	struct gpuq_err err;

	memset(steps, 0, sizeof(steps));
	n_between = 0;
	n_left = 2;
	cr_assert_eq(loop_new(&loop, &err), 0);
}

static void teardown(void)
{
	loop_free(loop);
}

TestSuite(loop, .init = setup, .fini = teardown);

static void spend(int64_t us)
{
	const int64_t end = loop_clock_us() + us;

	while (loop_clock_us() < end)
		;
}

static bool fifty(void *arg)
{
	int *n = arg;

	spend(500);
	if (++*n < 50)
		return true;
	if (--n_left == 0)
		loop_stop(loop, 7);
	return false;
}

static struct loop_timer *again;

static void between(void *arg)
{
	(void)arg;
	n_between++;
	again = loop_after(loop, 0, between, NULL);
}

Test(loop, works_share_turns_and_others_have_theirs)
{
	loop_work(loop, fifty, &steps[0]);
	loop_work(loop, fifty, &steps[1]);
	between(NULL);
	cr_assert_eq(loop_run(loop), 7);
	loop_cancel(again);
	cr_expect_eq(steps[0], 50);
	cr_expect_eq(steps[1], 50);
	cr_expect_gt(n_between, 5);
}

static void stop(void *arg)
{
	(void)arg;
	loop_stop(loop, 3);
}

static bool once(void *arg)
{
	loop_work_cancel(works[1]);
	loop_work_cancel(works[0]); /* itself: this step is its last one */
	++*(int *)arg;
	loop_after(loop, 1000, stop, NULL);
	return true;
}

static bool never(void *arg)
{
	++*(int *)arg;
	return true;
}

Test(loop, a_work_may_end_others_and_itself)
{
	works[0] = loop_work(loop, once, &steps[0]);
	works[1] = loop_work(loop, never, &steps[1]);
	cr_assert_eq(loop_run(loop), 3);
	cr_expect_eq(steps[0], 1);
	cr_expect_eq(steps[1], 0);
	/* Remaining work is freed with the loop. */
	loop_work(loop, never, &steps[2]);
}

static void long_one(void *arg)
{
	const char *before = loop_enter(loop, "the long one.c");

	(void)arg;
	spend(30000);
	loop_enter(loop, "the short one");
	spend(2000);
	loop_leave(loop, before);
	loop_stop(loop, 0);
}

Test(loop, tells_who_had_most_of_the_longest_turn)
{
	struct loop_part parts[8];
	struct loop_stats s;
	size_t n;

	loop_after(loop, 0, long_one, NULL);
	cr_assert_eq(loop_run(loop), 0);
	loop_stats(loop, &s);
	cr_expect_str_eq(s.longest_part, "the long one");
	cr_expect(s.longest_part_us > 0 && s.longest_part_us <= s.longest_us);
	n = loop_parts(loop, parts, 8);
	cr_assert_geq(n, 2);
	cr_expect_str_eq(parts[0].name, "the long one");
	loop_reset_stats(loop);
	cr_expect_eq(loop_parts(loop, parts, 8), 0);
	loop_stats(loop, &s);
	cr_expect_eq(s.turns, 0);
	cr_expect_str_eq(s.longest_part, "");
}

static int n_worked, n_told, n_dropped;

static void work(void *arg)
{
	(void)arg;
	n_worked++;
}

static void told(void *arg)
{
	(void)arg;
	if (++n_told == 2)
		loop_stop(loop, 7);
}

static void dropped(void *arg)
{
	(void)arg;
	n_dropped++;
}

Test(loop, a_worker_that_finishes_has_done_all_and_does_nothing_after_it)
{
	struct worker *w;
	struct gpuq_err err;

	cr_assert_eq(worker_new(loop, &w, &err), 0);
	cr_assert_eq(worker_run(w, work, told, NULL, &err), 0);
	cr_assert_eq(worker_run(w, work, told, NULL, &err), 0);
	worker_finish(w);
	cr_expect_eq(n_worked, 2);
	cr_expect_eq(n_told, 0, "outcomes come on the loop");
	cr_assert_eq(worker_run(w, work, told, NULL, &err), 0);
	cr_expect_eq(loop_run(loop), 7);
	cr_expect_eq(n_told, 2);
	cr_expect_eq(n_worked, 2);
	worker_free(w, dropped);
	cr_expect_eq(n_dropped, 1);
}
