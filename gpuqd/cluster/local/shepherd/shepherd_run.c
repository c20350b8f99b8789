#include "config.h"

#include "gpuqd/cluster/local/shepherd/shepherd_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpuqd/base/clock.h"
#include "gpuqd/base/failpoint.h"
#include "gpuqd/cluster/local/shepherd/devlimit.h"
#include "gpuqd/cluster/local/shepherd/last_words.h"
#include "gpuqd/cluster/local/shepherd/memlimit.h"
#include "gpuqd/cluster/local/shepherd/proctree.h"
#include "gpuqd/cluster/local/shepherd/shepherd_child.h"
#include "gpuqd/cluster/local/shepherd/shepherd_log.h"
#include "gpuqd/cluster/local/shepherd/shepherd_talk.h"
#include "gpuqd/cluster/local/shepherd/state.h"
#include "gpuqd/cluster/local/shepherd/tree.h"
#include "gpuqd/cluster/local/shepherd/unpack.h"
#include "libgpuq/base/write.h"

#define NEVER INT64_MAX
#define ROUND_US INT64_C(50000) /* between looks at what refuses to die */
#define FORK_TRIES 10
#define LAST_READS_MAX 256 /* more than a pipe or a terminal holds */
#define NO_REASON "-" /* none is told */
#define WARNED_US INT64_C(60000000) /* two warnings before the time limit this close are one */
#define TOLD_US INT64_C(2000000) /* a signal and a request this close are one message */

struct run {
	const struct order *o;
	const char *dir;
	int pod_fd, lock_fd, logs_fd, state_fd, ctl_fd, sig_fd;
	char stem[256]; /* of the files of its output */
	int out_fd; /* the job's output comes here; -1 after its end */
	int tell_fd; /* takes struct tell from the child until it is the job; -1 */
	int err_fd; /* the file that its errors go to, where it is the job's own; -1 */
	int in_fd; /* the other end of its input, until `talk` has it; -1 */
	struct shepherd_talk talk;
	struct shepherd_log log;
	struct memlimit limit;
	struct devlimit devices;
	pid_t main;
	bool ended; /* main has; status is its wait status */
	int status;
	bool leaving; /* was signalled to end, from any side */
	bool overtime; /* by the safety net */
	int told_by_signal; /* by a signal to this shepherd */
	int64_t kill_at_us; /* boot clock; NEVER */
	int64_t overtime_at_us; /* boot clock; NEVER */
	int64_t warn_at_us; /* boot clock; NEVER */
	int64_t warned_at_us; /* 0 = never */
	int64_t passed_on_at_us; /* when a signal was last passed on; 0 = never */
	char why[256]; /* it could not start */
	bool redirected; /* the file of its output is known */
};

