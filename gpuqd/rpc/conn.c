#include "gpuqd/rpc/conn.h"
#include "gpuqd/rpc/server.h"
#include "gpuqd/rpc/call.h"
#include "gpuqd/rpc/identify.h"
#include "gpuqd/rpc/tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "libgpuq/limits.h"

#define US INT64_C(1000000)
#define READ_BYTES 65536
#define READ_BYTES_SMALL GPUQ_MSG_BYTES_SMALL /* while its message needs no admission */
#define KEEP_BYTES 4096 /* a larger buffer is freed when it is empty */
#define METHOD_BYTES_MAX 64
#define CLOSE_US (2 * US) /* to send the last bytes */

bool conn_congested(const struct rpc_conn *c)
{
	return flight_output_full(c);
}

static void stop_timer(struct loop_timer **t)
{
	loop_cancel(*t);
	*t = NULL;
}

static void empty(struct gpuq_buf *b)
{
	if (b->room > KEEP_BYTES)
		gpuq_buf_done(b);
	else
		gpuq_buf_clear(b);
}

static void frame_free(struct rpc_frame *f)
{
	gpuq_buf_done(&f->bytes);
	free(f);
}

void conn_kill(struct rpc_conn *c)
{
	struct rpc_frame *f, *next;

	server_conn_gone(c->server, c);
	flight_leave(c);
	c->out.len = c->sent = c->held_bytes = 0;
	flight_output(c);
	stop_timer(&c->hello_timer);
	stop_timer(&c->frame_timer);
	stop_timer(&c->more_timer);
	stop_timer(&c->close_timer);
	stop_timer(&c->start_timer);
	identify_forget(c);
	tls_end(c->tls);
	if (c->readable)
		event_free(c->readable);
	if (c->writable)
		event_free(c->writable);
	if (c->fd >= 0)
		close(c->fd);
	while (c->calls)
		call_orphan(c->calls);
	for (f = c->frames; f; f = next) {
		next = f->next;
		f->conn = NULL; /* the holder frees it on release */
		gpuq_buf_done(&f->bytes);
		if (f->released)
			frame_free(f);
	}
	gpuq_buf_done(&c->in);
	gpuq_buf_done(&c->out);
	free(c->client);
	free(c->claims);
	free(c->queues);
	free(c->groups);
	free(c->credential);
	free(c);
}

static void on_close_timer(void *arg)
{
	struct rpc_conn *c = arg;

	c->close_timer = NULL;
	conn_kill(c);
}

static void want_write(struct rpc_conn *c)
{
	if (c->writable)
		event_add(c->writable, NULL);
}

/* End it in the next turn of the loop: a method may be using it now. */
static void conn_doom(struct rpc_conn *c)
{
	stop_timer(&c->close_timer);
	c->close_timer = loop_after(server_loop(c->server), 0, on_close_timer, c);
}

void conn_close(struct rpc_conn *c, const struct gpuq_err *why)
{
	if (c->close_timer)
		return;
	if (why) {
		gpuq_wire_closing(&c->out, why);
		server_log_closed(c->server, c, why);
	}
	stop_timer(&c->hello_timer);
	stop_timer(&c->frame_timer);
	stop_timer(&c->start_timer);
	flight_leave(c);
	if (c->readable)
		event_del(c->readable);
	c->close_timer = loop_after(server_loop(c->server), CLOSE_US, on_close_timer, c);
	want_write(c); /* also ends it when nothing is left to write */
}

static void protocol_error(struct rpc_conn *c, int code, const char *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	gpuq_fail(&err, code, "%s", text);
	conn_close(c, &err);
}

/* Replace a reply by the error that prevents it. */
static void turn_into_error(struct rpc_frame *f, const struct gpuq_err *why)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);

	gpuq_buf_clear(&f->bytes);
	gpuq_wire_response(&f->bytes, f->id, gpuq_wire_error(&a, why), NULL);
	gpuq_arena_done(&a);
}

