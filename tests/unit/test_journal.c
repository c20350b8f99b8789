/* When it is told that what was changed is durable. */
#include <criterion/criterion.h>

#include "tests/unit/journal_rig.h"

static struct journal_rig rig;
static struct loop_timer *guard;
static int n_told;

static void setup(void)
{
	n_told = 0;
	journal_rig_open(&rig, fresh(1, 1));
}

static void teardown(void)
{
	journal_rig_close(&rig);
}

TestSuite(journal, .init = setup, .fini = teardown);

static void give_up(void *arg)
{
	guard = NULL;
	loop_stop(arg, 1);
}

static void told(void *arg, int rc, const struct gpuq_err *err)
{
	(void)err;
	cr_expect_eq(rc, 0);
	if (++n_told == 3)
		loop_stop(rig.loop, 0);
	else
		journal_after(rig.journal, told, arg);
}

/* A reply that is held back until what it says is durable is asked for when a call before it
 * was told the same: nothing else may happen for long on an idle daemon. */
Test(journal, who_waits_when_told_is_told_without_anything_happening)
{
	guard = loop_after(rig.loop, 20 * GPUQ_US_PER_S, give_up, rig.loop);
	journal_after(rig.journal, told, NULL);
	loop_kick(rig.loop);
	cr_expect_eq(loop_run(rig.loop), 0);
	cr_expect_eq(n_told, 3);
	loop_cancel(guard);
}