static int64_t boot_us(void)
{
	return clock_us(CLOCK_BOOTTIME);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t after(int64_t now_us, int64_t delay_us)
{
	return delay_us > NEVER - now_us ? NEVER : now_us + delay_us;
}

/* ---- being told ---- */

/* Say in the output of a script that it is ended, before it writes its own last words. */
static void say_last_words(struct run *r, const char *why)
{
	char line[LAST_WORDS_BYTES];
	const size_t n = strcmp(why, NO_REASON) == 0 ? 0 : last_words(r->o, why, line);

	if (n && r->err_fd >= 0) {
		(void)gpuq_write_all(r->err_fd, line, n);
	} else if (n) {
		shepherd_log_write(&r->log, line, n);
		shepherd_talk_output(&r->talk, line, n, boot_us());
	}
}

/* TERM to the whole group, then time to obey it. A stopped job is woken: it could not
 * obey otherwise. A second request can only shorten the time.
 *
 * A job that was just sent its checkpoint signal has been told in its own way: TERM on
 * top would end it in the middle of what the signal and the grace are for. */
static void begin_leaving(struct run *r, int64_t grace_us, const char *why)
{
	const int64_t now = boot_us();
	const int64_t at = after(now, grace_us < 0 ? 0 : grace_us);
	const bool told = r->passed_on_at_us && now - r->passed_on_at_us < TOLD_US;

	if (!r->leaving && r->main > 0 && !r->ended) {
		say_last_words(r, why);
		if (!told)
			kill(-r->main, SIGTERM);
		kill(-r->main, SIGCONT);
	}
	r->leaving = true;
	if (at < r->kill_at_us)
		r->kill_at_us = at;
}

/* The file `leave` holds the grace in us, and in a line of its own why. False when there is none. */
static bool asked_to_leave(const struct run *r, int64_t *grace_us, char why[64])
{
	char text[96], *end;
	ssize_t n;
	int fd = openat(r->pod_fd, "leave", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	*grace_us = strtoll(text, &end, 10);
	if (*end == '\n')
		snprintf(why, 64, "%.*s", (int)strcspn(end + 1, "\n"), end + 1);
	else
		snprintf(why, 64, NO_REASON);
	return true;
}

/* To end, stop or continue a job is never meant for a part of it. */
static bool means_all(int signal)
{
	return signal == SIGKILL || signal == SIGTERM || signal == SIGSTOP || signal == SIGTSTP ||
	       signal == SIGCONT;
}

/* A signal that is meant for the job's programs. The shell of a script gets it only if
 * it has a handler: without one it would die of it and take the programs along, which
 * is what sbatch avoids by not signalling the batch shell. With steps those alone get it, and
 * SIGTERM as well: as a warning, it comes before a checkpoint. */
static void pass_on(struct run *r, int signal, bool first_only)
{
	const int from = r->talk.n_attendants ? r->main : getpid();

	if (r->main <= 0 || r->ended || signal < 1 || signal >= NSIG)
		return;
	if (!means_all(signal))
		r->passed_on_at_us = boot_us();
	/* With guests beside the job, only what is below its first process is surely its own. */
	if (first_only) {
		kill(r->main, signal);
	} else if (r->o->script && signal == SIGTERM && proctree_has_steps(from)) {
		proctree_signal_programs(from, r->main, signal);
	} else if (r->o->script && !means_all(signal)) {
		proctree_signal_programs(from, r->main, signal);
		if (proctree_catches(r->main, signal))
			kill(r->main, signal);
	} else {
		kill(-r->main, signal);
	}
}

/* The signal before the time limit: gpuqd sends it, and so does the shepherd, for gpuqd may be away. */
static void pass_on_warning(struct run *r, int signal, bool first_only)
{
	const int64_t now = boot_us();

	if (r->warned_at_us && now - r->warned_at_us < WARNED_US)
		return;
	if (r->main > 0)
		r->warned_at_us = now;
	pass_on(r, signal, first_only);
}

static void on_control(struct run *r)
{
	char text[1024];
	ssize_t n = read(r->ctl_fd, text, sizeof(text) - 1);

	if (n <= 0)
		return;
	text[n] = '\0';
	for (char *save, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		int64_t grace_us;
		char why[64];

		if (strncmp(line, "signal ", 7) == 0 && strstr(line, " warning"))
			pass_on_warning(r, (int)strtol(line + 7, NULL, 10), strstr(line, " first"));
		else if (strncmp(line, "signal ", 7) == 0)
			pass_on(r, (int)strtol(line + 7, NULL, 10), strstr(line, " first"));
		else if (strncmp(line, "leave ", 6) == 0)
			begin_leaving(r, strtoll(line + 6, NULL, 10), NO_REASON);
		else if (strcmp(line, "leave") == 0 && asked_to_leave(r, &grace_us, why))
			begin_leaving(r, grace_us, why);
	}
}

/* ---- the job's words ---- */

/* Keep what the child says before it becomes the job. The first file that it names for its
 * output is the only one. */
static void on_message(struct run *r, const struct tell *t)
{
	if (t->type == TELL_WHY) {
		snprintf(r->why, sizeof(r->why), "%.255s", t->text);
	} else if (t->type == TELL_TARGET && !r->redirected && t->text[0] == '/') {
		const struct log_target to = { .dev = t->dev,
					       .ino = t->ino,
					       .uid = (uint32_t)r->o->job_uid,
					       .offset = t->size,
					       .path = t->text };

		r->redirected = true;
		shepherd_log_redirect(r->logs_fd, r->stem, &to);
	}
}

/* One packet is one message; all are there when the other end is closed. */
static void on_tell(struct run *r)
{
	static struct tell t;
	ssize_t n;

	while ((n = last_words_receive(r->tell_fd, &t, sizeof(t), &r->err_fd)) > 0) {
		if ((size_t)n <= offsetof(struct tell, text))
			continue;
		((char *)&t)[n - 1] = '\0';
		on_message(r, &t);
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR) && !r->ended)
		return;
	close(r->tell_fd);
	r->tell_fd = -1;
}

/* Move output to the log; false when the pipe has nothing for now or ended. */
static bool pump(struct run *r)
{
	static char chunk[65536];
	ssize_t n = r->out_fd < 0 ? 0 : read(r->out_fd, chunk, sizeof(chunk));

	if (n > 0) {
		(void)FAILPOINT("shepherd.output"); /* a disk that is slower than the job */
		shepherd_log_write(&r->log, chunk, (size_t)n);
		shepherd_talk_output(&r->talk, chunk, (size_t)n, boot_us());
		return true;
	}
	if (n < 0 && errno == EINTR)
		return true;
	/* A terminal without any opener returns EIO. */
	if ((n == 0 || errno != EAGAIN) && r->out_fd >= 0) {
		close(r->out_fd);
		r->out_fd = -1;
	}
	return false;
}

/* Keep what the job has written before its last process ended. Its output may have been passed
 * to a process that is none of its own and that goes on writing: that does not hold up the end. */
static void drain(struct run *r)
{
	for (int i = 0; i < LAST_READS_MAX && pump(r); i++)
		;
}

/* ---- start ---- */

static int open_all(struct run *r)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return -1;
	r->sig_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	r->ctl_fd = openat(r->pod_fd, "ctl", O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	r->logs_fd = openat(r->pod_fd, "../../logs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r->state_fd = state_open(r->pod_fd);
	if (r->sig_fd < 0 || r->ctl_fd < 0 || r->state_fd < 0)
		return -1;
	shepherd_log_stem(r->o->pod, *r->o->record ? r->o->uid : "", r->stem);
	shepherd_log_open(&r->log, r->logs_fd, r->stem);
	return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Create the job's input and output: a terminal, or pipes. *out is the shepherd's end of its
 * output. */
static int make_streams(struct run *r, struct shepherd_child *c, int *out)
{
	const uid_t uid = (uid_t)r->o->job_uid;
	const gid_t gid = (gid_t)r->o->job_gid;
	int p[2], in[2];

	if (r->o->tty) {
		if (openpty(out, &c->tty_fd, NULL, NULL, NULL) != 0)
			return -1;
		fcntl(*out, F_SETFD, FD_CLOEXEC);
		r->in_fd = fcntl(*out, F_DUPFD_CLOEXEC, 3);
		return geteuid() == 0 ? fchown(c->tty_fd, uid, gid) : 0;
	}
	if (pipe2(p, O_CLOEXEC) != 0)
		return -1;
	*out = p[0];
	c->out_fd = p[1];
	if (r->o->input_open) {
		if (pipe2(in, O_CLOEXEC) != 0)
			return -1;
		c->in_fd = in[0];
		r->in_fd = in[1];
	}
	/* Programs open /dev/stdout by name: it must be theirs. */
	return geteuid() == 0 ? fchown(c->out_fd, uid, gid) : 0;
}

/* False, and r->why, when the rule cannot be set: then the pod does not run, as the key promises. */
static bool limit_devices(struct run *r)
{
	char why[200] = "Input/output error";

	if (!FAILPOINT("shepherd.devices") &&
	    devlimit_begin(&r->devices, r->o->uid, r->o->minors, r->main, why))
		return true;
	snprintf(r->why, sizeof(r->why), "its devices could not be set (device_cgroup): %s", why);
	return false;
}

/* Make the process; it waits for `go` until its number is written down. */
static int make_process(struct run *r)
{
	int out = -1, tell[2] = { -1, -1 }, go[2] = { -1, -1 };
	const struct timespec second = { 1, 0 };
	struct shepherd_child c = {
		.order = r->o,
		.pod_dir = r->dir,
		.pod_fd = r->pod_fd,
		.lock_fd = r->lock_fd,
		.tty_fd = -1,
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
		.shepherd = getpid(),
	};
	int rc = -1;

	if (make_streams(r, &c, &out) != 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, tell) != 0 ||
	    pipe2(go, O_CLOEXEC) != 0)
		goto out;
	c.go_fd = go[0];
	c.tell_fd = tell[1];
	for (int i = 0; i < FORK_TRIES; i++) {
		r->main = fork();
		if (r->main >= 0 || errno != EAGAIN)
			break;
		nanosleep(&second, NULL);
	}
	if (r->main < 0)
		goto out;
	if (r->main == 0) {
		close(go[1]);
		shepherd_child_run(&c);
	}
	(void)FAILPOINT("shepherd.forked");
	memlimit_begin(&r->limit, r->o->uid, r->o->memory_bytes, r->main);
	if (r->o->device_cgroup && !limit_devices(r))
		goto out;
	if (state_put_started(r->state_fd, r->main, proctree_ticks(r->main), state_now_us()) != 0)
		goto out; /* without `go` the child ends by itself */
	(void)FAILPOINT("shepherd.started");
	if (write(go[1], "g", 1) != 1)
		goto out;
	fcntl(out, F_SETFL, O_NONBLOCK);
	r->out_fd = out;
	r->tell_fd = tell[0];
	out = tell[0] = -1;
	rc = 0;
out:
	for (int i = 0; i < 4; i++) {
		const int theirs[] = { c.tty_fd, c.in_fd, c.out_fd, out };

		if (theirs[i] >= 0)
			close(theirs[i]);
	}
	for (int i = 0; i < 2; i++) {
		if (tell[i] >= 0)
			close(tell[i]);
		if (go[i] >= 0)
			close(go[i]);
	}
	return rc;
}

/* ---- end ---- */

static void reap(struct run *r)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (shepherd_talk_reaped(&r->talk, pid) || pid != r->main)
			continue; /* an orphan of the job that came to us */
		r->ended = true;
		r->status = status;
		(void)FAILPOINT("shepherd.exited");
		shepherd_talk_main_ended(&r->talk);
		if (!r->leaving)
			r->kill_at_us = 0; /* a job's end is the end of all its processes */
	}
}

