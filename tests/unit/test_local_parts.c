/* The parts of the local cluster that are plain functions of texts. */
#include "config.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuqd/cluster/local/shepherd/devices.h"
#include "gpuqd/cluster/local/shepherd/order.h"
#include "gpuqd/cluster/local/shepherd/proctree.h"
#include "gpuqd/cluster/local/shepherd/state.h"
#include "libgpuq/pattern.h"

static const struct {
	const char *pattern;
	int64_t element;
	const char *want;
} patterns[] = {
	{ "out", -1, "out" },
	{ "slurm-%j.out", -1, "slurm-17.out" },
	{ "%A_%a", 3, "17_3" },
	{ "%j", 3, "17_3" },
	{ "%J-%4a-%b", 13, "17_13.batch-0013-3" },
	{ "%J", -1, "17.batch" },
	{ "%x.%u@%N/%n%t", -1, "train.ann@host/22" },
	{ "%6j", -1, "000017" },
	{ "%99j", -1, "0000000017" },
	{ "100%%", -1, "100%" },
	{ "%q%", -1, "%q%" },
	{ "%s", -1, "batch" },
	{ "\\%j-\\x", -1, "%j-x" },
	{ "%12", -1, "%12" },
	{ "", -1, "" },
};

/* ---- processes ---- */

static pid_t sleeper(void)
{
	const pid_t pid = fork();

	if (pid == 0) {
		setsid();
		pause();
		_exit(0);
	}
	cr_assert_gt(pid, 0);
	return pid;
}

Test(local_parts, a_signal_reaches_the_process_that_was_meant_and_not_its_number)
{
	const pid_t pid = sleeper();
	const uint64_t ticks = proctree_ticks(pid);

	cr_assert_neq(ticks, 0);
	cr_expect_not(proctree_send(pid, ticks + 1, SIGKILL));
	cr_expect_not(proctree_send(pid, ticks - 1, SIGKILL));
	cr_expect_eq(waitpid(pid, NULL, WNOHANG), 0, "it was ended");
	cr_expect(proctree_send(pid, ticks, SIGKILL));
	cr_expect_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_not(proctree_send(pid, ticks, SIGKILL));
}

/* The number of the session may have been given to another user's by then. */
Test(local_parts, what_is_left_of_a_job_is_its_users)
{
	uint64_t ticks;
	int left = 0;
	pid_t member, pid;

	/* Before any child exists: an orphan would become a child of process 1. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	member = fork();
	if (member == 0) { /* a session whose leader has gone */
		setsid();
		pid = fork();
		if (pid == 0) {
			pause();
			_exit(0);
		}
		_exit(pid > 0 ? 0 : 1);
	}
	cr_assert_gt(member, 0);
	ticks = proctree_ticks(member);
	cr_assert_eq(waitpid(member, NULL, 0), member);
	cr_expect_eq(proctree_kill_stray(member, ticks, getuid() + 1, "NO=MARK"), 0);
	cr_expect_eq(proctree_kill_stray(member, ticks + 1000, getuid(), "NO=MARK"), 0);
	cr_expect_eq(proctree_kill_stray(member, ticks, getuid(), "NO=MARK"), 1);
	while (waitpid(-1, NULL, 0) > 0)
		left++;
	cr_expect_eq(left, 1);
}

Test(local_parts, patterns_are_sbatchs)
{
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		const struct pattern_vars v = {
			.job = 17,
			.array_index = patterns[i].element,
			.index = 2,
			.name = "train",
			.user = "ann",
			.node = "host",
		};
		struct gpuq_buf b = GPUQ_BUF_INIT;

		pattern_expand(patterns[i].pattern, &v, &b);
		cr_expect_str_eq(gpuq_buf_str(&b), patterns[i].want, "'%s': '%s'",
				 patterns[i].pattern, gpuq_buf_str(&b));
		gpuq_buf_done(&b);
	}
}

