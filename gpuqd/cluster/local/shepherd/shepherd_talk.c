#include "config.h"

#include "gpuqd/cluster/local/shepherd/shepherd_talk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpuqd/cluster/local/shepherd/attendant.h"
#include "gpuqd/cluster/local/shepherd/talk.h"

#define LAST_WORDS_MS 5000
#define BACKLOG 16

/* ---- listening ---- */

/* The address may be too long as a path; relative to the directory's descriptor it never is.
 * Only the daemon's user may connect: the mode enforces that, and it is checked again. */
static int listen_at(int pod_fd, const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const mode_t mask = umask(0177);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	unlinkat(pod_fd, name, 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "/proc/self/fd/%d/%s", pod_fd, name);
	if (fd >= 0 &&
	    (bind(fd, (const struct sockaddr *)&un, sizeof(un)) != 0 || listen(fd, BACKLOG) != 0)) {
		close(fd);
		fd = -1;
	}
	umask(mask);
	return fd;
}

static int welcome(int listen_fd)
{
	struct ucred who;
	socklen_t n = sizeof(who);
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 &&
	    (who.uid == 0 || who.uid == geteuid()))
		return fd;
	close(fd);
	return -1;
}

void shepherd_talk_open(struct shepherd_talk *t, const struct order *o, const char *dir, int pod_fd,
			const struct memlimit *limit, const struct devlimit *devices)
{
	*t = (struct shepherd_talk){
		.o = o,
		.dir = dir,
		.limit = limit,
		.devices = devices,
		.exec_fd = listen_at(pod_fd, TALK_EXEC),
		.attach_fd = listen_at(pod_fd, TALK_ATTACH),
		.input_fd = -1,
		.log_fd = -1,
	};
	for (size_t i = 0; i < TALK_ATTACHED_MAX; i++)
		t->attached[i].fd = -1;
}

void shepherd_talk_started(struct shepherd_talk *t, int input_fd, int log_fd)
{
	t->input_fd = input_fd;
	t->log_fd = log_fd;
	if (input_fd >= 0)
		fcntl(input_fd, F_SETFL, O_NONBLOCK);
}

/* ---- attached ---- */

static void let_go(struct attached *a)
{
	if (a->fd >= 0)
		close(a->fd);
	gpuq_buf_done(&a->in);
	gpuq_buf_done(&a->out);
	*a = (struct attached){ .fd = -1 };
}

static void send_some(struct attached *a)
{
	ssize_t n = send(a->fd, a->out.data, a->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		let_go(a);
		return;
	}
	if (n > 0)
		gpuq_buf_drop(&a->out, (size_t)n);
	if (a->out.failed)
		let_go(a);
	else if (n > 0)
		a->stalled_us = 0;
}

/* Send recent output: the end of the log. */
static void replay(const struct shepherd_talk *t, struct attached *a)
{
	static char text[TALK_REPLAY_BYTES];
	struct stat st;
	off_t from;
	ssize_t n;

	if (t->log_fd < 0 || fstat(t->log_fd, &st) != 0)
		return;
	from = st.st_size > TALK_REPLAY_BYTES ? st.st_size - TALK_REPLAY_BYTES : 0;
	n = pread(t->log_fd, text, sizeof(text), from);
	if (n > 0)
		talk_put_data(&a->out, TALK_OUT, text, (size_t)n);
}

static void resize(const struct shepherd_talk *t, int cols, int rows)
{
	const struct winsize w = { .ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows };

	if (t->o->tty && t->input_fd >= 0 && cols > 0 && rows > 0)
		ioctl(t->input_fd, TIOCSWINSZ, &w);
}

static void begin(struct shepherd_talk *t, struct attached *a, const struct talk_frame *f)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(2 * TALK_BYTES_MAX);
	struct talk_request r;

	if (!talk_request_read(f, &mem, &r)) {
		talk_puts(&a->out, TALK_FAIL, "unknown request to the shepherd");
	} else {
		a->begun = true;
		a->input = r.input && t->input_fd >= 0;
		a->output = r.output;
		resize(t, r.cols, r.rows);
		talk_put(&a->out, TALK_OPEN, NULL, 0);
		if (r.replay)
			replay(t, a);
	}
	gpuq_arena_done(&mem);
}