/* The main process has ended: check the others. True when none is left. After an eviction they
 * have the grace period too: a shell dies of TERM at once while its program still saves its
 * work. */
static bool nothing_left(struct run *r)
{
	if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
		return true;
	if (boot_us() >= r->kill_at_us)
		return proctree_signal(getpid(), 0, SIGKILL) == 0;
	return proctree_signal(getpid(), 0, 0) == 0;
}

static enum pod_how how_it_ended(const struct run *r, int *code, const char **text)
{
	static char words[160];
	const bool by_signal = WIFSIGNALED(r->status);
	const int exit_code = by_signal ? 128 + WTERMSIG(r->status) : WEXITSTATUS(r->status);

	*text = r->why;
	*code = exit_code;
	if (r->told_by_signal) {
		snprintf(words, sizeof(words), "its shepherd was stopped by signal %d",
			 r->told_by_signal);
		*text = words;
		return HOW_INFRA;
	}
	if (r->overtime) {
		*text = "it exceeded its time limit without being stopped";
		return HOW_DEADLINE;
	}
	/* As in Slurm, also where one process of several was killed and the rest went on. */
	if (memlimit_hit(&r->limit)) {
		const long long limit = r->o->memory_bytes;

		if (exit_code == 128 + SIGKILL)
			snprintf(words, sizeof(words), "killed at its memory limit of %lld bytes",
				 limit);
		else
			snprintf(words, sizeof(words),
				 "a process of it was killed at the memory limit of %lld bytes; "
				 "it ended with %d",
				 limit, exit_code);
		*text = words;
		*code = exit_code ? exit_code : 128 + SIGKILL; /* 0 would read as success */
		return HOW_OOM;
	}
	if (by_signal) {
		*code = WTERMSIG(r->status);
		return HOW_SIGNAL;
	}
	return HOW_EXIT;
}

