/* kill -9 of whoever asks for pods, at random and at each named step: no job is run
 * twice, none is lost. GPUQ_KILL_ROUNDS changes the number of rounds (50). */
#include "config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/local_world.h"

static char program[4096], dir[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void setup(void)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 32);

	program[n > 0 ? n : 0] = '\0';
	strcpy(strrchr(program, '/') + 1, "local_driver");
}

TestSuite(local_kill, .init = setup, .timeout = 1200);

static void make_dir(void)
{
	strcpy(dir, "/tmp/gpuq-kill-XXXXXX");
	cr_assert(mkdtemp(dir));
}

static void remove_dir(void)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static pid_t drive(int n, const char *failpoint)
{
	char count[16];
	pid_t pid;

	snprintf(count, sizeof(count), "%d", n);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 2); /* its warnings about shepherds that were made to fail */
		if (failpoint)
			setenv("GPUQ_FAILPOINT", failpoint, 1);
		execl(program, program, dir, count, (char *)NULL);
		_exit(126);
	}
	cr_assert_gt(pid, 0);
	return pid;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		cr_assert_eq(errno, EINTR);
	return status;
}

static char *read_at(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return world_read(path);
}

/* How often each index stands in DIR/name. */
static void count_lines(const char *name, int *count, int n)
{
	char *text = read_at(name);

	memset(count, 0, (size_t)n * sizeof(*count));
	for (char *save, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		int i = atoi(line);

		cr_assert(i >= 0 && i < n, "%s: %s", name, line);
		count[i]++;
	}
	free(text);
}

/* Return the time of N jobs without a kill, in microseconds; > 0. */
static int undisturbed_us(int n)
{
	struct timespec start, end;

	make_dir();
	clock_gettime(CLOCK_MONOTONIC, &start);
	cr_assert_eq(wait_for(drive(n, NULL)), 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	remove_dir();
	return (int)((end.tv_sec - start.tv_sec) * 1000000 + (end.tv_nsec - start.tv_nsec) / 1000 +
		     1);
}

Test(local_kill, at_random_loses_nothing_and_doubles_nothing)
{
	enum { N = 8 };
	const char *asked = getenv("GPUQ_KILL_ROUNDS");
	const int rounds = asked ? atoi(asked) : 50;
	int killed = 0, whole_us;

	/* Kills are to fall into its time, however fast the machine is. */
	whole_us = undisturbed_us(N);
	srand(20261121);
	for (int round = 0; round < rounds; round++) {
		int count[N], status;

		make_dir();
		for (int k = 0; k < 4; k++) {
			pid_t pid = drive(N, NULL);

			usleep((useconds_t)(rand() % whole_us));
			kill(pid, SIGKILL);
			status = wait_for(pid);
			killed += WIFSIGNALED(status);
		}
		status = wait_for(drive(N, NULL));
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "round %d: %d", round,
			  status);
		count_lines("ran", count, N);
		for (int i = 0; i < N; i++)
			cr_assert_eq(count[i], 1, "round %d: job %d ran %d times", round, i,
				     count[i]);
		count_lines("ledger", count, N);
		for (int i = 0; i < N; i++)
			cr_assert_eq(count[i], 1, "round %d: job %d ended %d times", round, i,
				     count[i]);
		remove_dir();
	}
	cr_expect_gt(killed, rounds / 4, "the kills came too late to prove anything");
}

/* At a named step of the daemon nothing is lost at all; at one of the shepherd the job
 * may be lost to infrastructure, and then says so, but never runs twice. */
static void kill_at(const char *name)
{
	enum { N = 3 };
	char failpoint[128], *ledger;
	int count[N], status = 0;
	pid_t pid;

	snprintf(failpoint, sizeof(failpoint), "%s=kill", name);
	make_dir();
	pid = drive(N, failpoint);
	/* One whose shepherds are all killed before they begin never ends by itself. */
	for (int i = 0; i < 100 && waitpid(pid, &status, WNOHANG) == 0; i++)
		usleep(10000);
	if (kill(pid, SIGKILL) == 0)
		status = wait_for(pid);
	if (strncmp(name, "local.", 6) == 0 && strncmp(name, "local.leave", 11) != 0)
		cr_expect(WIFSIGNALED(status), "%s: was not passed", name);
	status = wait_for(drive(N, NULL));
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %d", name, status);
	count_lines("ran", count, N);
	ledger = read_at("ledger");
	for (int i = 0; i < N; i++) {
		char good[16], lost[16];

		snprintf(good, sizeof(good), "%d %d %d\n", i, POD_SUCCEEDED, POD_FAULT_NONE);
		snprintf(lost, sizeof(lost), "%d %d %d\n", i, POD_FAILED, POD_FAULT_INFRA);
		if (strncmp(name, "shepherd.", 9) == 0)
			cr_expect(strstr(ledger, good) ? count[i] == 1
						       : strstr(ledger, lost) && count[i] <= 1,
				  "%s: job %d ran %d times, ledger:\n%s", name, i, count[i],
				  ledger);
		else
			cr_expect(strstr(ledger, good) && count[i] == 1,
				  "%s: job %d ran %d times, ledger:\n%s", name, i, count[i],
				  ledger);
	}
	free(ledger);
	remove_dir();
}

Test(local_kill, at_each_named_step)
{
	char command[8400], name[96], seen[64][96];
	int n = 0;
	FILE *f;

	snprintf(command, sizeof(command), "%s --list; %.*s/local_shepherd --list", program,
		 (int)(strrchr(program, '/') - program), program);
	f = popen(command, "r");
	cr_assert(f);
	while (n < 64 && fgets(name, sizeof(name), f)) {
		name[strcspn(name, "\n")] = '\0';
		snprintf(seen[n++], sizeof(seen[0]), "%s", name);
	}
	pclose(f);
#ifdef GPUQ_FAILPOINTS
	cr_assert_gt(n, 10);
#else
	cr_skip_test("configured without --enable-failpoints");
#endif
	for (int i = 0; i < n; i++)
		kill_at(seen[i]);
}

Test(local_kill, a_write_that_fails_is_tried_again)
{
#ifndef GPUQ_FAILPOINTS
	cr_skip_test("configured without --enable-failpoints");
#endif
	enum { N = 2 };
	int count[N], status;

	make_dir();
	status = wait_for(drive(N, "local.create.filled=eio,shepherd.starting=delay:50"));
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
	count_lines("ran", count, N);
	cr_expect(count[0] == 1 && count[1] == 1);
	remove_dir();
}