Test(local_parts, an_element_that_has_a_number_of_its_own_is_called_by_it)
{
	const struct pattern_vars v = {
		.job = 17, .array_index = 3, .number = 21, .name = "", .user = "", .node = ""
	};
	struct gpuq_buf b = GPUQ_BUF_INIT;

	pattern_expand("%j-%6j-%J-%A_%a", &v, &b);
	cr_expect_str_eq(gpuq_buf_str(&b), "21-000021-21.batch-17_3");
	gpuq_buf_done(&b);
}

static char scratch[] = "/tmp/gpuq-parts-XXXXXX";

static int open_scratch(void)
{
	cr_assert(mkdtemp(scratch));
	return open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void put_file(int dirfd, const char *name, const char *bytes, size_t n)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert_eq(write(fd, bytes, n), (ssize_t)n);
	close(fd);
}

Test(local_parts, an_order_reads_back_as_written_and_not_when_cut)
{
	static const char *argv[] = { "sh", "-c", "echo \"a=b\"\nnewline", "", NULL };
	static const char *env[] = { "A=1", "B=x=y", "C=", NULL };
	const struct order o = {
		.pod = "p",
		.token = "t",
		.uid = "u",
		.node = "n",
		.user = "ann",
		.cwd = "/tmp",
		.output = "",
		.error = "",
		.input = "",
		.devices = "0,3",
		.record = "{\"v\":1,\"user\":\"a=b\"}",
		.job_uid = 4294967294,
		.job_gid = 100,
		.file_mask = -1,
		.script = true,
		.time_limit_us = INT64_MAX,
		.memory_bytes = 1,
		.argv = { argv, 4 },
		.env = { env, 3 },
	};
	struct gpuq_buf b = GPUQ_BUF_INIT;
	int dir = open_scratch();

	order_write(&o, &b);
	cr_assert_not(b.failed);
	for (size_t n = 0; n <= b.len; n++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct order back = { .pod = "untouched" };
		int rc;

		put_file(dir, "order", b.data, n);
		rc = order_read(dir, &a, &back, &err);
		if (n < b.len) {
			cr_assert_eq(rc, GPUQ_ECORRUPT, "cut at %zu", n);
			cr_assert_str_eq(back.pod, "untouched");
		} else {
			cr_assert_eq(rc, 0);
			cr_expect_eq(back.job_uid, o.job_uid);
			cr_expect_str_eq(back.record, o.record);
			cr_expect_eq(back.file_mask, -1);
			cr_expect_eq(back.time_limit_us, INT64_MAX);
			cr_expect(back.script && !back.append);
			cr_expect_str_eq(back.devices, "0,3");
			cr_assert_eq(back.argv.n, 4);
			cr_expect_str_eq(back.argv.items[2], argv[2]);
			cr_expect_str_eq(back.argv.items[3], "");
			cr_expect_null(back.argv.items[4]);
			cr_assert_eq(back.env.n, 3);
			cr_expect_str_eq(back.env.items[1], "B=x=y");
		}
		gpuq_arena_done(&a);
	}
	gpuq_buf_done(&b);
	unlinkat(dir, "order", 0);
	close(dir);
	rmdir(scratch);
}

Test(local_parts, a_state_is_the_sum_of_its_whole_lines)
{
	int dir = open_scratch(), fd;
	struct pod_state s;

	cr_expect_eq(state_read(dir, &s, NULL), 0);
	cr_expect_not(s.starting);
	fd = state_open(dir);
	cr_assert_eq(state_put_starting(fd), 0);
	cr_assert_eq(write(fd, "\nstarted pid=1 ti", 17), 17); /* cut by a crash */
	cr_assert_eq(state_read(dir, &s, NULL), 0);
	cr_expect(s.starting && s.pid == 0 && s.how == HOW_NOT);
	cr_assert_eq(state_put_started(fd, 77, 1234567890123, 5), 0);
	cr_assert_eq(state_put_ended(fd, HOW_SIGNAL, 9, "why\nnot"), 0);
	cr_assert_eq(state_read(dir, &s, NULL), 0);
	cr_expect_eq(s.pid, 77);
	cr_expect_eq(s.ticks, 1234567890123u);
	cr_expect_eq(s.started_us, 5);
	cr_expect_gt(s.started_up_us, 0);
	cr_expect_geq(s.ended_up_us, s.started_up_us);
	cr_expect_eq(s.how, HOW_SIGNAL);
	cr_expect_eq(state_exit_code(&s), 137);
	cr_expect_str_eq(s.text, "why?not");
	close(fd);
	unlinkat(dir, "state", 0);
	close(dir);
	rmdir(scratch);
}