/* Write down what all processes of the job used: those that were waited for, and those of its control
 * group, where it has one. It is lost where the disk is full. */
static void write_used(const struct run *r)
{
	struct pod_used u = { -1, -1, -1, -1, -1 };
	struct rusage ru;

	if (getrusage(RUSAGE_CHILDREN, &ru) == 0) {
		u.user_us = ru.ru_utime.tv_sec * INT64_C(1000000) + ru.ru_utime.tv_usec;
		u.system_us = ru.ru_stime.tv_sec * INT64_C(1000000) + ru.ru_stime.tv_usec;
		u.memory_bytes = ru.ru_maxrss * INT64_C(1024);
		u.read_bytes = ru.ru_inblock * INT64_C(512);
		u.written_bytes = ru.ru_oublock * INT64_C(512);
	}
	memlimit_used(&r->limit, &u);
	(void)state_put_used(r->state_fd, &u);
}

/* The end has to be written; a full disk makes it late, never lost. Until then the lock
 * is held and the pod counts as running. */
static void write_end(struct run *r, enum pod_how how, int code, const char *text)
{
	const struct timespec second = { 1, 0 };

	(void)FAILPOINT("shepherd.ending");
	while (state_put_ended(r->state_fd, how, code, text) != 0)
		nanosleep(&second, NULL);
	(void)FAILPOINT("shepherd.ended");
}

