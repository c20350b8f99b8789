#include <criterion/criterion.h>
#include <stdatomic.h>

#include "gpuqd/base/aside.h"
#include "gpuqd/base/loop.h"

/* One piece of work: it waits until it may end. */
struct task {
	struct loop *loop;
	struct aside *aside;
	atomic_bool may_end;
	bool until_stopped;
	int worked, done;
	bool last;
};

static void work(void *arg)
{
	struct task *t = arg;

	while (!(t->until_stopped ? aside_ends(t->aside) : atomic_load(&t->may_end)))
		;
	t->worked++;
}

static void done(void *arg)
{
	struct task *t = arg;

	t->done++;
	if (t->last)
		loop_stop(t->loop, 7);
}

Test(aside, works_beside_the_loop_and_tells_it)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct task a = { .done = 0 }, b = { .last = true };
	struct loop *loop;
	struct aside *aside;

	cr_assert_eq(loop_new(&loop, &err), 0);
	cr_assert_eq(aside_new(loop, 2, &aside, &err), 0);
	a.loop = b.loop = loop;
	cr_assert_eq(aside_run(aside, work, done, &a, &err), 0);
	cr_assert_eq(aside_run(aside, work, done, &b, &err), 0);
	cr_expect_eq(aside_busy(aside), 2);
	/* No more than that at a time. */
	cr_expect_eq(aside_run(aside, work, done, &a, &err), GPUQ_EBUSY);
	cr_expect_eq(a.done, 0);
	atomic_store(&a.may_end, true);
	atomic_store(&b.may_end, true);
	cr_expect_eq(loop_run(loop), 7);
	aside_free(aside);
	cr_expect_eq(a.worked, 1);
	cr_expect_eq(a.done, 1);
	cr_expect_eq(b.done, 1);
	loop_free(loop);
}

Test(aside, waits_at_the_end_for_what_is_under_way)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct task t = { .until_stopped = true };
	struct loop *loop;
	struct aside *aside;

	cr_assert_eq(loop_new(&loop, &err), 0);
	cr_assert_eq(aside_new(loop, 1, &aside, &err), 0);
	t.aside = aside;
	t.loop = loop;
	cr_assert_eq(aside_run(aside, work, done, &t, &err), 0);
	aside_free(aside);
	cr_expect_eq(t.worked, 1);
	cr_expect_eq(t.done, 1);
	aside_free(NULL);
	loop_free(loop);
}
