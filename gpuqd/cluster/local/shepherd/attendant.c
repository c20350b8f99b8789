#include "config.h"

#include "gpuqd/cluster/local/shepherd/attendant.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpuqd/cluster/local/shepherd/proctree.h"
#include "gpuqd/cluster/local/shepherd/shepherd_child.h"
#include "gpuqd/cluster/local/shepherd/talk.h"

#define DAEMON_FD 3
#define EXIT_CANNOT_RUN 126
#define REQUEST_MS 10000
#define CONNECT_MS 10000
#define HANGUP_MS 2000 /* between HUP and KILL */
#define LAST_WORDS_MS 30000
#define END_OF_INPUT "\004"

struct attendant {
	const struct order *o;
	const char *dir;
	const struct memlimit *limit;
	const struct devlimit *devices;
	struct talk_request r;
	struct gpuq_arena mem;
	struct gpuq_buf in, out; /* from and to the daemon */
	struct gpuq_buf input; /* for the program or port */
	bool input_end;
	int sig_fd;
	pid_t child;
	int to_fd, out_fd, err_fd; /* -1 = closed; of a terminal or port to_fd is out_fd */
	bool exited, told_out_end;
	int status;
};

static bool flush(struct attendant *a)
{
	ssize_t n = send(DAEMON_FD, a->out.data, a->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		gpuq_buf_drop(&a->out, (size_t)n);
	return !a->out.failed && (n >= 0 || errno == EAGAIN || errno == EINTR);
}

/* Everything that is still to be said, and the end. */
static void __attribute__((noreturn)) leave(struct attendant *a)
{
	struct pollfd p = { .fd = DAEMON_FD, .events = POLLOUT };

	while (a->out.len > 0 && flush(a) && a->out.len > 0 && poll(&p, 1, LAST_WORDS_MS) > 0)
		;
	_exit(0);
}

static void __attribute__((noreturn)) refuse(struct attendant *a, const char *what, int why)
{
	char text[200];

	snprintf(text, sizeof(text), "%s: %s", what, strerror(why));
	talk_puts(&a->out, TALK_FAIL, text);
	leave(a);
}

/* The client has hung up, or the job has ended. */
static void __attribute__((noreturn)) hang_up(struct attendant *a, bool gently)
{
	const struct timespec step = { 0, 50000000 };

	if (a->out_fd >= 0)
		close(a->out_fd); /* of a terminal: its foreground gets HUP */
	if (gently && a->exited)
		_exit(0); /* what it left belongs to the job, and its number may be another's */
	if (gently && a->child > 0) {
		kill(-a->child, SIGHUP);
		kill(-a->child, SIGCONT);
		for (int ms = 0; ms < HANGUP_MS; ms += 50) {
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
			if (proctree_signal(getpid(), 0, 0) == 0)
				break;
			nanosleep(&step, NULL);
		}
	}
	proctree_signal(getpid(), 0, SIGKILL);
	_exit(0);
}

/* ---- the daemon's words ---- */

static void on_frame(struct attendant *a, const struct talk_frame *f)
{
	struct winsize w = { 0 };
	int cols, rows;

	switch (f->type) {
	case TALK_IN:
		if (a->to_fd >= 0 && !a->input_end)
			gpuq_buf_add(&a->input, f->bytes, f->n);
		break;
	case TALK_IN_END:
		if (a->r.tty && a->to_fd >= 0)
			gpuq_buf_adds(&a->input, END_OF_INPUT);
		a->input_end = !a->r.tty;
		break;
	case TALK_SIZE:
		if (!a->r.tty || a->to_fd < 0 || !talk_size_read(f, &cols, &rows))
			break;
		w.ws_col = (unsigned short)cols;
		w.ws_row = (unsigned short)rows;
		ioctl(a->to_fd, TIOCSWINSZ, &w);
		break;
	default:
		break;
	}
}

static void hear(struct attendant *a)
{
	struct talk_frame f;
	size_t at = 0;
	ssize_t n;
	long k;

	if (gpuq_buf_reserve(&a->in, TALK_PIECE_BYTES) < 0)
		hang_up(a, true);
	n = recv(DAEMON_FD, a->in.data + a->in.len, TALK_PIECE_BYTES, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		hang_up(a, true);
	a->in.len += (size_t)n;
	while ((k = talk_next(a->in.data + at, a->in.len - at, &f)) > 0) {
		at += (size_t)k;
		on_frame(a, &f);
	}
	gpuq_buf_drop(&a->in, at);
	if (k < 0)
		hang_up(a, true);
}

static void read_request(struct attendant *a)
{
	struct pollfd p = { .fd = DAEMON_FD, .events = POLLIN };
	struct talk_frame f;
	long k = 0;

	while (k == 0) {
		ssize_t n;

		if (poll(&p, 1, REQUEST_MS) <= 0 || gpuq_buf_reserve(&a->in, TALK_PIECE_BYTES) < 0)
			_exit(0);
		n = recv(DAEMON_FD, a->in.data + a->in.len, TALK_PIECE_BYTES, MSG_DONTWAIT);
		if (n <= 0)
			_exit(0);
		a->in.len += (size_t)n;
		k = talk_next(a->in.data, a->in.len, &f);
	}
	if (k < 0 || !talk_request_read(&f, &a->mem, &a->r) || (!a->r.port && a->r.command.n == 0))
		refuse(a, "unknown request to the shepherd", EINVAL);
	gpuq_buf_drop(&a->in, (size_t)k);
}

/* ---- a program ---- */

static void own(const struct attendant *a, int fd)
{
	if (geteuid() == 0 && fchown(fd, (uid_t)a->o->job_uid, (gid_t)a->o->job_gid) != 0)
		return; /* it works, only not by its name in /dev */
}

static void start_program(struct attendant *a)
{
	const struct winsize w = { .ws_col = (unsigned short)a->r.cols,
				   .ws_row = (unsigned short)a->r.rows };
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 }, master = -1, slave = -1;
	struct shepherd_child c = { .order = a->o,
				    .pod_dir = a->dir,
				    .pod_fd = -1,
				    .lock_fd = -1,
				    .go_fd = -1,
				    .tell_fd = -1,
				    .in_fd = -1,
				    .err_fd = -1,
				    .tty_fd = -1,
				    .command = &a->r.command,
				    .shepherd = getpid() };

	if (a->r.tty) {
		if (openpty(&master, &slave, NULL, NULL, w.ws_col && w.ws_row ? &w : NULL) != 0)
			refuse(a, "cannot create a terminal", errno);
		fcntl(master, F_SETFD, FD_CLOEXEC);
		own(a, slave);
		c.tty_fd = slave;
	} else {
		if ((a->r.input && pipe2(in, O_CLOEXEC) != 0) || pipe2(out, O_CLOEXEC) != 0 ||
		    pipe2(err, O_CLOEXEC) != 0)
			refuse(a, "cannot create a pipe", errno);
		own(a, out[1]);
		own(a, err[1]);
		c.in_fd = in[0];
		c.out_fd = out[1];
		c.err_fd = err[1];
	}
	a->child = fork();
	if (a->child < 0)
		refuse(a, "cannot create a process", errno);
	if (a->child == 0) {
		memlimit_join(a->limit, getpid());
		if (!devlimit_join(a->devices, getpid())) {
			dprintf(c.err_fd >= 0 ? c.err_fd : c.tty_fd,
				"gpuq: cannot set its devices (device_cgroup): %s\n",
				strerror(errno));
			_exit(EXIT_CANNOT_RUN);
		}
		close(DAEMON_FD);
		shepherd_child_run(&c);
	}
	a->to_fd = a->r.tty ? master : in[1];
	a->out_fd = a->r.tty ? master : out[0];
	a->err_fd = err[0];
	for (size_t i = 0; i < 4; i++) {
		const int theirs[] = { slave, in[0], out[1], err[1] };

		if (theirs[i] >= 0)
			close(theirs[i]);
	}
}

/* ---- a port ---- */

static bool dial(int family, int port, int *fd, int *why)
{
	struct sockaddr_in six4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	const struct sockaddr *to =
		family == AF_INET ? (const struct sockaddr *)&six4 : (const struct sockaddr *)&six;
	const socklen_t n = family == AF_INET ? sizeof(six4) : sizeof(six);
	struct pollfd p = { .events = POLLOUT };
	socklen_t len = sizeof(*why);

	six4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	six.sin6_addr = in6addr_loopback;
	*fd = p.fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0) {
		*why = errno;
		return false;
	}
	*why = connect(*fd, to, n) == 0 ? 0 : errno;
	if (*why == EINPROGRESS) {
		*why = ETIMEDOUT;
		if (poll(&p, 1, CONNECT_MS) > 0)
			getsockopt(*fd, SOL_SOCKET, SO_ERROR, why, &len);
	}
	if (*why == 0)
		return true;
	close(*fd);
	*fd = -1;
	return false;
}

