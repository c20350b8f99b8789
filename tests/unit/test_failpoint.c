/* Named places that fail when they are told to. */
#include "config.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuqd/base/failpoint.h"

static const struct {
	const char *env;
	unsigned at; /* the passage that fails, 0 = none of five */
} rows[] = {
	{ "test.here=eio", 1 },          { "test.here:3=eio", 3 },    { "test.other=eio", 0 },
	{ "test.her=eio", 0 },           { "test.here.more=eio", 0 }, { "test.here:9=eio", 0 },
	{ "a=kill,test.here:2=eio", 2 }, { "test.here", 0 },          { "test.here=nonsense", 0 },
	{ "test.here:x=eio", 0 },        { ",,=,test.here=eio", 1 },  { "test.here=delay:1", 0 },
};

Test(failpoint, fails_at_the_passage_that_was_asked_for)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct failpoint fp = { "test.here", 0 };

		setenv("GPUQ_FAILPOINT", rows[i].env, 1);
		for (unsigned k = 1; k <= 5; k++)
			cr_expect_eq(failpoint_pass(&fp), k == rows[i].at, "%s, passage %u",
				     rows[i].env, k);
	}
}

Test(failpoint, fails_at_each_passage_with_a_star)
{
	struct failpoint fp = { "test.here", 0 };

	setenv("GPUQ_FAILPOINT", "test.here:*=eio", 1);
	for (int k = 0; k < 3; k++)
		cr_expect(failpoint_pass(&fp));
}

static int ends_by(const char *env)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct failpoint fp = { "test.here", 0 };

		setenv("GPUQ_FAILPOINT", env, 1);
		failpoint_pass(&fp);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

Test(failpoint, kills_and_aborts)
{
	cr_expect_eq(ends_by("test.here=kill"), SIGKILL);
	cr_expect_eq(ends_by("test.here=abort"), SIGABRT);
	cr_expect_eq(ends_by("test.there=kill"), 0);
}

#ifdef GPUQ_FAILPOINTS
static int found;

static void look(void *arg, const char *name)
{
	found += strcmp(name, arg) == 0;
}

Test(failpoint, each_place_is_listed)
{
	(void)FAILPOINT("test.listed");
	failpoint_each(look, (char *)"test.listed");
	cr_expect_eq(found, 1);
}
#else
Test(failpoint, none_is_compiled_in)
{
	setenv("GPUQ_FAILPOINT", "test.listed=kill", 1);
	cr_expect_not(FAILPOINT("test.listed"));
}
#endif
