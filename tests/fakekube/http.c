#include "http_parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>

#define STEAL_BYTES 65536 /* a body from here on is sent from where it lies */

/* READING waits for a request; BUSY has one with the handler; SENDING writes
 * an answer that is complete here; STREAMING one that is not; DEAD swallows
 * what comes until the client goes. */
enum conn_state { READING, BUSY, SENDING, STREAMING, DEAD };

struct conn {
	TAILQ_ENTRY(conn) link;
	struct bufferevent *bev;
	enum conn_state state;
	struct http_req *req; /* being read or with the handler */
	struct http_framing framing;
	bool head_done, continued, close_after, refused, frozen, parsing, gone;
	struct event *deadline;

	struct evbuffer *paced; /* what waits to be sent slowly, or NULL */
	struct http_fx fx;
	struct event *pacer;

	void (*on_close)(void *arg);
	void (*on_data)(void *arg, struct evbuffer *in); /* of one that is no longer HTTP */
	void *arg;
};

static struct {
	struct event_base *base;
	struct evconnlistener *listener;
	struct event *retry;
	http_handler handler;
	int port;
	unsigned n_conns;
	TAILQ_HEAD(, conn) conns;
} srv;

static void conn_next(struct conn *c);

static void conn_free(struct conn *c, bool reset)
{
	if (reset) {
		const struct linger now = { 1, 0 };

		setsockopt(bufferevent_getfd(c->bev), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	}
	TAILQ_REMOVE(&srv.conns, c, link);
	srv.n_conns--;
	if (c->state == BUSY)
		c->req->c = NULL; /* the handler finds out when it answers */
	else
		http_req_free(c->req);
	bufferevent_free(c->bev);
	event_free(c->deadline);
	if (c->pacer)
		event_free(c->pacer);
	if (c->paced)
		evbuffer_free(c->paced);
	if (c->on_close)
		c->on_close(c->arg);
	free(c);
}

/* Closing inside the parse loop would free what the loop stands on. */
static void conn_close(struct conn *c, bool reset)
{
	if (c->parsing) {
		c->gone = true;
		c->state = c->state == BUSY ? BUSY : DEAD;
		if (reset)
			c->frozen = true;
		return;
	}
	conn_free(c, reset);
}

static void conn_deadline(struct conn *c, int seconds)
{
	const struct timeval tv = { seconds, 0 };

	evtimer_add(c->deadline, &tv);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	conn_free(arg, false);
}

/* The answer is written: close, or read the next request. */
static void conn_drained(struct conn *c)
{
	if (c->state != SENDING)
		return;
	if (c->close_after && c->refused) {
		/* Unread bytes would turn the close into a reset, and the client would lose the
		 * reply: read them, for a while. */
		shutdown(bufferevent_getfd(c->bev), SHUT_WR);
		evbuffer_drain(bufferevent_get_input(c->bev),
			       evbuffer_get_length(bufferevent_get_input(c->bev)));
		c->state = DEAD;
		conn_deadline(c, 2);
		return;
	}
	if (c->close_after) {
		conn_free(c, false);
		return;
	}
	c->state = READING;
	c->fx = (struct http_fx){ 0 };
	if (c->paced) {
		evbuffer_free(c->paced);
		c->paced = NULL;
	}
	conn_next(c);
}

static void pacer_start(struct conn *c)
{
	const struct timeval tv = { c->fx.slow_us / SECOND_US, c->fx.slow_us % SECOND_US };

	evtimer_add(c->pacer, &tv);
}

static void on_pace(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;

	(void)fd;
	(void)what;
	if (!c->paced || c->frozen)
		return;
	evbuffer_remove_buffer(c->paced, bufferevent_get_output(c->bev), c->fx.slow_bytes);
	if (evbuffer_get_length(c->paced))
		pacer_start(c);
}

static void on_written(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;

	if (evbuffer_get_length(bufferevent_get_output(bev)) == 0 &&
	    (!c->paced || evbuffer_get_length(c->paced) == 0))
		conn_drained(c);
}

/* Where the bytes of the current answer go. */
static struct evbuffer *conn_out(struct conn *c)
{
	return c->paced ? c->paced : bufferevent_get_output(c->bev);
}

static void conn_fx(struct conn *c, const struct http_fx *fx)
{
	c->fx = fx ? *fx : (struct http_fx){ 0 };
	if (c->fx.slow_bytes && !c->paced) {
		c->paced = evbuffer_new();
		if (!c->pacer)
			c->pacer = evtimer_new(srv.base, on_pace, c);
		pacer_start(c);
	}
}

static void add_head(struct conn *c, struct buf *h, int code, const char *type, const char *headers)
{
	char id[UID_SIZE];

	uid_new(id);
	buf_addf(h, "HTTP/1.1 %d %s\r\nAudit-Id: %s\r\nCache-Control: no-cache, private\r\n", code,
		 http_reason(code), id);
	if (*type)
		buf_addf(h, "Content-Type: %s\r\n", type);
	if (c->close_after)
		buf_adds(h, "Connection: close\r\n");
	if (headers)
		buf_adds(h, headers);
}

static void free_text(const void *p, size_t n, void *arg)
{
	(void)n;
	(void)arg;
	free((void *)p);
}

static void send_answer(struct conn *c, int code, const char *type, const char *headers,
			struct buf *body, const struct http_fx *fx)
{
	size_t n = body ? body->len : 0;
	static struct buf h; /* kept from answer to answer */

	h.len = 0;
	c->state = SENDING;
	conn_fx(c, fx);
	add_head(c, &h, code, type, headers);
	if (code != 204)
		buf_addf(&h, "Content-Length: %zu\r\n", n);
	buf_adds(&h, "\r\n");
	if (c->fx.truncate) {
		c->close_after = true;
		if (n > c->fx.truncate_bytes)
			n = c->fx.truncate_bytes;
	}
	evbuffer_add(conn_out(c), h.s, h.len);
	if (n >= STEAL_BYTES) {
		evbuffer_add_reference(conn_out(c), body->s, n, free_text, NULL);
		*body = (struct buf)BUF_INIT;
	} else if (n) {
		evbuffer_add(conn_out(c), body->s, n);
	}
}

/* Refuse what cannot be read, and end the connection: its framing is lost. */
static void refuse(struct conn *c, int code, const char *text)
{
	struct buf b = BUF_INIT;

	http_req_free(c->req);
	c->req = NULL;
	c->close_after = c->refused = true;
	buf_addf(&b,
		 "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
		 "\"status\":\"Failure\",\"message\":\"%s\",\"reason\":\"%s\",\"code\":%d}\n",
		 text, code == 413 ? "RequestEntityTooLarge" : "BadRequest", code);
	send_answer(c, code, "application/json", NULL, &b, NULL);
	buf_done(&b);
}

/* Take a head off the input. Returns true when there is one. */
static bool read_head(struct conn *c, struct evbuffer *in)
{
	struct evbuffer_ptr end;
	size_t n;
	int rc;

	end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
	if (end.pos < 0) {
		if (evbuffer_get_length(in) > HTTP_HEADER_MAX)
			refuse(c, 431, "request header too large");
		return false;
	}
	n = (size_t)end.pos + 4;
	if (n > HTTP_HEADER_MAX) {
		refuse(c, 431, "request header too large");
		return false;
	}
	c->req = xcalloc(1, sizeof(*c->req));
	c->req->c = c;
	rc = http_parse_head((const char *)evbuffer_pullup(in, (ssize_t)n), n, c->req, &c->framing);
	if (rc) {
		refuse(c, rc, "malformed HTTP request");
		return false;
	}
	evbuffer_drain(in, n);
	if (!c->framing.chunked && c->framing.length > HTTP_BODY_MAX) {
		refuse(c, 413, "Request entity too large: limit is 3145728");
		return false;
	}
	c->head_done = true;
	c->continued = !c->framing.expect_continue;
	return true;
}

/* Take the body off the input. Returns true when it is all there. */
static bool read_body(struct conn *c, struct evbuffer *in)
{
	const size_t n = evbuffer_get_length(in);
	struct buf body = BUF_INIT;
	long took;

	if (!c->continued) {
		evbuffer_add_printf(bufferevent_get_output(c->bev),
				    "HTTP/1.1 100 Continue\r\n\r\n");
		c->continued = true;
	}
	if (!c->framing.chunked) {
		if (n < c->framing.length)
			return false;
		c->req->body_len = (size_t)c->framing.length;
		c->req->body = xmalloc(c->req->body_len + 1);
		evbuffer_remove(in, c->req->body, c->req->body_len);
		c->req->body[c->req->body_len] = '\0';
		return true;
	}
	took = http_parse_chunked((const char *)evbuffer_pullup(in, -1), n, HTTP_BODY_MAX, &body);
	if (took > 0) {
		evbuffer_drain(in, (size_t)took);
		c->req->body_len = body.len;
		c->req->body = body.s ? body.s : xstrdup("");
		return true;
	}
	buf_done(&body);
	if (took == -1)
		refuse(c, 400, "malformed chunked body");
	else if (took == -2)
		refuse(c, 413, "Request entity too large: limit is 3145728");
	return false;
}

static void conn_next(struct conn *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);

	if (c->parsing)
		return;
	c->parsing = true;
	while (c->state == READING && !c->gone) {
		struct http_req *req;

		if (evbuffer_get_length(in) == 0 && !c->head_done) {
			conn_deadline(c, HTTP_IDLE_S);
			break;
		}
		if (!c->head_done) {
			conn_deadline(c, HTTP_READ_S);
			if (!read_head(c, in))
				break;
		}
		if (!read_body(c, in))
			break;
		evtimer_del(c->deadline);
		c->head_done = false;
		c->close_after = !c->framing.keep_alive;
		c->state = BUSY;
		req = c->req;
		srv.handler(req);
	}
	c->parsing = false;
	if (c->gone)
		conn_free(c, c->frozen);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;

	if (c->state == STREAMING && c->on_data && !c->frozen) {
		c->on_data(c->arg, bufferevent_get_input(bev));
		return;
	}
	if (c->state == DEAD || c->frozen || c->state == STREAMING) {
		struct evbuffer *in = bufferevent_get_input(bev);

		evbuffer_drain(in, evbuffer_get_length(in));
		return;
	}
	conn_next(c);
}

