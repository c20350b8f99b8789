#include "gpuqd/cluster/kube/session.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/kube/watch/decode.h"
#include "gpuqd/cluster/kube/http/status.h"
#include "gpuqd/cluster/kube/http/url.h"
#include "gpuqd/cluster/kube/http/websocket.h"

#define REMOTE "v5.channel.k8s.io, v4.channel.k8s.io"
#define PORTS "v4.channel.k8s.io"
#define CLOSE_CHANNEL "\377"
#define HANG_UP "\003\004" /* an interrupt and the end of input, as keys */
#define LINGER_US INT64_C(10000000) /* of a port, after our half was closed */
#define REPLAY_LINES "500"
#define RIGHTS "etc/kubernetes/optional/exec.yaml gives it"

enum channel { IN = 0, OUT = 1, ERRS = 2, STATUS = 3, RESIZE = 4, PORT_DATA = 0, PORT_ERROR = 1 };

struct cluster_session {
	struct loop *loop;
	struct http *http;
	char *path;
	enum session_kind kind;
	bool tty;
	struct session_sink sink;
	struct http_req *log; /* what it begins with */
	struct websocket *ws;
	struct loop_timer *linger;
	int64_t heard_us;
	size_t skip[2]; /* of a port's channels: the number of the port, which comes first */
	bool v5, open, eof, busy, closed, over, log_paused;
};

static void destroy(struct cluster_session *s)
{
	http_cancel(s->log);
	websocket_close(s->ws);
	loop_cancel(s->linger);
	free(s->path);
	free(s);
}

static void on_doom(void *arg)
{
	destroy(arg);
}

static void end(struct cluster_session *s, int exit_code, const struct gpuq_err *err)
{
	if (s->over)
		return;
	s->over = true;
	loop_cancel(s->linger);
	s->linger = NULL;
	s->busy = true;
	s->sink.ended(s->sink.arg, exit_code, err);
	s->busy = false;
	if (s->closed) /* whoever told us of the end stands on it still */
		loop_after(s->loop, 0, on_doom, s);
}

static void fail(struct cluster_session *s, int code, const char *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	gpuq_fail(&err, code, "%s", text);
	end(s, 0, &err);
}

/* ---- how it ends ---- */

static int code_of(const json_t *status)
{
	size_t i;
	json_t *c;

	json_array_foreach(kube_path(status, "details", "causes"), i,
			   c) if (strcmp(kube_str(c, "reason"), "ExitCode") ==
				  0) return (int)strtol(kube_str(c, "message"), NULL, 10);
	return -1;
}

/* A program that is not there never was: as a shell says it. */
static int not_run(const char *message)
{
	if (strstr(message, "executable file not found") ||
	    strstr(message, "no such file or directory"))
		return 127;
	return strstr(message, "permission denied") || strstr(message, "exec format error") ? 126
											    : -1;
}

static void on_status(struct cluster_session *s, const char *bytes, size_t n)
{
	json_t *st = json_loadb(bytes, n, JSON_ALLOW_NUL, NULL);
	const char *message = kube_str(st, "message");
	struct gpuq_buf text = GPUQ_BUF_INIT;
	int code = code_of(st);

	if (strcmp(kube_str(st, "status"), "Success") == 0) {
		end(s, 0, NULL);
	} else if (code >= 0) {
		end(s, code, NULL);
	} else if (s->kind == SESSION_EXEC && not_run(message) > 0) {
		gpuq_buf_printf(&text, "gpuq: %s\n", message);
		s->sink.data(s->sink.arg, SESSION_ERR, text.data, text.len);
		end(s, not_run(message), NULL);
	} else {
		fail(s, GPUQ_EIO, *message ? message : "the cluster reports no cause of its end");
	}
	gpuq_buf_done(&text);
	json_decref(st);
}