/* Move released frames to the output, in order. */
static void move_released(struct rpc_conn *c)
{
	struct rpc_frame *f;

	while ((f = c->frames) != NULL && f->released) {
		c->frames = f->next;
		if (!c->frames)
			c->last_frame = &c->frames;
		c->held_bytes -= f->bytes.len;
		gpuq_buf_add(&c->out, f->bytes.data, f->bytes.len);
		if (f->bytes.failed)
			c->out.failed = true;
		frame_free(f);
	}
	flight_output(c);
	if (c->out.failed) {
		conn_doom(c); /* no memory: a gap in the stream cannot be repaired */
		return;
	}
	want_write(c);
}

static void on_release(void *arg, int rc, const struct gpuq_err *err)
{
	struct rpc_frame *f = arg;
	struct rpc_conn *c = f->conn;
	struct gpuq_err why = GPUQ_ERR_INIT;
	struct rpc_call *call = NULL;

	f->released = true;
	if (!c) {
		frame_free(f);
		return;
	}
	if (rc < 0) {
		if (err && err->code)
			why = *err;
		else
			gpuq_fail(&why, rc, "%s", gpuq_err_text(rc));
		c->held_bytes -= f->bytes.len;
		if (f->item) {
			gpuq_buf_clear(&f->bytes);
			call = call_find(c, f->id);
		} else {
			turn_into_error(f, &why);
		}
		c->held_bytes += f->bytes.len;
	}
	move_released(c);
	if (call)
		call_doom(call, &why);
}

void conn_send(struct rpc_conn *c, struct rpc_call *call, uint32_t id, bool item,
	       struct gpuq_buf *bytes)
{
	const struct rpc_opts *o = server_opts(c->server);
	/* Streams stop by themselves (conn_congested); unread replies do not. */
	const bool full = c->out.len - c->sent + c->held_bytes > GPUQ_OUTPUT_BYTES_MAX ||
			  (call && !item && flight_output_over(c));
	struct rpc_frame *f = full ? NULL : calloc(1, sizeof(*f));

	if (full)
		protocol_error(c, GPUQ_ELAGGED, "client reads too slowly: output limit exceeded");
	if (!f || bytes->failed) {
		gpuq_buf_done(bytes);
		free(f);
		if (!full)
			conn_doom(c);
		return;
	}
	f->conn = c;
	f->id = id;
	f->item = item;
	f->bytes = *bytes;
	*bytes = (struct gpuq_buf)GPUQ_BUF_INIT;
	*c->last_frame = f;
	c->last_frame = &f->next;
	c->held_bytes += f->bytes.len;
	flight_output(c);
	if (call && o->before_send)
		o->before_send(o->arg, call, on_release, f);
	else
		on_release(f, 0, NULL);
}