static void on_end(struct bufferevent *bev, short what, void *arg)
{
	struct conn *c = arg;

	(void)bev;
	/* A client that has shut down its sending half still reads its answer;
	 * none of ours does that, so the end of its bytes is its end. */
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		conn_free(c, false);
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa, int n,
		      void *arg)
{
	const int one = 1;
	struct conn *c;

	(void)l;
	(void)sa;
	(void)n;
	(void)arg;
	if (srv.n_conns >= HTTP_CONNS_MAX) {
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c = xcalloc(1, sizeof(*c));
	c->bev = bufferevent_socket_new(srv.base, fd, BEV_OPT_CLOSE_ON_FREE);
	c->deadline = evtimer_new(srv.base, on_deadline, c);
	bufferevent_setcb(c->bev, on_read, on_written, on_end, c);
	/* More than one largest request is not read ahead. */
	bufferevent_setwatermark(c->bev, EV_READ, 0, HTTP_BODY_MAX + 2 * HTTP_HEADER_MAX);
	bufferevent_set_max_single_read(c->bev, 256 * 1024);
	bufferevent_set_max_single_write(c->bev, 1024 * 1024);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	conn_deadline(c, HTTP_IDLE_S);
	TAILQ_INSERT_TAIL(&srv.conns, c, link);
	srv.n_conns++;
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	if (srv.listener)
		evconnlistener_enable(srv.listener);
}

static void on_accept_error(struct evconnlistener *l, void *arg)
{
	const struct timeval tv = { 0, 100 * 1000 };

	(void)arg;
	/* Out of descriptors: let the ones there are finish first. */
	evconnlistener_disable(l);
	evtimer_add(srv.retry, &tv);
}

static int listen_on(int port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	socklen_t len = sizeof(sa);

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	srv.listener = evconnlistener_new_bind(srv.base, on_accept, NULL,
					       LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_FREE |
						       LEV_OPT_CLOSE_ON_EXEC,
					       1024, (struct sockaddr *)&sa, (int)sizeof(sa));
	if (!srv.listener)
		return -1;
	evconnlistener_set_error_cb(srv.listener, on_accept_error);
	if (getsockname(evconnlistener_get_fd(srv.listener), (struct sockaddr *)&sa, &len) != 0)
		return -1;
	return ntohs(sa.sin_port);
}

int http_start(struct event_base *base, int port, http_handler handler)
{
	srv.base = base;
	srv.handler = handler;
	TAILQ_INIT(&srv.conns);
	srv.retry = evtimer_new(base, on_retry, NULL);
	srv.port = listen_on(port);
	return srv.port;
}

void http_listen_stop(bool quiet)
{
	if (!srv.listener)
		return;
	if (quiet) {
		evconnlistener_disable(srv.listener);
		return;
	}
	evconnlistener_free(srv.listener);
	srv.listener = NULL;
}

void http_listen_again(void)
{
	if (srv.listener)
		evconnlistener_enable(srv.listener);
	else if (listen_on(srv.port) < 0)
		perror("fakekube: cannot listen again");
}

void http_drop_all(const struct http_req *keep)
{
	struct conn *c, *next;

	for (c = TAILQ_FIRST(&srv.conns); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (!keep || c != keep->c)
			conn_close(c, false);
	}
}

void http_stop(void)
{
	http_drop_all(NULL);
	http_listen_stop(false);
	if (srv.retry)
		event_free(srv.retry);
}

unsigned http_conn_count(void)
{
	return srv.n_conns;
}

/* The request is done with; its connection, if it is still there. */
static struct conn *take_conn(struct http_req *req)
{
	struct conn *c = req->c;

	if (c)
		c->req = NULL;
	http_req_free(req);
	return c;
}

void http_reply(struct http_req *req, int code, const char *type, const char *headers,
		struct buf *body, const struct http_fx *fx)
{
	struct conn *c = take_conn(req);

	if (c)
		send_answer(c, code, type, headers, body, fx);
}

void http_drop(struct http_req *req, bool reset)
{
	struct conn *c = take_conn(req);

	if (!c)
		return;
	c->state = DEAD;
	conn_close(c, reset);
}

void http_hang(struct http_req *req)
{
	struct conn *c = take_conn(req);

	if (c)
		c->state = DEAD;
}

struct conn *http_stream(struct http_req *req, const char *type, const struct http_fx *fx,
			 void (*on_close)(void *arg), void *arg)
{
	struct conn *c = take_conn(req);
	struct buf h = BUF_INIT;

	if (!c)
		return NULL;
	c->state = STREAMING;
	c->on_close = on_close;
	c->arg = arg;
	conn_fx(c, fx);
	add_head(c, &h, 200, type, NULL);
	buf_adds(&h, "Transfer-Encoding: chunked\r\n\r\n");
	evbuffer_add(conn_out(c), h.s, h.len);
	buf_done(&h);
	return c;
}

struct conn *http_upgrade(struct http_req *req, const char *headers,
			  void (*on_data)(void *arg, struct evbuffer *in),
			  void (*on_close)(void *arg), void *arg)
{
	struct conn *c = take_conn(req);

	if (!c)
		return NULL;
	c->state = STREAMING;
	c->on_data = on_data;
	c->on_close = on_close;
	c->arg = arg;
	evbuffer_add_printf(conn_out(c), "HTTP/1.1 101 Switching Protocols\r\n%s\r\n", headers);
	return c;
}

void http_send_raw(struct conn *c, const void *p, size_t n)
{
	if (!c->frozen && !c->gone)
		evbuffer_add(conn_out(c), p, n);
}

void http_send(struct conn *c, const void *p, size_t n)
{
	char size[20];
	const int len = snprintf(size, sizeof(size), "%zx\r\n", n);

	if (c->frozen || c->gone || n == 0)
		return;
	evbuffer_add(conn_out(c), size, (size_t)len);
	evbuffer_add(conn_out(c), p, n);
	evbuffer_add(conn_out(c), "\r\n", 2);
	if (c->paced && !evtimer_pending(c->pacer, NULL))
		pacer_start(c);
}

void http_stream_end(struct conn *c)
{
	c->on_close = NULL;
	if (c->frozen) {
		c->state = DEAD;
		return;
	}
	evbuffer_add(conn_out(c), "0\r\n\r\n", 5);
	c->state = SENDING;
	if (c->paced && !evtimer_pending(c->pacer, NULL))
		pacer_start(c);
}

void http_stream_kill(struct conn *c, bool reset)
{
	c->on_close = NULL;
	if (reset) {
		c->state = DEAD;
		conn_close(c, true);
		return;
	}
	/* Data sent before shall arrive; the end of the chunks shall not. */
	c->state = SENDING;
	c->close_after = true;
	if (http_backlog(c) == 0)
		conn_close(c, false);
}

void http_stream_freeze(struct conn *c)
{
	c->frozen = true;
}

size_t http_backlog(const struct conn *c)
{
	return evbuffer_get_length(bufferevent_get_output(c->bev)) +
	       (c->paced ? evbuffer_get_length(c->paced) : 0);
}
