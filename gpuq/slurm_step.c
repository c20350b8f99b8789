/* srun inside a job: the tasks of this pod, side by side.
 *
 * A script runs once in every pod, so each pod starts its own part of the tasks. Their
 * output comes by lines, never mixed; when one of them fails the others are told to end,
 * and a little later made to. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuq/slurm.h"

#define TASKS_MAX 1024
#define KILL_AFTER_US 5000000
#define LINE_MAX_BYTES 65536

struct task {
	pid_t pid; /* 0 = has ended */
	int fd[2]; /* its output and errors; -1 = closed */
	struct gpuq_buf line[2];
	long rank;
	int code;
};

struct tasks {
	struct task *items;
	int n, n_alive, code;
	bool label, failed;
	int64_t kill_at_us; /* those that were told to end; 0 = none was */
};

static long number(const char *text, long dflt)
{
	char *end;
	const long n = text && *text ? strtol(text, &end, 10) : -1;

	return n >= 0 && !*end ? n : dflt;
}

static void put_line(const struct tasks *t, struct task *k, int which, bool whole)
{
	FILE *f = which ? stderr : stdout;
	struct gpuq_buf *b = &k->line[which];

	if (!b->len)
		return;
	if (t->label)
		fprintf(f, "%ld: ", k->rank);
	fwrite(b->data, 1, b->len, f);
	if (!whole)
		fputc('\n', f);
	fflush(f);
	gpuq_buf_clear(b);
}

static void read_some(struct tasks *t, struct task *k, int which)
{
	char bytes[8192];
	const ssize_t n = read(k->fd[which], bytes, sizeof(bytes));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		put_line(t, k, which, false);
		close(k->fd[which]);
		k->fd[which] = -1;
		return;
	}
	for (ssize_t at = 0; at < n;) {
		const char *end = memchr(bytes + at, '\n', (size_t)(n - at));
		const size_t len = end ? (size_t)(end + 1 - bytes - at) : (size_t)(n - at);

		gpuq_buf_add(&k->line[which], bytes + at, len);
		if (end || k->line[which].len > LINE_MAX_BYTES)
			put_line(t, k, which, end != NULL);
		at += (ssize_t)len;
	}
}

static void tell_all(struct tasks *t, int signo)
{
	for (int i = 0; i < t->n; i++)
		if (t->items[i].pid > 0)
			kill(-t->items[i].pid, signo);
}

static void reap(struct tasks *t)
{
	for (int i = 0; i < t->n; i++) {
		struct task *k = &t->items[i];
		int status;

		if (k->pid <= 0 || waitpid(k->pid, &status, WNOHANG) != k->pid)
			continue;
		k->pid = 0;
		t->n_alive--;
		k->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		/* Those that were made to end because of another say nothing of their own. */
		if (!t->failed && k->code > t->code)
			t->code = k->code;
		if (k->code && !t->failed) {
			t->failed = true;
			t->kill_at_us = cli_mono_us() + KILL_AFTER_US;
			if (t->n_alive)
				cli_say("srun: task %ld ended with %d: the others end too", k->rank,
					k->code);
			tell_all(t, SIGTERM);
		}
	}
}

static bool any_open(const struct tasks *t)
{
	for (int i = 0; i < t->n; i++)
		if (t->items[i].fd[0] >= 0 || t->items[i].fd[1] >= 0)
			return true;
	return false;
}

static void attend_all(struct tasks *t)
{
	struct pollfd *fds = calloc((size_t)t->n * 2, sizeof(*fds));
	int signo;

	while (fds && (t->n_alive > 0 || any_open(t))) {
		for (int i = 0; i < t->n * 2; i++)
			fds[i] = (struct pollfd){ t->items[i / 2].fd[i % 2], POLLIN, 0 };
		poll(fds, (nfds_t)t->n * 2, 100);
		for (int i = 0; i < t->n * 2; i++)
			if (fds[i].fd >= 0 && fds[i].revents)
				read_some(t, &t->items[i / 2], i % 2);
		reap(t);
		signo = cli_signals_take();
		if (signo)
			tell_all(t, signo);
		if (t->kill_at_us && cli_mono_us() >= t->kill_at_us) {
			tell_all(t, SIGKILL);
			t->kill_at_us = 0;
			/* What they have started and left behind may keep our pipes. */
			if (t->n_alive == 0)
				break;
		}
	}
	free(fds);
}

static void set_number(const char *name, long n)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", n);
	setenv(name, text, 1);
}

/* Its share of the devices that this pod sees. */
static void set_devices(long local, long each)
{
	const char *all = getenv("CUDA_VISIBLE_DEVICES");
	struct gpuq_buf mine = GPUQ_BUF_INIT;
	long at = 0;

	while (all && *all) {
		const size_t n = strcspn(all, ",");

		if (at >= local * each && at < (local + 1) * each)
			gpuq_buf_printf(&mine, "%s%.*s", mine.len ? "," : "", (int)n, all);
		at++;
		all += n + (all[n] == ',');
	}
	setenv("CUDA_VISIBLE_DEVICES", gpuq_buf_str(&mine), 1);
	gpuq_buf_done(&mine);
}

