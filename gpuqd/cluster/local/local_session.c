/* The daemon's end of a session: a connection to the pod's shepherd, which does the rest
 * (talk.h). The session ends with the connection. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>

#include "gpuqd/cluster/local/local_session.h"
#include "gpuqd/cluster/local/local_pod.h"
#include "gpuqd/cluster/local/shepherd/talk.h"

struct cluster_session {
	struct local *l;
	struct session_sink sink;
	int fd;
	struct event *readable, *writable;
	struct loop_timer *soon; /* frames that were not handed on while it was paused */
	struct gpuq_buf in, out;
	bool paused, wait_drain, busy, closed, over;
};

static void session_free(struct cluster_session *s)
{
	if (s->readable)
		event_free(s->readable);
	if (s->writable)
		event_free(s->writable);
	loop_cancel(s->soon);
	if (s->fd >= 0)
		close(s->fd);
	gpuq_buf_done(&s->in);
	gpuq_buf_done(&s->out);
	free(s);
}

static void end(struct cluster_session *s, int exit_code, const struct gpuq_err *err)
{
	if (s->over)
		return;
	s->over = true;
	event_del(s->readable);
	event_del(s->writable);
	s->sink.ended(s->sink.arg, exit_code, err);
}

static void fail(struct cluster_session *s, int code, const char *text, size_t n)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	gpuq_fail(&err, code, "%.*s", (int)n, text);
	end(s, 0, &err);
}

static void on_frame(struct cluster_session *s, const struct talk_frame *f)
{
	char text[16];

	switch (f->type) {
	case TALK_OPEN:
		s->sink.opened(s->sink.arg);
		break;
	case TALK_OUT:
	case TALK_ERR:
		s->paused =
			!s->sink.data(s->sink.arg, f->type == TALK_OUT ? SESSION_OUT : SESSION_ERR,
				      f->bytes, f->n);
		break;
	case TALK_OUT_END:
		s->sink.eof(s->sink.arg);
		break;
	case TALK_EXIT:
		snprintf(text, sizeof(text), "%.*s", (int)(f->n < 15 ? f->n : 15), f->bytes);
		end(s, (int)strtol(text, NULL, 10), NULL);
		break;
	case TALK_FAIL:
		fail(s, GPUQ_ECONFLICT, f->bytes, f->n);
		break;
	default:
		break; /* a newer shepherd's */
	}
}

/* Hand on what is whole, as long as it is wanted. false: the session is gone. */
static bool hand_on(struct cluster_session *s)
{
	size_t at = 0;
	long n = 0;

	s->busy = true;
	while (!s->paused && !s->over && !s->closed) {
		struct talk_frame f;

		n = talk_next(s->in.data + at, s->in.len - at, &f);
		if (n <= 0)
			break;
		at += (size_t)n;
		on_frame(s, &f);
	}
	gpuq_buf_drop(&s->in, at);
	if (n < 0)
		fail(s, GPUQ_EPROTO, "the pod's shepherd does not speak as expected", 46);
	s->busy = false;
	if (!s->closed)
		return true;
	session_free(s);
	return false;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	static const char gone[] = "the connection to the job is lost: it has ended, or its "
				   "shepherd has";
	struct cluster_session *s = arg;
	ssize_t n;

	(void)what;
	if (gpuq_buf_reserve(&s->in, TALK_BUFFER_BYTES) < 0)
		abort(); /* as loop_after: a gap in a stream cannot be mended */
	n = recv(fd, s->in.data + s->in.len, TALK_BUFFER_BYTES, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		s->in.len += (size_t)n;
		if (hand_on(s) && s->paused)
			event_del(s->readable);
		return;
	}
	s->busy = true;
	fail(s, GPUQ_EGONE, gone, sizeof(gone) - 1);
	s->busy = false;
	if (s->closed)
		session_free(s);
}