static void on_frame(struct shepherd_talk *t, struct attached *a, const struct talk_frame *f)
{
	int cols, rows;

	if (!a->begun) {
		begin(t, a, f);
	} else if (f->type == TALK_SIZE && talk_size_read(f, &cols, &rows)) {
		resize(t, cols, rows);
	} else if (f->type == TALK_IN && a->input) {
		gpuq_buf_add(&t->input, f->bytes, f->n);
	} else if (f->type == TALK_IN_END && a->input && !t->o->tty) {
		t->input_end = true;
	}
}

static void hear(struct shepherd_talk *t, struct attached *a)
{
	struct talk_frame f;
	size_t at = 0;
	ssize_t n;
	long k;

	if (gpuq_buf_reserve(&a->in, TALK_PIECE_BYTES) < 0) {
		let_go(a);
		return;
	}
	n = recv(a->fd, a->in.data + a->in.len, TALK_PIECE_BYTES, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		let_go(a); /* detached: the job goes on */
		return;
	}
	a->in.len += (size_t)n;
	while ((k = talk_next(a->in.data + at, a->in.len - at, &f)) > 0) {
		at += (size_t)k;
		on_frame(t, a, &f);
	}
	gpuq_buf_drop(&a->in, at);
	if (k < 0)
		let_go(a);
}

static void close_input(struct shepherd_talk *t)
{
	if (t->input_fd >= 0 && !t->o->tty) {
		close(t->input_fd);
		t->input_fd = -1;
	}
	gpuq_buf_done(&t->input);
}

static void feed(struct shepherd_talk *t)
{
	ssize_t n = t->input.len ? write(t->input_fd, t->input.data, t->input.len) : 0;

	if (n > 0)
		gpuq_buf_drop(&t->input, (size_t)n);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		close_input(t); /* the job has closed it */
	else if (t->input_end && t->input.len == 0)
		close_input(t);
}

static void attach(struct shepherd_talk *t)
{
	int fd = welcome(t->attach_fd);

	for (size_t i = 0; fd >= 0 && i < TALK_ATTACHED_MAX; i++)
		if (t->attached[i].fd < 0) {
			t->attached[i] = (struct attached){ .fd = fd };
			return;
		}
	if (fd >= 0)
		close(fd);
}

/* ---- beside the job ---- */

static void attend(struct shepherd_talk *t)
{
	const pid_t shepherd = getpid();
	int fd = welcome(t->exec_fd);
	pid_t pid;

	if (fd < 0)
		return;
	pid = t->n_attendants < TALK_ATTENDANTS_MAX ? fork() : -1;
	if (pid == 0)
		attendant_run(t->o, t->dir, t->limit, t->devices, fd, shepherd);
	if (pid > 0)
		t->attendants[t->n_attendants++] = pid;
	close(fd);
}

bool shepherd_talk_reaped(struct shepherd_talk *t, pid_t pid)
{
	for (size_t i = 0; i < t->n_attendants; i++)
		if (t->attendants[i] == pid) {
			t->attendants[i] = t->attendants[--t->n_attendants];
			return true;
		}
	return false;
}

void shepherd_talk_main_ended(struct shepherd_talk *t)
{
	if (t->exec_fd >= 0)
		close(t->exec_fd);
	if (t->attach_fd >= 0)
		close(t->attach_fd);
	t->exec_fd = t->attach_fd = -1;
	for (size_t i = 0; i < t->n_attendants; i++)
		kill(t->attendants[i], SIGTERM);
}

/* ---- turns ---- */

static bool too_long(const struct attached *a)
{
	return a->out.len > TALK_BUFFER_BYTES;
}