/* As the job's user: it reaches nothing that the job could not. */
static void connect_port(struct attendant *a)
{
	char text[80];
	int fd, why, why6;

	if (!shepherd_child_become((uid_t)a->o->job_uid, (gid_t)a->o->job_gid))
		refuse(a, "cannot become the job's user", EPERM);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* forgotten with the old identity */
	if (!dial(AF_INET, a->r.port, &fd, &why) && !dial(AF_INET6, a->r.port, &fd, &why6)) {
		snprintf(text, sizeof(text), "port %d of the job", a->r.port);
		refuse(a, text, why);
	}
	a->to_fd = a->out_fd = fd;
}

/* ---- both ways ---- */

static void feed(struct attendant *a)
{
	ssize_t n = a->input.len ? write(a->to_fd, a->input.data, a->input.len) : 0;

	if (n > 0)
		gpuq_buf_drop(&a->input, (size_t)n);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n >= 0 && !(a->input_end && a->input.len == 0))
		return;
	/* Everything was sent, or there is no reader. */
	gpuq_buf_clear(&a->input);
	a->input_end = false;
	if (a->r.port)
		shutdown(a->to_fd, SHUT_WR);
	else if (!a->r.tty)
		close(a->to_fd);
	if (!a->r.tty)
		a->to_fd = -1;
}

