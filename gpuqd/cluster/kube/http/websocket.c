#include "gpuqd/cluster/kube/http/websocket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include <event2/event.h>
#include <openssl/evp.h>

#include "gpuqd/base/loop.h"

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define OPEN_US INT64_C(30000000) /* from the request to its reply */
#define PING_US INT64_C(20000000)
#define SILENT_US INT64_C(75000000) /* pings are answered: so long a silence is an end */
#define ANSWER_BYTES_MAX (64u << 10)
#define READ_BYTES 32768

struct websocket {
	struct loop *loop;
	struct http *http;
	char *path, *protocols;
	struct websocket_sink sink;
	struct http_req *req; /* NULL = over */
	struct event *readable, *writable;
	struct loop_timer *timer, *soon;
	char key[32], accept[32], protocol[64];
	struct gpuq_buf out, answer; /* answer: until it has been read */
	struct ws_reader in;
	int64_t heard_us, since_us;
	bool upgraded, paused, full, busy, closed, again;
};

static void free_socket(struct websocket *w)
{
	if (w->readable)
		event_free(w->readable);
	if (w->writable)
		event_free(w->writable);
	w->readable = w->writable = NULL;
}

static void destroy(struct websocket *w)
{
	free_socket(w);
	loop_cancel(w->timer);
	loop_cancel(w->soon);
	http_cancel(w->req);
	gpuq_buf_done(&w->out);
	gpuq_buf_done(&w->answer);
	ws_reader_done(&w->in);
	free(w->path);
	free(w->protocols);
	free(w);
}

static void over(struct websocket *w, const struct http_answer *a)
{
	struct http_req *req = w->req;

	free_socket(w);
	loop_cancel(w->timer);
	w->timer = NULL;
	w->req = NULL;
	http_cancel(req);
	w->sink.ended(w->sink.arg, a);
}

static void broken(struct websocket *w, const char *why)
{
	over(w, &(struct http_answer){ .sent = true, .body = "", .error = why });
}

/* Free w once no callback is running on it. */
static void leave(struct websocket *w)
{
	w->busy = false;
	if (w->closed)
		destroy(w);
}

/* ---- the request ---- */

static void random_text(char out[32])
{
	unsigned char bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		abort(); /* no less than 256 bytes are always given */
	EVP_EncodeBlock((unsigned char *)out, bytes, sizeof(bytes));
}

static void want_accept(struct websocket *w)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	char text[80];
	unsigned n = 0;

	snprintf(text, sizeof(text), "%s" GUID, w->key);
	EVP_Digest(text, strlen(text), sum, &n, EVP_sha1(), NULL);
	EVP_EncodeBlock((unsigned char *)w->accept, sum, (int)n);
}

static void write_request(struct websocket *w)
{
	random_text(w->key);
	want_accept(w);
	gpuq_buf_clear(&w->out);
	gpuq_buf_printf(&w->out, "GET %s%s HTTP/1.1\r\n", http_prefix(w->http), w->path);
	http_tunnel_headers(w->req, &w->out);
	gpuq_buf_printf(&w->out,
			"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
			"Sec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
			w->key, w->protocols);
}

/* ---- the reply ---- */

/* The value of a header of head[0..n), or NULL; *len is its length. */
static const char *header(const char *head, size_t n, const char *name, size_t *len)
{
	const size_t k = strlen(name);
	const char *p = head, *end = head + n;

	while ((p = memchr(p, '\n', (size_t)(end - p))) != NULL && ++p < end) {
		const char *stop;

		if ((size_t)(end - p) <= k || strncasecmp(p, name, k) != 0 || p[k] != ':')
			continue;
		for (p += k + 1; p < end && *p == ' ';)
			p++;
		stop = memchr(p, '\r', (size_t)(end - p));
		*len = stop ? (size_t)(stop - p) : 0;
		return p;
	}
	return NULL;
}

static bool header_is(const char *head, size_t n, const char *name, const char *want)
{
	size_t len = 0;
	const char *v = header(head, n, name, &len);

	return v && len == strlen(want) && strncasecmp(v, want, len) == 0;
}

/* Chunks, for want of a length: they are not taken apart, but their end is seen. */
static bool last_chunk(const struct gpuq_buf *b)
{
	return b->len >= 5 && memcmp(b->data + b->len - 5, "0\r\n\r\n", 5) == 0;
}

static int64_t body_bytes(const char *head, size_t n)
{
	size_t len = 0;
	const char *v = header(head, n, "Content-Length", &len);

	return v && len > 0 && len < 10 ? strtoll(v, NULL, 10) : -1;
}