static void on_soon(void *arg)
{
	struct cluster_session *s = arg;

	s->soon = NULL;
	if (hand_on(s) && !s->paused && !s->over)
		event_add(s->readable, NULL);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct cluster_session *s = arg;
	ssize_t n = send(fd, s->out.data, s->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

	(void)what;
	if (n > 0)
		gpuq_buf_drop(&s->out, (size_t)n);
	/* When the other end is gone, what it said last is still to be read. */
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		gpuq_buf_clear(&s->out);
	if (s->out.len > 0)
		event_add(s->writable, NULL);
	if (s->wait_drain && s->out.len == 0) {
		s->wait_drain = false;
		s->sink.drained(s->sink.arg);
	}
}

static void sent_soon(struct cluster_session *s)
{
	if (s->out.failed)
		abort(); /* as above */
	if (!s->over)
		event_add(s->writable, NULL);
}

bool local_session_write(struct cluster_session *s, const char *bytes, size_t n)
{
	talk_put_data(&s->out, TALK_IN, bytes, n);
	sent_soon(s);
	s->wait_drain = !s->over && s->out.len > TALK_BUFFER_BYTES;
	return !s->wait_drain;
}

void local_session_eof(struct cluster_session *s)
{
	talk_put(&s->out, TALK_IN_END, NULL, 0);
	sent_soon(s);
}

void local_session_resize(struct cluster_session *s, int cols, int rows)
{
	char text[32];

	snprintf(text, sizeof(text), "%d %d", cols, rows);
	talk_puts(&s->out, TALK_SIZE, text);
	sent_soon(s);
}

void local_session_resume(struct cluster_session *s)
{
	if (!s->paused || s->over)
		return;
	s->paused = false;
	if (!s->soon)
		s->soon = loop_after(s->l->loop, 0, on_soon, s);
}

void local_session_close(struct cluster_session *s)
{
	s->closed = true;
	if (!s->busy)
		session_free(s);
}

/* The path of a socket may be longer than a socket's address holds; the number of the
 * directory's descriptor never is. */
static int dial(int pod_fd, const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	snprintf(un.sun_path, sizeof(un.sun_path), "/proc/self/fd/%d/%s", pod_fd, name);
	if (connect(fd, (const struct sockaddr *)&un, sizeof(un)) == 0)
		return fd;
	close(fd);
	return -1;
}

struct cluster_session *local_session_open(struct cluster *c, const struct pod_ref *ref,
					   const struct session_opts *opts,
					   const struct session_sink *sink, struct gpuq_err *err)
{
	struct local *l = (struct local *)c;
	const struct talk_request r = { .port = opts->kind == SESSION_PORT ? opts->port : 0,
					.input = opts->input,
					.output = opts->output,
					.tty = opts->tty,
					.replay = opts->replay,
					.cols = opts->cols,
					.rows = opts->rows,
					.command = opts->command };
	int pod_fd = local_pod_running(l, ref);
	struct cluster_session *s;

	if (opts->container && *opts->container) {
		if (pod_fd >= 0)
			close(pod_fd);
		gpuq_fail(err, GPUQ_EINVAL, "the local cluster has no containers: leave that out");
		return NULL;
	}
	if (pod_fd < 0) {
		gpuq_fail(err, GPUQ_ECONFLICT, "pod %s does not run", ref->name);
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (s) {
		s->l = l;
		s->sink = *sink;
		talk_request_write(&s->out, &r);
		s->fd = dial(pod_fd, opts->kind == SESSION_ATTACH ? TALK_ATTACH : TALK_EXEC);
	}
	close(pod_fd);
	if (!s || s->fd < 0 || s->out.failed) {
		if (s && s->out.failed)
			gpuq_fail(err, GPUQ_ETOOBIG, "the command is too long");
		else
			gpuq_fail(
				err, GPUQ_ECONFLICT,
				"the shepherd of pod %s takes no sessions: it is ending, or of an "
				"earlier version of gpuqd",
				ref->name);
		if (s)
			session_free(s);
		return NULL;
	}
	s->readable = event_new(loop_base(l->loop), s->fd, EV_READ | EV_PERSIST, on_readable, s);
	s->writable = event_new(loop_base(l->loop), s->fd, EV_WRITE, on_writable, s);
	if (!s->readable || !s->writable || event_add(s->readable, NULL) != 0 ||
	    event_add(s->writable, NULL) != 0)
		abort(); /* as loop_after: a lost wait would be a silent stall */
	return s;
}