struct plan {
	long ntasks, local, first; /* of the job; of this pod; the first of this pod */
	long pod, gpus_per_task;
	const char *chdir;
};

static void become(const struct plan *p, long local, char **command)
{
	static const char *const places[][2] = { { "GPUQ_LOCALID", "SLURM_LOCALID" },
						 { "GPUQ_PROCID", "SLURM_PROCID" } };

	for (int i = 0; i < 2; i++) {
		set_number(places[0][i], local);
		set_number(places[1][i], p->first + local);
	}
	set_number("SLURM_NODEID", p->pod);
	set_number("SLURM_NTASKS", p->ntasks);
	set_number("SLURM_NPROCS", p->ntasks);
	set_number("SLURM_STEP_NUM_TASKS", p->ntasks);
	if (p->gpus_per_task > 0)
		set_devices(local, p->gpus_per_task);
	if (p->chdir && chdir(p->chdir) < 0) {
		fprintf(stderr, "gpuq: srun: %s: %s\n", p->chdir, strerror(errno));
		_exit(1);
	}
	setpgid(0, 0);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	execvp(command[0], command);
	fprintf(stderr, "gpuq: srun: %s: %s\n", command[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static int start(struct tasks *t, const struct plan *p, char **command)
{
	for (long i = 0; i < p->local; i++) {
		struct task *k = &t->items[i];
		int out[2], err[2];

		*k = (struct task){ .fd = { -1, -1 }, .rank = p->first + i };
		t->n++;
		if (pipe2(out, O_CLOEXEC) < 0)
			return -1;
		if (pipe2(err, O_CLOEXEC) < 0) {
			close(out[0]);
			close(out[1]);
			return -1;
		}
		fflush(NULL);
		k->pid = fork();
		if (k->pid == 0) {
			/* Only the first task reads what comes in. */
			const int in = i ? open("/dev/null", O_RDONLY | O_CLOEXEC) : 0;

			dup2(in, 0);
			dup2(out[1], 1);
			dup2(err[1], 2);
			become(p, i, command);
		}
		close(out[1]);
		close(err[1]);
		k->fd[0] = out[0];
		k->fd[1] = err[0];
		if (k->pid < 0)
			return -1;
		setpgid(k->pid, k->pid);
		t->n_alive++;
	}
	return 0;
}

int slurm_step(struct cli *c)
{
	const char *const *val = c->args.val;
	const long pods = number(getenv("GPUQ_NNODES"), 1);
	struct plan p = { .pod = number(getenv("GPUQ_POD_INDEX"), 0),
			  .gpus_per_task = number(val[OPT_S_GPUS_PER_TASK], 0),
			  .chdir = val[OPT_S_CHDIR] };
	const long asked_pods = number(val[OPT_S_NNODES], pods);
	const long some = asked_pods > 0 && asked_pods < pods ? asked_pods : pods;
	struct tasks t = { .label = opt_given(&c->args, OPT_S_LABEL) };
	long per_pod = number(val[OPT_S_PER_NODE], 0);

	p.ntasks = number(val[OPT_S_NTASKS], 0);
	if (!per_pod && p.ntasks)
		per_pod = (p.ntasks + some - 1) / some;
	if (!per_pod)
		per_pod = number(getenv("GPUQ_NTASKS_PER_NODE"), 1);
	if (!p.ntasks)
		p.ntasks = val[OPT_S_PER_NODE] || val[OPT_S_NNODES]
				   ? per_pod * some
				   : number(getenv("GPUQ_NTASKS"), per_pod * some);
	p.first = p.pod * per_pod;
	p.local = p.pod >= some || p.first >= p.ntasks ? 0
		  : p.first + per_pod > p.ntasks       ? p.ntasks - p.first
						       : per_pod;
	if (p.local > TASKS_MAX)
		return cli_usage(c, "expected at most %d tasks in one pod", TASKS_MAX), 1;
	t.items = calloc((size_t)p.local + 1, sizeof(*t.items));
	if (!t.items) {
		cli_say("out of memory");
		return 1;
	}
	cli_signals_catch();
	if (start(&t, &p, c->args.rest) < 0) {
		cli_say("srun: a task could not be started: %s", strerror(errno));
		t.failed = true;
		t.code = 1;
		tell_all(&t, SIGKILL);
	}
	attend_all(&t);
	for (int i = 0; i < t.n; i++)
		for (int k = 0; k < 2; k++)
			gpuq_buf_done(&t.items[i].line[k]);
	free(t.items);
	return t.code;
}