static void refused(struct cluster_session *s, const struct http_answer *a)
{
	static const char *const things[] = { "exec", "attach", "portforward" };
	char text[600];
	struct status st;

	status_read(a, &st);
	switch (st.kind) {
	case STATUS_CLUSTER:
	case STATUS_FORBIDDEN:
		snprintf(text, sizeof(text),
			 "gpuqd lacks the right to get and create pods/%s (" RIGHTS "): %s",
			 things[s->kind], st.text);
		fail(s, GPUQ_EPERM, text);
		break;
	case STATUS_GONE:
		fail(s, GPUQ_EGONE, "the pod is gone from the cluster");
		break;
	case STATUS_REFUSED:
		fail(s, GPUQ_ECONFLICT, st.text);
		break;
	default:
		fail(s, GPUQ_EIO, st.text);
	}
}

static void on_ended(void *arg, const struct http_answer *a)
{
	struct cluster_session *s = arg;

	if (s->over)
		return;
	if (!s->open)
		refused(s, a);
	else if (s->kind == SESSION_PORT && (a->complete || s->eof))
		end(s, 0, NULL);
	else
		fail(s, GPUQ_EGONE, *a->error ? a->error : "the session broke");
}

/* ---- what comes ---- */

static bool on_port(struct cluster_session *s, enum channel c, const char *bytes, size_t n)
{
	char text[512];
	size_t skip;

	if (c > PORT_ERROR)
		return true;
	skip = s->skip[c] < n ? s->skip[c] : n;
	s->skip[c] -= skip;
	bytes += skip;
	n -= skip;
	if (n > 0 && c == PORT_DATA)
		return s->sink.data(s->sink.arg, SESSION_OUT, bytes, n);
	if (n > 0) {
		snprintf(text, sizeof(text), "%.*s", (int)(n < 500 ? n : 500), bytes);
		fail(s, GPUQ_ECONFLICT, text);
	}
	return true;
}

static bool on_message(void *arg, const struct ws_message *m)
{
	struct cluster_session *s = arg;
	const char *bytes = m->bytes + 1;
	const size_t n = m->n ? m->n - 1 : 0;
	const unsigned char channel = m->n ? (unsigned char)m->bytes[0] : 255;

	s->heard_us = loop_mono_us(s->loop);
	if (s->over || n == 0)
		return true; /* the first message of a channel may be empty */
	if (s->kind == SESSION_PORT)
		return on_port(s, channel, bytes, n);
	if (channel == OUT || channel == ERRS)
		return s->sink.data(s->sink.arg, channel == OUT ? SESSION_OUT : SESSION_ERR, bytes,
				    n);
	if (channel == STATUS)
		on_status(s, bytes, n);
	return true;
}

static void on_drained(void *arg)
{
	struct cluster_session *s = arg;

	if (!s->over)
		s->sink.drained(s->sink.arg);
}

static void on_open(void *arg, const char *protocol)
{
	struct cluster_session *s = arg;

	s->open = true;
	s->v5 = strncmp(protocol, "v5.", 3) == 0;
	s->sink.opened(s->sink.arg);
}

/* ---- how it begins ---- */

static void dial(struct cluster_session *s)
{
	const struct websocket_sink sink = { .arg = s,
					     .open = on_open,
					     .message = on_message,
					     .drained = on_drained,
					     .ended = on_ended };

	s->ws = websocket_open(s->loop, s->http, s->path, s->kind == SESSION_PORT ? PORTS : REMOTE,
			       &sink);
}

/* Print output from before the attach; if it is not available the session still works. */
static void on_log(void *arg, const struct http_answer *a)
{
	struct cluster_session *s = arg;

	s->log = NULL;
	if (a->status == 200 && a->n > 0 &&
	    !s->sink.data(s->sink.arg, SESSION_OUT, a->body, a->n)) {
		s->log_paused = true;
		return;
	}
	dial(s);
}

static void ask_log(struct cluster_session *s, const char *namespace_, const char *pod,
		    const char *container)
{
	struct gpuq_buf path = GPUQ_BUF_INIT;
	struct http_call call = { .method = "GET", .on_end = on_log, .arg = s };

	url_object(&path, namespace_, "pods", pod);
	gpuq_buf_adds(&path, "/log?tailLines=" REPLAY_LINES "&limitBytes=262144");
	if (container)
		url_query(&path, "container", container);
	call.path = gpuq_buf_str(&path);
	s->log = http_start(s->http, &call);
	gpuq_buf_done(&path);
}