static ssize_t put(struct rpc_conn *c, int fd, const void *bytes, size_t n)
{
	return c->tls ? tls_send(c->tls, bytes, n)
		      : send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t get(struct rpc_conn *c, int fd, void *bytes, size_t n)
{
	return c->tls ? tls_recv(c->tls, bytes, n) : recv(fd, bytes, n, MSG_DONTWAIT);
}

/* Continue the handshake; true once it is complete and the connection is still open. */
static bool shake(struct rpc_conn *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	switch (tls_shake(c->tls, &err)) {
	case TLS_DONE:
		c->shaking = false;
		return true;
	case TLS_WANTS_READ:
		return false;
	case TLS_WANTS_WRITE:
		want_write(c);
		return false;
	default:
		server_log_closed(c->server, c, &err);
		conn_kill(c);
		return false;
	}
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct rpc_conn *c = arg;

	(void)what;
	if (c->shaking) {
		/* Before that no message can be sent. */
		if (c->close_timer)
			conn_kill(c);
		else
			shake(c);
		return;
	}
	while (c->sent < c->out.len) {
		const ssize_t n = put(c, fd, c->out.data + c->sent, c->out.len - c->sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			want_write(c);
			break;
		}
		if (n < 0) {
			conn_kill(c);
			return;
		}
		c->sent += (size_t)n;
		c->wrote_us = loop_mono_us(server_loop(c->server));
	}
	if (c->sent == c->out.len) {
		c->sent = 0;
		empty(&c->out);
		flight_output(c);
		if (c->close_timer && !c->frames) {
			conn_kill(c);
			return;
		}
	} else {
		if (c->sent > READ_BYTES) {
			gpuq_buf_drop(&c->out, c->sent);
			c->sent = 0;
		}
		flight_output(c);
	}
	if (conn_congested(c))
		return;
	if (loop_is_late(server_loop(c->server)))
		want_write(c);
	else
		call_resume_some(c);
}

static void on_note(struct rpc_conn *c, const struct gpuq_wire_msg *m)
{
	struct rpc_call *call;
	uint32_t id;

	/* Credit and cancel may cross with the end of their call: that is no error. */
	if (!gpuq_wire_note_id(m, &id))
		return;
	call = call_find(c, id);
	if (!call)
		return;
	if (strcmp(m->method, GPUQ_WIRE_CREDIT) == 0 && m->params->n == 2 &&
	    m->params->items[1]->type == GPUQ_INT)
		call_credit(call, m->params->items[1]->i);
	else if (strcmp(m->method, GPUQ_WIRE_CANCEL) == 0)
		call_cancel(call);
	else if (strcmp(m->method, GPUQ_WIRE_ITEM) == 0 &&
		 (m->params->n != 3 || !call_item(call, m->params->items[1], m->params->items[2])))
		protocol_error(c, GPUQ_EPROTO, "an item for no call");
}

static void on_message(struct rpc_conn *c, const char *bytes, size_t n)
{
	const struct gpuq_mp_limits *lim = c->client ? &gpuq_wire_limits : &gpuq_wire_limits_hello;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_wire_msg m;
	struct gpuq_val *v;
	int rc = gpuq_mp_read(&a, lim, bytes, n, &v, &err);

	if (rc == 0)
		rc = gpuq_wire_split(v, &m, &err);
	if (rc < 0)
		conn_close(c, &err);
	else if (!c->client && !identify_may_call(c, &m))
		identify_hello(c, &m);
	else if (m.type == GPUQ_WIRE_REQUEST)
		call_start(c, &m, &a, n); /* the arena is the call's now */
	else if (m.type == GPUQ_WIRE_NOTE)
		on_note(c, &m);
	else
		protocol_error(c, GPUQ_EPROTO, "a client may not send replies");
	gpuq_arena_done(&a);
}

static void on_frame_timer(void *arg)
{
	struct rpc_conn *c = arg;

	c->frame_timer = NULL;
	protocol_error(c, GPUQ_ETIMEOUT, "a message was not completed in time");
}

static void on_hello_timer(void *arg)
{
	struct rpc_conn *c = arg;

	c->hello_timer = NULL;
	/* A call that may come before hello has a bound of its own. */
	if (c->n_calls)
		c->hello_timer = loop_after(server_loop(c->server), US, on_hello_timer, c);
	else
		protocol_error(c, GPUQ_ETIMEOUT, "no hello came in time");
}

static void on_more(void *arg);
static void read_some(struct rpc_conn *c, int fd);

/* Requests of a busy client are handled over several turns. */
static bool put_off(struct rpc_conn *c)
{
	if (c->fd < 0 || !loop_is_late(server_loop(c->server)))
		return false;
	if (!c->more_timer)
		c->more_timer = loop_after(server_loop(c->server), 0, on_more, c);
	return true;
}

/* Return the maximum size of the message that begins at p, by its method. */
static size_t may_have(struct rpc_conn *c, const char *p, size_t n)
{
	const struct rpc_method *m = NULL;
	char name[METHOD_BYTES_MAX];

	if (!c->client)
		return GPUQ_MSG_BYTES_MAX_HELLO;
	if (gpuq_wire_peek(p, n, name, sizeof(name)))
		m = server_method(c->server, name);
	return m && m->max_bytes ? m->max_bytes : GPUQ_MSG_BYTES_PLAIN;
}

/* True if a message with n bytes so far is within the limit of its method and, if it is large, has been
 * admitted (flight.h). */
static bool may_go_on(struct rpc_conn *c, const char *p, size_t n)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	size_t most;

	if (n <= GPUQ_MSG_BYTES_SMALL || (c->granted && n <= c->granted))
		return true;
	most = may_have(c, p, n);
	if (n > most) {
		gpuq_fail(&err, GPUQ_ETOOBIG, "a message of this method has at most %zu bytes",
			  most);
		conn_close(c, &err);
		return false;
	}
	if (c->granted || flight_admit(c, most))
		return true;
	/* It is not read until it is admitted, and then scanned from its beginning. */
	memset(&c->scan, 0, sizeof(c->scan));
	stop_timer(&c->frame_timer);
	if (c->readable)
		event_del(c->readable);
	return false;
}

