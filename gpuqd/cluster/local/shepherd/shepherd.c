#include "config.h"

#include "gpuqd/cluster/local/shepherd/shepherd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gpuqd/base/clock.h"
#include "gpuqd/base/failpoint.h"
#include "gpuqd/cluster/local/shepherd/devices.h"
#include "gpuqd/cluster/local/shepherd/devlimit.h"
#include "gpuqd/cluster/local/shepherd/log_reader.h"
#include "gpuqd/cluster/local/shepherd/memlimit.h"
#include "gpuqd/cluster/local/shepherd/order.h"
#include "gpuqd/cluster/local/shepherd/proctree.h"
#include "gpuqd/cluster/local/shepherd/shepherd_run.h"
#include "gpuqd/cluster/local/shepherd/state.h"

#define EXIT_USAGE 64
#define EXIT_TROUBLE 71

/* How long the remains of a dead shepherd's job may take to die, in steps of 20 ms. A
 * process that is stuck in the kernel keeps the pod open; the daemon asks again. */
#define STRAY_STEPS 500

static int answer(const char *line)
{
	const size_t n = strlen(line);

	if (write(STDOUT_FILENO, line, n) != (ssize_t)n || write(STDOUT_FILENO, "\n", 1) != 1)
		return EXIT_TROUBLE; /* the daemon is gone; it will examine the state */
	return 0;
}

static int trouble(const char *what, const char *object, int why)
{
	char line[400];

	snprintf(line, sizeof(line), "%s %s: %s", what, object, strerror(why));
	answer(line);
	return EXIT_TROUBLE;
}

/* Everything the daemon wrote is on the disk before anything is started: after a power
 * cut the record of a process that ran is there. */
static int make_durable(int pod_fd)
{
	static const char *const files[] = { "order", "script" };
	int parent, rc = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && rc == 0; i++) {
		int fd = openat(pod_fd, files[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

		if (fd < 0 && errno == ENOENT)
			continue;
		rc = fd < 0 || fsync(fd) != 0 ? -1 : 0;
		if (fd >= 0)
			close(fd);
	}
	if (rc == 0)
		rc = fsync(pod_fd);
	parent = openat(pod_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (rc == 0)
		rc = parent < 0 ? -1 : fsync(parent);
	if (parent >= 0)
		close(parent);
	return rc;
}

/* An earlier shepherd began this pod and is gone without having seen its end. Whether
 * the process ever ran is not known, so it is not started again: what is left is
 * killed, and the pod has failed through no fault of its owner. */
static int bury(int pod_fd, const struct order *o, const struct pod_state *s)
{
	char boot[40], mark[96];
	const struct timespec step = { 0, 20000000 };
	int fd, sid = 0, steps = 0;
	const char *text;

	clock_boot_id(boot);
	snprintf(mark, sizeof(mark), "%s=%s", SHEPHERD_MARK, o->uid);
	if (strcmp(boot, s->boot) != 0) {
		text = "the machine was restarted while the job ran";
	} else if (s->pid == 0) {
		text = "its shepherd was killed before the job began";
	} else {
		text = "its shepherd was killed";
		sid = s->pid;
	}
	while (proctree_kill_stray(sid, s->ticks, (uint32_t)o->job_uid, mark) > 0) {
		if (++steps == STRAY_STEPS)
			return trouble("cannot end what is left of", o->pod, EBUSY);
		nanosleep(&step, NULL);
	}
	memlimit_end(o->uid);
	devlimit_end(o->uid);
	fd = state_open(pod_fd);
	if (fd < 0 || state_put_ended(fd, HOW_INFRA, 0, text) != 0)
		return trouble("cannot write the end of", o->pod, errno);
	close(fd);
	return answer("done");
}

/* pod_fd is the directory, lock_fd its lock. */
static int tend_locked(const char *dir, int pod_fd, int lock_fd, struct gpuq_arena *a)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct pod_state state;
	struct order order;
	pid_t pid;

	if (order_read(pod_fd, a, &order, &err) != 0 || state_read(pod_fd, &state, &err) != 0) {
		answer(err.text);
		return EXIT_TROUBLE;
	}
	if (state.how != HOW_NOT)
		return answer("done");
	if (state.starting)
		return bury(pod_fd, &order, &state);
	if (make_durable(pod_fd) != 0)
		return trouble("cannot make durable", dir, errno);

	/* This process answers the daemon and ends; its child, which is never waited for, stays.
	 * The lock is the open file's and so passes to it without a gap. */
	(void)FAILPOINT("shepherd.durable");
	pid = fork();
	if (pid < 0)
		return trouble("cannot create a process for", dir, errno);
	if (pid > 0)
		return answer("ok");
	return shepherd_run(&order, dir, pod_fd, lock_fd);
}

static int tend(const char *dir)
{
	struct gpuq_arena arena = GPUQ_ARENA_INIT(2 * ORDER_BYTES_MAX);
	int pod_fd, lock_fd, rc;

	pod_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (pod_fd < 0)
		return trouble("cannot open", dir, errno);
	lock_fd = state_lock(pod_fd);
	if (lock_fd < 0)
		return errno == EAGAIN ? answer("busy") : trouble("cannot lock", dir, errno);
	(void)FAILPOINT("shepherd.locked");
	rc = tend_locked(dir, pod_fd, lock_fd, &arena);
	gpuq_arena_done(&arena);
	return rc;
}

/* Nothing of the daemon's comes along: not a socket, not a lock, not a signal mask. */
static void leave_the_daemon_behind(void)
{
	const long most = sysconf(_SC_OPEN_MAX);
	sigset_t none;

	if (close_range(3, ~0U, 0) != 0)
		for (int fd = 3; fd < (most > 0 && most < 65536 ? most : 65536); fd++)
			close(fd);
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	umask(022);
	if (chdir("/") != 0)
		_exit(EXIT_TROUBLE);
}

int shepherd_main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[2], "--devices") == 0) {
		devices_print(stdout);
		return fflush(stdout) == 0 ? 0 : EXIT_TROUBLE;
	}
	if (argc == 4 && strcmp(argv[2], "--use") == 0) {
		const long ms = strtol(argv[3], NULL, 10);

		return ms > 0 && devices_watch(stdout, ms * INT64_C(1000)) == 0 ? 0 : EXIT_TROUBLE;
	}
	if (argc != 3 || (argv[2][0] != '/' && strcmp(argv[2], LOG_READER_FLAG) != 0)) {
		fprintf(stderr,
			"usage: %s --shepherd PODDIR (absolute) | --devices | --use MS | "
			"--read-output\n",
			argc > 0 ? argv[0] : "gpuqd");
		return EXIT_USAGE;
	}
	leave_the_daemon_behind();
	if (strcmp(argv[2], LOG_READER_FLAG) == 0)
		return log_reader_main();
	return tend(argv[2]);
}