static void start(struct websocket *w);

static void refused(struct websocket *w, int status, const char *body, size_t n, bool whole)
{
	struct http_answer a = { .status = status, .sent = true, .complete = whole, .error = "" };
	char *copy;

	if (status == 401 && !w->again && http_unauthorized(w->req)) {
		free_socket(w);
		http_cancel(w->req);
		gpuq_buf_clear(&w->answer);
		w->again = true;
		start(w);
		return;
	}
	copy = malloc(n + 1);
	if (!copy)
		abort(); /* as loop_after(): whoever opened it waits for an end */
	memcpy(copy, body, n);
	copy[n] = '\0';
	a.body = copy;
	a.n = n;
	over(w, &a);
	free(copy);
}

/* Its head has come; true when the rest is frames. */
static bool read_answer(struct websocket *w, bool end)
{
	const char *s = gpuq_buf_str(&w->answer), *stop = strstr(s, "\r\n\r\n");
	size_t n, len = 0;
	const char *v;
	int status;
	int64_t body;

	if (!stop) {
		if (end || w->answer.len >= ANSWER_BYTES_MAX || strlen(s) != w->answer.len)
			broken(w, "the server's reply is not HTTP");
		return false;
	}
	n = (size_t)(stop + 2 - s);
	status = strncmp(s, "HTTP/1.", 7) == 0 && n > 12 ? (int)strtol(s + 9, NULL, 10) : 0;
	if (status != 101) {
		body = body_bytes(s, n);
		if (!end && w->answer.len < ANSWER_BYTES_MAX &&
		    (body < 0 ? !last_chunk(&w->answer) : (int64_t)(w->answer.len - n - 2) < body))
			return false;
		refused(w, status > 0 ? status : 502, stop + 4, w->answer.len - n - 2, !end);
		return false;
	}
	v = header(s, n, "Sec-WebSocket-Protocol", &len);
	if (!header_is(s, n, "Upgrade", "websocket") ||
	    !header_is(s, n, "Sec-WebSocket-Accept", w->accept) || !v ||
	    len >= sizeof(w->protocol) || len == 0) {
		broken(w, "the server upgrades to a protocol that was not requested");
		return false;
	}
	snprintf(w->protocol, sizeof(w->protocol), "%.*s", (int)len, v);
	ws_feed(&w->in, stop + 4, w->answer.len - n - 2);
	gpuq_buf_done(&w->answer);
	w->upgraded = true;
	w->sink.open(w->sink.arg, w->protocol);
	return true;
}

/* ---- frames ---- */

static void put(struct websocket *w, enum ws_opcode op, const void *head, size_t n_head,
		const void *bytes, size_t n)
{
	unsigned char mask[4];

	if (getrandom(mask, sizeof(mask), 0) != (ssize_t)sizeof(mask))
		abort(); /* as above */
	ws_put(&w->out, op, head, n_head, bytes, n, mask);
	if (w->out.failed)
		abort(); /* as above: a gap in a stream cannot be mended */
	if (w->writable)
		event_add(w->writable, NULL);
}

static void on_message(struct websocket *w, const struct ws_message *m)
{
	switch (m->op) {
	case WS_PING:
		put(w, WS_PONG, NULL, 0, m->bytes, m->n);
		break;
	case WS_PONG:
		break;
	case WS_CLOSE:
		over(w, &(struct http_answer){ .sent = true,
					       .complete = true,
					       .body = "",
					       .error = "the server closed the session" });
		break;
	default:
		w->paused = !w->sink.message(w->sink.arg, m);
	}
}

static void hand_on(struct websocket *w)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct ws_message m;
	int rc = 0;

	while (w->req && !w->paused && !w->closed && (rc = ws_next(&w->in, &m, &err)) == 1)
		on_message(w, &m);
	if (rc < 0 && w->req)
		broken(w, err.text);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct websocket *w = arg;
	static char bytes[READ_BYTES];
	size_t n = 0;
	int rc = 1;

	(void)fd, (void)what;
	w->busy = true;
	/* TLS may hold more than the socket shows: read until it says that this was all. */
	while (w->req && w->readable && !w->paused && !w->closed &&
	       (rc = http_tunnel_recv(w->req, bytes, sizeof(bytes), &n)) > 0) {
		w->heard_us = loop_mono_us(w->loop);
		if (w->upgraded) {
			ws_feed(&w->in, bytes, n);
		} else {
			gpuq_buf_add(&w->answer, bytes, n);
			if (!read_answer(w, false))
				continue;
		}
		hand_on(w);
	}
	if (rc < 0 && w->req && w->readable && !w->closed) {
		if (!w->upgraded && w->answer.len > 0)
			read_answer(w, true);
		else
			broken(w, "the connection to the server broke");
	}
	if (w->req && w->paused && w->readable)
		event_del(w->readable);
	leave(w);
}