void conn_admitted(struct rpc_conn *c)
{
	if (c->close_timer)
		return;
	if (c->readable)
		event_add(c->readable, NULL);
	/* In the next turn: the caller may be using a connection. */
	if (!c->more_timer)
		c->more_timer = loop_after(server_loop(c->server), 0, on_more, c);
}

/* Shrink a buffer to the few bytes that it holds. */
static void shrink(struct gpuq_buf *b)
{
	struct gpuq_buf small = GPUQ_BUF_INIT;

	if (b->room <= KEEP_BYTES || b->len > b->room / 2 || b->len > GPUQ_MSG_BYTES_SMALL ||
	    gpuq_buf_add(&small, b->data, b->len) < 0)
		return;
	gpuq_buf_done(b);
	*b = small;
}

/* Take the complete messages out of `in`. */
static void take_messages(struct rpc_conn *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	while (!c->close_timer && !c->waits && !c->asking && c->taken < c->in.len && !put_off(c)) {
		const char *p = c->in.data + c->taken;
		size_t len = 0;
		int rc = gpuq_mp_next(&c->scan,
				      c->client ? &gpuq_wire_limits : &gpuq_wire_limits_hello, p,
				      c->in.len - c->taken, &len, &err);

		if (rc < 0)
			conn_close(c, &err);
		if (rc < 0 || !may_go_on(c, p, rc ? len : c->in.len - c->taken) || rc == 0)
			break;
		memset(&c->scan, 0, sizeof(c->scan));
		c->taken += len;
		stop_timer(&c->frame_timer);
		c->active_us = loop_mono_us(server_loop(c->server));
		on_message(c, p, len);
		flight_leave(c);
	}
	gpuq_buf_drop(&c->in, c->taken);
	c->taken = 0;
	if (c->in.len == 0)
		empty(&c->in);
	else
		shrink(&c->in);
	if (c->in.len == 0 || c->waits || c->asking)
		return;
	/* The time to finish a message counts from its first byte, not from its last. */
	if (!c->close_timer && !c->frame_timer && !c->more_timer)
		c->frame_timer = loop_after(server_loop(c->server), GPUQ_FRAME_TIMEOUT_S * US,
					    on_frame_timer, c);
}

/* The socket does not report bytes that TLS has read already. */
static bool has_more(const struct rpc_conn *c)
{
	return c->tls && !c->shaking && !c->close_timer && !c->waits && !c->asking &&
	       !c->more_timer && tls_pending(c->tls);
}

static void parse(struct rpc_conn *c)
{
	take_messages(c);
	if (has_more(c))
		c->more_timer = loop_after(server_loop(c->server), 0, on_more, c);
}

static void on_more(void *arg)
{
	struct rpc_conn *c = arg;

	c->more_timer = NULL;
	/* Bytes are processed in order: no further ones are read while there are messages. */
	take_messages(c);
	if (!has_more(c))
		return;
	if (loop_is_late(server_loop(c->server)))
		c->more_timer = loop_after(server_loop(c->server), 0, on_more, c);
	else
		read_some(c, c->fd);
}

void conn_welcome(struct rpc_conn *c)
{
	stop_timer(&c->hello_timer);
	/* Nothing is parsed here, since the caller may be using the connection. */
	if (!c->more_timer && (c->in.len > c->taken || (c->tls && tls_pending(c->tls))))
		c->more_timer = loop_after(server_loop(c->server), 0, on_more, c);
}