/* Those of shepherds that were started before gpuqd was upgraded. */
Test(local_parts, a_state_without_the_clock_of_the_boot_is_read)
{
	static const char text[] = "\nstarting boot=b at=1\n\nstarted pid=7 ticks=8 at=9\n"
				   "\nended how=exit code=3 at=10 text=up=1 and more\n";
	int dir = open_scratch(), fd = state_open(dir);
	struct pod_state s;

	cr_assert_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	cr_assert_eq(state_read(dir, &s, NULL), 0);
	cr_expect_eq(s.pid, 7);
	cr_expect_eq(s.started_us, 9);
	cr_expect_eq(s.started_up_us, 0);
	cr_expect_eq(s.how, HOW_EXIT);
	cr_expect_eq(s.code, 3);
	cr_expect_eq(s.ended_us, 10);
	cr_expect_eq(s.ended_up_us, 0);
	cr_expect_str_eq(s.text, "up=1 and more");
	close(fd);
	unlinkat(dir, "state", 0);
	close(dir);
	rmdir(scratch);
}

Test(local_parts, a_lock_is_seen_without_being_taken)
{
	int dir = open_scratch(), lock;

	cr_expect_not(state_locked(dir));
	lock = state_lock(dir);
	cr_assert_geq(lock, 0);
	cr_expect(state_locked(dir));
	cr_expect_lt(state_lock(dir), 0);
	close(lock);
	cr_expect_not(state_locked(dir));
	unlinkat(dir, "lock", 0);
	close(dir);
	rmdir(scratch);
}

Test(local_parts, devices_are_read_from_the_drivers_directory)
{
	static const char one[] = "Model: \t\t NVIDIA A100-SXM4-80GB\nIRQ:   \t\t 1\n"
				  "GPU UUID: \t GPU-1111\nBus Location: \t 0000:3b:00.0\n"
				  "Device Minor: \t 7\n";
	static const char two[] = "Model: \t\t Tesla V100 (32GB)\nGPU UUID: \t GPU-????????\n";
	char path[64], *text = NULL;
	size_t n = 0;
	FILE *out;
	int dir = open_scratch(), d;

	mkdirat(dir, "0000:d8:00.0", 0700);
	mkdirat(dir, "0000:3b:00.0", 0700);
	d = openat(dir, "0000:3b:00.0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put_file(d, "information", one, strlen(one));
	close(d);
	d = openat(dir, "0000:d8:00.0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put_file(d, "information", two, strlen(two));
	close(d);
	out = open_memstream(&text, &n);
	cr_expect_eq(devices_print_proc(scratch, out), 2);
	fclose(out);
	cr_expect_str_eq(text, "GPU-1111\tNVIDIA-A100-SXM4-80GB\t0\t1\t\t7\n"
			       "\tTesla-V100--32GB-\t0\t1\t\t-1\n");
	free(text);
	snprintf(path, sizeof(path), "%s/none", scratch);
	out = fopen("/dev/null", "w");
	cr_expect_eq(devices_print_proc(path, out), 0);
	fclose(out);
	unlinkat(dir, "0000:3b:00.0/information", 0);
	unlinkat(dir, "0000:d8:00.0/information", 0);
	unlinkat(dir, "0000:3b:00.0", AT_REMOVEDIR);
	unlinkat(dir, "0000:d8:00.0", AT_REMOVEDIR);
	close(dir);
	rmdir(scratch);
}