static void on_soon(void *arg)
{
	struct websocket *w = arg;

	w->soon = NULL;
	w->busy = true;
	hand_on(w);
	w->busy = false;
	if (w->req && !w->paused && !w->closed && w->readable) {
		event_add(w->readable, NULL);
		event_active(w->readable, EV_READ, 0); /* for what TLS holds */
	}
	if (w->closed)
		destroy(w);
}

static void send_some(struct websocket *w)
{
	while (w->out.len > 0) {
		size_t n = 0;
		const int rc = http_tunnel_send(w->req, w->out.data, w->out.len, &n);

		if (rc < 0)
			gpuq_buf_clear(&w->out); /* reading tells what came of it */
		if (rc <= 0)
			break;
		gpuq_buf_drop(&w->out, n);
	}
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct websocket *w = arg;

	(void)fd, (void)what;
	w->busy = true;
	send_some(w);
	if (w->out.len > 0)
		event_add(w->writable, NULL);
	if (w->full && w->out.len == 0) {
		w->full = false;
		w->sink.drained(w->sink.arg);
	}
	leave(w);
}

/* ---- its life ---- */

static void on_timer(void *arg)
{
	struct websocket *w = arg;
	const int64_t now = loop_mono_us(w->loop);

	w->timer = NULL;
	w->busy = true;
	if (!w->upgraded && now - w->since_us > OPEN_US)
		broken(w, "no reply within 30 s");
	else if (w->upgraded && !w->paused && now - w->heard_us > SILENT_US)
		broken(w, "no sign of life from the server");
	else if (w->upgraded)
		put(w, WS_PING, NULL, 0, NULL, 0);
	if (w->req)
		w->timer = loop_after(w->loop, PING_US, on_timer, w);
	leave(w);
}

static void on_tunnel(void *arg)
{
	struct websocket *w = arg;
	const int fd = http_tunnel_fd(w->req);

	w->readable = event_new(loop_base(w->loop), fd, EV_READ | EV_PERSIST, on_readable, w);
	w->writable = event_new(loop_base(w->loop), fd, EV_WRITE, on_writable, w);
	if (!w->readable || !w->writable)
		abort(); /* as loop_after() */
	event_add(w->readable, NULL);
	write_request(w);
	event_add(w->writable, NULL);
}

/* It could not be connected. */
static void on_end(void *arg, const struct http_answer *a)
{
	struct websocket *w = arg;

	w->req = NULL;
	w->busy = true;
	over(w, a);
	leave(w);
}

static void start(struct websocket *w)
{
	const struct http_call call = { .method = "GET",
					.path = w->path,
					.stream = true,
					.on_tunnel = on_tunnel,
					.on_end = on_end,
					.arg = w };

	w->req = http_start(w->http, &call);
}

struct websocket *websocket_open(struct loop *l, struct http *h, const char *path,
				 const char *protocols, const struct websocket_sink *sink)
{
	struct websocket *w = calloc(1, sizeof(*w));

	if (w) {
		w->path = strdup(path);
		w->protocols = strdup(protocols);
	}
	if (!w || !w->path || !w->protocols)
		abort(); /* as loop_after(): the caller waits for an end */
	w->loop = l;
	w->http = h;
	w->sink = *sink;
	w->since_us = w->heard_us = loop_mono_us(l);
	w->timer = loop_after(l, PING_US, on_timer, w);
	start(w);
	return w;
}

bool websocket_send(struct websocket *w, const void *head, size_t n_head, const void *bytes,
		    size_t n)
{
	if (!w->req || !w->upgraded)
		return true;
	put(w, WS_BINARY, head, n_head, bytes, n);
	w->full = w->out.len > WEBSOCKET_FULL_BYTES;
	return !w->full;
}

void websocket_resume(struct websocket *w)
{
	if (!w->paused)
		return;
	w->paused = false;
	w->heard_us = loop_mono_us(w->loop);
	if (!w->soon)
		w->soon = loop_after(w->loop, 0, on_soon, w);
}

void websocket_close(struct websocket *w)
{
	if (!w || w->closed)
		return;
	w->closed = true;
	if (w->req && w->upgraded) {
		put(w, WS_CLOSE, NULL, 0, "\003\350", 2); /* 1000: done */
		send_some(w);
	}
	if (!w->busy)
		destroy(w);
}