void conn_feed(struct rpc_conn *c, const void *bytes, size_t n)
{
	if (c->close_timer)
		return;
	if (gpuq_buf_add(&c->in, bytes, n) < 0)
		conn_doom(c);
	else
		parse(c);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct rpc_conn *c = arg;

	(void)what;
	if (c->shaking && !shake(c))
		return;
	/* Unread bytes stay in the buffer, and earlier ones come first. */
	if (!c->more_timer && !c->waits && !loop_is_late(server_loop(c->server)))
		read_some(c, fd);
}

static void read_some(struct rpc_conn *c, int fd)
{
	const size_t room = c->granted ? READ_BYTES : READ_BYTES_SMALL;
	ssize_t n;

	if (gpuq_buf_reserve(&c->in, room) < 0) {
		conn_kill(c);
		return;
	}
	n = get(c, fd, c->in.data + c->in.len, room);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		conn_kill(c);
		return;
	}
	c->in.len += (size_t)n;
	parse(c);
}

void conn_sweep(struct rpc_conn *c, int64_t now_us)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	if (c->close_timer || !c->client)
		return;
	if (c->peer.expires_us && loop_now_us(server_loop(c->server)) >= c->peer.expires_us) {
		protocol_error(c, GPUQ_EAUTH,
			       "the credential has expired: log in again with gpuq login");
		return;
	}
	if (c->n_calls == 0 && c->reserve && now_us - c->active_us >= GPUQ_RESERVE_IDLE_S * US) {
		protocol_error(c, GPUQ_ETIMEOUT,
			       "a connection beyond the limit of its user was idle");
	} else if (c->n_calls == 0 && now_us - c->active_us >= GPUQ_IDLE_TIMEOUT_S * US) {
		protocol_error(c, GPUQ_ETIMEOUT, "the connection was idle for too long");
	} else if (c->n_calls > 0 && now_us - c->wrote_us >= GPUQ_PING_S * US) {
		c->wrote_us = now_us;
		gpuq_wire_ping(&b);
		conn_send(c, NULL, 0, false, &b);
	}
}

struct rpc_conn *conn_new(struct rpc_server *s, int fd, const struct rpc_peer *peer)
{
	struct event_base *base = loop_base(server_loop(s));
	struct rpc_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->server = s;
	c->fd = fd;
	c->peer = *peer;
	c->share = server_share(s, peer);
	if (!c->share) {
		free(c);
		return NULL;
	}
	c->last_frame = &c->frames;
	c->active_us = c->wrote_us = loop_mono_us(server_loop(s));
	if (fd >= 0) {
		c->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, c);
		c->writable = event_new(base, fd, EV_WRITE, on_writable, c);
		if (!c->readable || !c->writable || event_add(c->readable, NULL) != 0) {
			if (c->readable)
				event_free(c->readable);
			if (c->writable)
				event_free(c->writable);
			free(c);
			return NULL;
		}
	}
	c->hello_timer = loop_after(server_loop(s), GPUQ_HELLO_TIMEOUT_S * US, on_hello_timer, c);
	server_conn_opened(s, c);
	return c;
}

static void on_start(void *arg)
{
	struct rpc_conn *c = arg;

	c->start_timer = NULL;
	c->hello_timer =
		loop_after(server_loop(c->server), GPUQ_HELLO_TIMEOUT_S * US, on_hello_timer, c);
	event_add(c->readable, NULL);
}

struct rpc_conn *conn_new_tls(struct rpc_server *s, int fd, struct tls_conn *tls,
			      const char *address, int64_t wait_us)
{
	const struct rpc_peer none = {
		.auth = RPC_AUTH_NONE, .uid = (uid_t)-1, .gid = (gid_t)-1, .user = "?"
	};
	struct rpc_conn *c = conn_new(s, fd, &none);

	if (!c)
		return NULL;
	c->tls = tls;
	c->shaking = true;
	snprintf(c->address, sizeof(c->address), "%s", address);
	if (wait_us > 0) {
		event_del(c->readable);
		stop_timer(&c->hello_timer);
		c->start_timer = loop_after(server_loop(s), wait_us, on_start, c);
	}
	return c;
}