size_t shepherd_talk_polls(const struct shepherd_talk *t, struct pollfd p[TALK_POLLS_MAX])
{
	const bool hungry = t->input.len < TALK_BUFFER_BYTES;
	size_t n = 0;

	if (t->exec_fd >= 0)
		p[n++] = (struct pollfd){ .fd = t->exec_fd, .events = POLLIN };
	if (t->attach_fd >= 0)
		p[n++] = (struct pollfd){ .fd = t->attach_fd, .events = POLLIN };
	if (t->input_fd >= 0 && (t->input.len > 0 || t->input_end))
		p[n++] = (struct pollfd){ .fd = t->input_fd, .events = POLLOUT };
	for (size_t i = 0; i < TALK_ATTACHED_MAX; i++) {
		const struct attached *a = &t->attached[i];

		if (a->fd >= 0)
			p[n++] = (struct pollfd){ .fd = a->fd,
						  .events = (short)((hungry ? POLLIN : 0) |
								    (a->out.len ? POLLOUT : 0)) };
	}
	return n;
}

void shepherd_talk_turn(struct shepherd_talk *t, const struct pollfd *p, size_t n, int64_t now_us)
{
	for (size_t i = 0; i < n; i++) {
		if (!p[i].revents)
			continue;
		if (p[i].fd == t->exec_fd)
			attend(t);
		else if (p[i].fd == t->attach_fd)
			attach(t);
		else if (p[i].fd == t->input_fd)
			feed(t);
		for (size_t k = 0; k < TALK_ATTACHED_MAX; k++) {
			struct attached *a = &t->attached[k];

			if (a->fd < 0 || a->fd != p[i].fd)
				continue;
			if (a->out.len > 0)
				send_some(a);
			if (a->fd >= 0 && p[i].revents & (POLLIN | POLLHUP | POLLERR))
				hear(t, a);
			if (a->fd >= 0 && a->out.len > 0)
				send_some(a);
			if (a->fd >= 0 && too_long(a) && !a->stalled_us)
				a->stalled_us = now_us;
			break;
		}
	}
	if (t->input.failed)
		close_input(t);
}

bool shepherd_talk_room(struct shepherd_talk *t, int64_t now_us, int64_t *until_us)
{
	bool room = true;

	for (size_t i = 0; i < TALK_ATTACHED_MAX; i++) {
		struct attached *a = &t->attached[i];

		if (a->fd < 0 || !too_long(a))
			continue;
		if (!a->stalled_us)
			a->stalled_us = now_us;
		if (now_us - a->stalled_us >= TALK_STALL_US) {
			let_go(a);
			continue;
		}
		if (a->stalled_us + TALK_STALL_US < *until_us)
			*until_us = a->stalled_us + TALK_STALL_US;
		room = false;
	}
	return room;
}

void shepherd_talk_output(struct shepherd_talk *t, const char *bytes, size_t n, int64_t now_us)
{
	for (size_t i = 0; i < TALK_ATTACHED_MAX; i++) {
		struct attached *a = &t->attached[i];

		if (a->fd < 0 || !a->begun || !a->output)
			continue;
		talk_put_data(&a->out, TALK_OUT, bytes, n);
		send_some(a);
		if (a->fd >= 0 && too_long(a) && !a->stalled_us)
			a->stalled_us = now_us;
	}
}

/* The job's end is stored by now, so this delays only attached clients. */
void shepherd_talk_close(struct shepherd_talk *t, int exit_code)
{
	int left_ms = LAST_WORDS_MS;
	char text[16];

	snprintf(text, sizeof(text), "%d", exit_code);
	for (size_t i = 0; i < TALK_ATTACHED_MAX; i++)
		if (t->attached[i].fd >= 0)
			talk_puts(&t->attached[i].out, TALK_EXIT, text);
	for (bool more = true; more && left_ms > 0; left_ms -= 50) {
		struct pollfd p[TALK_ATTACHED_MAX];
		nfds_t n = 0;

		more = false;
		for (size_t i = 0; i < TALK_ATTACHED_MAX; i++) {
			struct attached *a = &t->attached[i];

			if (a->fd >= 0 && a->out.len > 0)
				send_some(a);
			if (a->fd < 0 || a->out.len == 0)
				continue;
			more = true;
			p[n++] = (struct pollfd){ .fd = a->fd, .events = POLLOUT };
		}
		if (more)
			poll(p, n, 50);
	}
	for (size_t i = 0; i < TALK_ATTACHED_MAX; i++)
		let_go(&t->attached[i]);
}
