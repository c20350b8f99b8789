#include "config.h"

#include "gpuq/slurm/slurm_tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuq/cli.h"
#include "libgpuq/buf.h"

#define KILL_AFTER_US 5000000
#define LINE_MAX_BYTES 65536

struct task {
	pid_t pid; /* 0 = has ended */
	int fd[2]; /* its output and errors; -1 = closed, or not through us */
	int to[2]; /* where they go */
	struct gpuq_buf line[2];
	long rank;
	int code;
};

struct run {
	const struct tasks *t;
	struct task *items;
	int n, n_alive, code;
	bool alone, failed;
	int64_t kill_at_us; /* those that were signalled to end; 0 = none was */
};

static void write_all(int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		const ssize_t k = write(fd, bytes, n);

		if (k < 0 && errno != EINTR && errno != EAGAIN)
			return;
		if (k > 0) {
			bytes += k;
			n -= (size_t)k;
		}
	}
}

static void put_line(const struct run *r, struct task *k, int which, bool whole)
{
	struct gpuq_buf *b = &k->line[which], out = GPUQ_BUF_INIT;

	if (!b->len)
		return;
	if (r->t->label)
		gpuq_buf_printf(&out, "%ld: ", k->rank);
	gpuq_buf_add(&out, b->data, b->len);
	if (!whole)
		gpuq_buf_addc(&out, '\n');
	write_all(k->to[which], out.data, out.len);
	gpuq_buf_clear(b);
	gpuq_buf_done(&out);
}

static void read_some(struct run *r, struct task *k, int which)
{
	char bytes[8192];
	const ssize_t n = read(k->fd[which], bytes, sizeof(bytes));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		put_line(r, k, which, false);
		close(k->fd[which]);
		k->fd[which] = -1;
		return;
	}
	for (ssize_t at = 0; at < n;) {
		const char *end = memchr(bytes + at, '\n', (size_t)(n - at));
		const size_t len = end ? (size_t)(end + 1 - bytes - at) : (size_t)(n - at);

		gpuq_buf_add(&k->line[which], bytes + at, len);
		if (end || k->line[which].len > LINE_MAX_BYTES)
			put_line(r, k, which, end != NULL);
		at += (ssize_t)len;
	}
}

/* One alone is in our own group, where a terminal's signals reach it without us. */
static void tell_all(const struct run *r, int signo)
{
	for (int i = 0; i < r->n; i++)
		if (r->items[i].pid > 0)
			kill(r->alone ? r->items[i].pid : -r->items[i].pid, signo);
}

/* ---- signals that are the tasks' ---- */

/* Signals that srun has no use for itself and passes on, as srun(1) says. */
static const int theirs[] = { SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM };

#define N_THEIRS (sizeof(theirs) / sizeof(theirs[0]))

static volatile sig_atomic_t caught[N_THEIRS];

static void on_theirs(int signo)
{
	for (size_t i = 0; i < N_THEIRS; i++)
		if (theirs[i] == signo)
			caught[i] = 1;
}