static char *make_path(const char *namespace_, const char *pod, const struct session_opts *o)
{
	static const char *const things[] = { "exec", "attach", "portforward" };
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const bool output = o->kind == SESSION_EXEC || o->output;
	char *path;

	url_object(&b, namespace_, "pods", pod);
	gpuq_buf_printf(&b, "/%s?", things[o->kind]);
	if (o->kind == SESSION_PORT) {
		gpuq_buf_printf(&b, "ports=%d", o->port);
	} else {
		gpuq_buf_printf(&b, "stdin=%s&stdout=%s&stderr=%s&tty=%s",
				o->input ? "true" : "false", output ? "true" : "false",
				output && !o->tty ? "true" : "false", o->tty ? "true" : "false");
		if (o->container)
			url_query(&b, "container", o->container);
	}
	for (size_t i = 0; o->kind == SESSION_EXEC && i < o->command.n; i++)
		url_query(&b, "command", o->command.items[i]);
	path = strdup(gpuq_buf_str(&b));
	gpuq_buf_done(&b);
	return path;
}

struct cluster_session *session_open(struct loop *l, struct http *h, const char *namespace_,
				     const char *pod, const struct session_opts *opts,
				     const struct session_sink *sink)
{
	struct cluster_session *s = calloc(1, sizeof(*s));

	if (s)
		s->path = make_path(namespace_, pod, opts);
	if (!s || !s->path)
		abort(); /* as loop_after(): the caller waits for an end */
	s->loop = l;
	s->http = h;
	s->kind = opts->kind;
	s->tty = opts->tty;
	s->sink = *sink;
	s->skip[PORT_DATA] = s->skip[PORT_ERROR] = 2;
	if (opts->kind == SESSION_ATTACH && opts->replay && opts->output)
		ask_log(s, namespace_, pod, opts->container);
	else
		dial(s);
	return s;
}

/* ---- what goes ---- */

bool session_write(struct cluster_session *s, const char *bytes, size_t n)
{
	const char head = IN;

	return !s->ws || s->over || websocket_send(s->ws, &head, 1, bytes, n);
}

/* The protocol has no word for the end of one half of a port's connection. */
static void on_linger(void *arg)
{
	struct cluster_session *s = arg;
	const int64_t left = s->heard_us + LINGER_US - loop_mono_us(s->loop);

	s->linger = NULL;
	if (left > 0) {
		s->linger = loop_after(s->loop, left, on_linger, s);
		return;
	}
	end(s, 0, NULL);
}

void session_eof(struct cluster_session *s)
{
	if (!s->ws || s->over || s->eof)
		return;
	s->eof = true;
	s->heard_us = loop_mono_us(s->loop);
	if (s->kind == SESSION_PORT)
		s->linger = loop_after(s->loop, LINGER_US, on_linger, s);
	else if (s->tty)
		session_write(s, "\004", 1);
	else if (s->v5)
		websocket_send(s->ws, CLOSE_CHANNEL, 1, "\0", 1);
}

void session_resize(struct cluster_session *s, int cols, int rows)
{
	const char head = RESIZE;
	char text[64];
	int n = snprintf(text, sizeof(text), "{\"Width\":%d,\"Height\":%d}", cols, rows);

	if (s->ws && !s->over && s->tty)
		websocket_send(s->ws, &head, 1, text, (size_t)n);
}

void session_resume(struct cluster_session *s)
{
	if (s->over)
		return;
	if (s->log_paused) {
		s->log_paused = false;
		dial(s);
	} else if (s->ws) {
		websocket_resume(s->ws);
	}
}

void session_close(struct cluster_session *s)
{
	/* Runtimes do not kill a program whose session is gone, so it is signalled. An attached
	 * process keeps running. */
	if (!s->over && s->open && s->kind == SESSION_EXEC) {
		if (s->tty)
			session_write(s, HANG_UP, 2);
		session_eof(s);
	}
	s->over = s->closed = true;
	if (!s->busy)
		destroy(s);
}