static void on_signal(struct run *r)
{
	struct signalfd_siginfo si;

	while (read(r->sig_fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			continue;
		r->told_by_signal = (int)si.ssi_signo;
		begin_leaving(r, r->o->grace_us, NO_REASON);
	}
}

static void wait_a_turn(struct run *r)
{
	const int64_t now = boot_us();
	int64_t until = earlier(r->kill_at_us, earlier(r->overtime_at_us, r->warn_at_us));
	const bool room = shepherd_talk_room(&r->talk, now, &until);
	struct pollfd p[4 + TALK_POLLS_MAX] = {
		{ .fd = r->sig_fd, .events = POLLIN },
		{ .fd = r->ctl_fd, .events = POLLIN },
		{ .fd = room ? r->out_fd : -1, .events = POLLIN },
		{ .fd = r->tell_fd, .events = POLLIN },
	};
	const size_t n = shepherd_talk_polls(&r->talk, p + 4);
	struct timespec ts;

	if ((r->ended || now >= r->kill_at_us) && until > now + ROUND_US)
		until = now + ROUND_US;
	if (until <= now)
		until = now + (r->ended || now >= r->kill_at_us ? ROUND_US : 0);
	ts.tv_sec = (until - now) / 1000000;
	ts.tv_nsec = (until - now) % 1000000 * 1000;
	if (ppoll(p, 4 + n, until == NEVER ? NULL : &ts, NULL) <= 0)
		return;
	if (p[0].revents)
		on_signal(r);
	if (p[3].revents)
		on_tell(r);
	if (p[2].revents)
		pump(r);
	if (p[1].revents)
		on_control(r);
	shepherd_talk_turn(&r->talk, p + 4, n, boot_us());
}

static void tend_job(struct run *r)
{
	for (;;) {
		const int64_t now = boot_us();

		reap(r);
		if (r->ended && nothing_left(r))
			break;
		if (now >= r->warn_at_us) {
			r->warn_at_us = NEVER;
			pass_on_warning(r, (int)r->o->warn_signal, r->o->batch_only);
			r->passed_on_at_us = 0; /* the end itself comes with a TERM of its own */
		}
		if (!r->ended && now >= r->overtime_at_us) {
			r->overtime = true;
			r->overtime_at_us = NEVER;
			begin_leaving(r, r->o->grace_us, "TIME LIMIT");
		}
		if (!r->ended && now >= r->kill_at_us)
			proctree_signal(getpid(), 0, SIGKILL);
		wait_a_turn(r);
	}
	if (r->tell_fd >= 0)
		on_tell(r);
	drain(r);
}

static void to_null(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
}

/* The warning that the job requested (--signal) and the safety net. */
static void set_alarms(struct run *r)
{
	const struct order *o = r->o;
	const int64_t now = boot_us();

	if (o->time_limit_us >= NEVER - SHEPHERD_OVERTIME_US)
		return;
	r->overtime_at_us = after(now, o->time_limit_us + SHEPHERD_OVERTIME_US);
	if (o->warn_signal > 0)
		r->warn_at_us = after(now, o->time_limit_us > o->warn_lead_us
						   ? o->time_limit_us - o->warn_lead_us
						   : 0);
}

int shepherd_run(const struct order *order, const char *dir, int pod_fd, int lock_fd)
{
	struct run r = {
		.o = order,
		.dir = dir,
		.pod_fd = pod_fd,
		.lock_fd = lock_fd,
		.out_fd = -1,
		.tell_fd = -1,
		.err_fd = -1,
		.in_fd = -1,
		.kill_at_us = NEVER,
		.overtime_at_us = NEVER,
		.warn_at_us = NEVER,
	};
	enum pod_how how;
	const char *text;
	int64_t grace_us;
	char why[64];
	int code;

	to_null();
	if (open_all(&r) != 0)
		return 71; /* nothing was begun: the daemon will find that and try again */
	if (asked_to_leave(&r, &grace_us, why)) {
		write_end(&r, HOW_DELETED, 128 + SIGTERM, "evicted before it began");
		return 0;
	}
	(void)FAILPOINT("shepherd.before_starting");
	if (state_put_starting(r.state_fd) != 0)
		return 71;
	(void)FAILPOINT("shepherd.starting");
	shepherd_talk_open(&r.talk, order, dir, pod_fd, &r.limit, &r.devices);
	if (make_process(&r) != 0) {
		if (r.main > 0)
			waitpid(r.main, NULL, 0);
		memlimit_end(order->uid);
		devlimit_end(order->uid);
		write_end(&r, HOW_INFRA, 0,
			  r.why[0] ? r.why : "this machine could not create a process for it");
		return 0;
	}
	shepherd_talk_started(&r.talk, r.in_fd, shepherd_log_reader(r.logs_fd, r.stem));
	set_alarms(&r);
	if (asked_to_leave(&r, &grace_us, why))
		begin_leaving(&r, grace_us, why); /* while it was being made */
	tend_job(&r);
	how = how_it_ended(&r, &code, &text);
	shepherd_log_close(&r.log);
	write_used(&r);
	memlimit_end(order->uid);
	devlimit_end(order->uid);
	write_end(&r, how, code, text);
	if (order->code)
		tree_remove(pod_fd, CODE_DIR);
	shepherd_talk_close(&r.talk, how == HOW_SIGNAL ? 128 + code : code);
	return 0;
}