static void catch_theirs(void)
{
	struct sigaction sa = { .sa_handler = on_theirs }, before;

	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < N_THEIRS; i++)
		/* A signal that is ignored, as by nohup, stays so. */
		if (sigaction(theirs[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(theirs[i], &sa, NULL);
}

static void pass_on(const struct run *r)
{
	for (size_t i = 0; i < N_THEIRS; i++) {
		if (!caught[i])
			continue;
		caught[i] = 0;
		tell_all(r, theirs[i]);
	}
}

/* One asked that all end. It does not end by itself. */
static void look_for_abort(struct run *r)
{
	const int code = r->t->aborted && !r->failed ? r->t->aborted(r->t->arg) : -1;

	if (code < 0)
		return;
	r->failed = true;
	r->code = code;
	r->kill_at_us = cli_mono_us() + KILL_AFTER_US;
	if (!r->t->quiet)
		cli_say("error: the program aborted: ending its tasks");
	tell_all(r, SIGTERM);
}

static void reap(struct run *r)
{
	for (int i = 0; i < r->n; i++) {
		struct task *k = &r->items[i];
		int status;

		if (k->pid <= 0 || waitpid(k->pid, &status, WNOHANG) != k->pid)
			continue;
		k->pid = 0;
		r->n_alive--;
		k->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		/* It may fail because of an end that has been asked for. */
		if (k->code)
			look_for_abort(r);
		/* Those that were made to end because of another say nothing of their own. */
		if ((!r->failed || r->t->go_on) && k->code > r->code)
			r->code = k->code;
		if (k->code && !r->t->quiet && !r->failed && r->t->n > 1)
			cli_say("error: task %ld: Exited with exit code %d", k->rank, k->code);
		if (k->code && !r->failed && !r->t->go_on) {
			r->failed = true;
			r->kill_at_us = cli_mono_us() + KILL_AFTER_US;
			if (r->n_alive && !r->t->quiet)
				cli_say("ending the other tasks");
			tell_all(r, SIGTERM);
		}
	}
}

static bool any_open(const struct run *r)
{
	for (int i = 0; i < r->n; i++)
		if (r->items[i].fd[0] >= 0 || r->items[i].fd[1] >= 0)
			return true;
	return false;
}

static void attend_all(struct run *r)
{
	struct pollfd *fds = calloc((size_t)r->n * 2 + 1, sizeof(*fds));
	int signo;

	while (fds && (r->n_alive > 0 || any_open(r))) {
		for (int i = 0; i < r->n * 2; i++)
			fds[i] = (struct pollfd){ r->items[i / 2].fd[i % 2], POLLIN, 0 };
		poll(fds, (nfds_t)r->n * 2, r->alone ? 20 : 100);
		for (int i = 0; i < r->n * 2; i++)
			if (fds[i].fd >= 0 && fds[i].revents)
				read_some(r, &r->items[i / 2], i % 2);
		look_for_abort(r);
		reap(r);
		signo = cli_signals_take();
		if (signo && !(r->alone && signo == SIGINT && isatty(0)))
			tell_all(r, signo);
		pass_on(r);
		if (r->kill_at_us && cli_mono_us() >= r->kill_at_us) {
			tell_all(r, SIGKILL);
			r->kill_at_us = 0;
			/* Background processes of the tasks may keep the pipes open. */
			if (r->n_alive == 0)
				break;
		}
	}
	free(fds);
}

/* Where task i's stream goes: a file of its own, that of the task before, or ours. */
static int open_to(const struct run *r, long i, const char *pattern, int ours)
{
	const int mode = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
	const char *path, *before = NULL;
	int fd;

	if (!pattern)
		return ours;
	path = strcmp(pattern, "none") ? r->t->path(r->t->arg, pattern, i) : "/dev/null";
	if (i > 0)
		before = r->t->path(r->t->arg, pattern, i - 1);
	fd = open(path,
		  mode | (r->t->truncate && !(before && strcmp(before, path) == 0) ? O_TRUNC : 0),
		  0666);
	if (fd < 0)
		cli_say("error: cannot open '%s': %s", path, strerror(errno));
	return fd;
}

/* The first reads what we do, the others nothing. */
static int open_from(const struct run *r, long i)
{
	const char *path = r->t->input;

	if (!path)
		return i ? open("/dev/null", O_RDONLY | O_CLOEXEC) : 0;
	if (strcmp(path, "none") == 0)
		path = "/dev/null";
	else
		path = r->t->path(r->t->arg, path, i);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int pipe_to(int fd[2], int *end)
{
	if (pipe2(fd, O_CLOEXEC) < 0)
		return -1;
	*end = fd[0];
	return 0;
}

static void child(const struct run *r, struct task *k, long i, int out[2], int err[2], int in)
{
	const int outs = r->alone ? k->to[0] : out[1], errs = r->alone ? k->to[1] : err[1];

	if (in != 0)
		dup2(in, 0);
	if (outs != 1)
		dup2(outs, 1);
	if (errs != 2)
		dup2(errs, 2);
	if (!r->alone)
		setpgid(0, 0);
	r->t->become(r->t->arg, i);
}

static int start_one(struct run *r, long i)
{
	struct task *k = &r->items[i];
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };
	const int in = open_from(r, i);

	*k = (struct task){ .fd = { -1, -1 }, .rank = r->t->first + i };
	r->n++;
	k->to[0] = open_to(r, i, r->t->output, 1);
	k->to[1] = r->t->error ? open_to(r, i, r->t->error, 2) : r->t->output ? k->to[0] : 2;
	if (in < 0)
		cli_say("error: cannot open the input of task %ld: %s", k->rank, strerror(errno));
	if (in < 0 || k->to[0] < 0 || k->to[1] < 0)
		return -1;
	if (!r->alone && (pipe_to(out, &k->fd[0]) < 0 || pipe_to(err, &k->fd[1]) < 0)) {
		cli_say("error: a task could not be started: %s", strerror(errno));
		if (out[1] >= 0)
			close(out[1]);
		return -1;
	}
	fflush(NULL);
	if (r->t->prepare)
		r->t->prepare(r->t->arg, i);
	k->pid = cli_fork(SIG_DFL);
	if (k->pid == 0)
		child(r, k, i, out, err, in);
	if (!r->alone) {
		close(out[1]);
		close(err[1]);
	}
	if (in > 0)
		close(in);
	if (k->pid < 0) {
		cli_say("error: a task could not be started: %s", strerror(errno));
		return -1;
	}
	if (!r->alone)
		setpgid(k->pid, k->pid);
	r->n_alive++;
	return 0;
}

int tasks_run(const struct tasks *t)
{
	struct run r = { .t = t, .alone = t->n == 1 && !t->label };

	r.items = calloc((size_t)t->n + 1, sizeof(*r.items));
	if (!r.items) {
		cli_say("error: out of memory");
		return 1;
	}
	/* By this name the shepherd knows it from the tasks, which alone are signalled. */
	prctl(PR_SET_NAME, "srun");
	cli_signals_catch();
	catch_theirs();
	for (long i = 0; i < t->n; i++)
		if (start_one(&r, i) < 0) {
			r.failed = true;
			r.code = 1;
			tell_all(&r, SIGKILL);
			break;
		}
	attend_all(&r);
	for (int i = 0; i < r.n; i++)
		for (int k = 0; k < 2; k++) {
			gpuq_buf_done(&r.items[i].line[k]);
			if (r.items[i].to[k] > 2 &&
			    (k == 0 || r.items[i].to[0] != r.items[i].to[1]))
				close(r.items[i].to[k]);
		}
	free(r.items);
	return r.code;
}