/* false: nothing for now, or the end. */
static bool take(struct attendant *a, int *fd, enum talk_type type)
{
	static char chunk[TALK_PIECE_BYTES];
	ssize_t n = *fd >= 0 ? read(*fd, chunk, sizeof(chunk)) : 0;

	if (n > 0) {
		talk_put_data(&a->out, type, chunk, (size_t)n);
		return true;
	}
	if (*fd < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return false;
	if (a->r.port) {
		talk_put(&a->out, TALK_OUT_END, NULL, 0);
	} else {
		if (*fd == a->to_fd)
			a->to_fd = -1;
		close(*fd);
	}
	*fd = -1;
	return false;
}

static void on_signal(struct attendant *a)
{
	struct signalfd_siginfo si;
	int status;
	pid_t pid;

	while (read(a->sig_fd, &si, sizeof(si)) == (ssize_t)sizeof(si))
		if (si.ssi_signo == SIGTERM) {
			static const char text[] = "the job has ended";

			talk_puts(&a->out, TALK_FAIL, text);
			flush(a);
			hang_up(a, false);
		}
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == a->child) {
			a->exited = true;
			a->status = status;
		}
}

static bool finished(struct attendant *a)
{
	if (!a->r.port)
		return a->exited;
	return a->out_fd < 0 && a->to_fd < 0;
}

static void pump(struct attendant *a)
{
	enum { DAEMON, SIGNALS, OUT, ERR, TO, N };

	while (!finished(a)) {
		const bool room = a->out.len < TALK_BUFFER_BYTES;
		const bool feeds = a->to_fd >= 0 && (a->input.len > 0 || a->input_end);
		struct pollfd p[N] = {
			[DAEMON] = { DAEMON_FD,
				     (short)((a->input.len < TALK_BUFFER_BYTES ? POLLIN : 0) |
					     (a->out.len ? POLLOUT : 0)),
				     0 },
			[SIGNALS] = { a->sig_fd, POLLIN, 0 },
			[OUT] = { room ? a->out_fd : -1, POLLIN, 0 },
			[ERR] = { room ? a->err_fd : -1, POLLIN, 0 },
			[TO] = { feeds ? a->to_fd : -1, POLLOUT, 0 },
		};

		if (poll(p, N, -1) < 0)
			continue;
		if (p[DAEMON].revents & (POLLIN | POLLHUP | POLLERR))
			hear(a);
		if (p[TO].revents)
			feed(a);
		if (p[OUT].revents)
			take(a, &a->out_fd, TALK_OUT);
		if (p[ERR].revents)
			take(a, &a->err_fd, TALK_ERR);
		if (p[SIGNALS].revents)
			on_signal(a);
		if (a->out.len > 0 && !flush(a))
			hang_up(a, true);
	}
}

/* Read the output that a program left in its pipes. Background processes that keep the pipes
 * open are not waited for. */
static void drain(struct attendant *a)
{
	if (a->out_fd >= 0)
		fcntl(a->out_fd, F_SETFL, O_NONBLOCK);
	if (a->err_fd >= 0)
		fcntl(a->err_fd, F_SETFL, O_NONBLOCK);
	while (take(a, &a->out_fd, TALK_OUT) || take(a, &a->err_fd, TALK_ERR))
		if (a->out.len >= TALK_BUFFER_BYTES) {
			struct pollfd p = { .fd = DAEMON_FD, .events = POLLOUT };

			if (!flush(a) || poll(&p, 1, LAST_WORDS_MS) <= 0)
				return;
		}
}

static int quiet_signals(void)
{
	sigset_t all, heard;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&heard);
	sigaddset(&heard, SIGCHLD);
	sigaddset(&heard, SIGTERM);
	return signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
}

void attendant_run(const struct order *o, const char *dir, const struct memlimit *limit,
		   const struct devlimit *devices, int fd, pid_t shepherd)
{
	struct attendant a = { .o = o,
			       .dir = dir,
			       .limit = limit,
			       .devices = devices,
			       .mem = GPUQ_ARENA_INIT(2 * TALK_BYTES_MAX),
			       .to_fd = -1,
			       .out_fd = -1,
			       .err_fd = -1 };
	char text[16];

	/* Nothing of the shepherd's is kept: not its lock, not its other guests. */
	if (fd != DAEMON_FD)
		dup2(fd, DAEMON_FD);
	if (close_range(DAEMON_FD + 1, ~0U, 0) != 0)
		for (int i = DAEMON_FD + 1; i < 1024; i++)
			close(i);
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (getppid() != shepherd)
		_exit(0);
	a.sig_fd = quiet_signals();
	read_request(&a);
	if (a.r.port)
		connect_port(&a);
	else
		start_program(&a);
	talk_put(&a.out, TALK_OPEN, NULL, 0);
	for (size_t i = 0; i < 3; i++) {
		const int ours[] = { a.to_fd, a.out_fd, a.err_fd };

		if (ours[i] >= 0)
			fcntl(ours[i], F_SETFL, O_NONBLOCK);
	}
	pump(&a);
	if (!a.r.port)
		drain(&a);
	snprintf(text, sizeof(text), "%d",
		 a.r.port                ? 0
		 : WIFSIGNALED(a.status) ? 128 + WTERMSIG(a.status)
					 : WEXITSTATUS(a.status));
	talk_puts(&a.out, TALK_EXIT, text);
	leave(&a);
}
