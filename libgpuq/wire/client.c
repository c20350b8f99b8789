#include "libgpuq/wire/client_int.h"

#include <stdio.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/utf8.h"
#include "libgpuq/wire/wire.h"

#define CONNECT_US (10 * INT64_C(1000000))
#define CANCEL_US (5 * INT64_C(1000000)) /* for the last word of a cancelled call */
/* The server pings while a call is open; so long a silence means it is gone. */
#define SILENCE_US (4 * GPUQ_PING_S * INT64_C(1000000))
#define FOLD_US INT64_C(1000000) /* a wait is cut in pieces of this to look for silence */

static int check_key(const char *key, struct gpuq_err *err)
{
	const size_t n = key ? strlen(key) : 0;

	if (n > GPUQ_KEY_BYTES_MAX || gpuq_utf8_check(key, n) != n)
		return gpuq_fail(err, GPUQ_EINVAL, "a key is UTF-8 text of at most %u bytes",
				 GPUQ_KEY_BYTES_MAX);
	return 0;
}

/* The request as bytes: params with the call's own map beside them. */
static int encode(struct gpuq_buf *b, uint32_t id, const char *method,
		  const struct gpuq_val *params, const char *key, int64_t deadline_us,
		  struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *map = gpuq_map(&a), *meta;
	struct gpuq_mp_scan scan = { 0 };
	size_t n;
	int rc = check_key(key, err);

	if (rc == 0 && params && (params->type != GPUQ_MAP || gpuq_get(params, GPUQ_WIRE_META)))
		rc = gpuq_fail(err, GPUQ_EINVAL, "params are a map without the key \"%s\"",
			       GPUQ_WIRE_META);
	for (uint32_t i = 0; rc == 0 && params && i < params->n; i++)
		gpuq_put(&a, map, params->pairs[i].key, params->pairs[i].val);
	if (key || deadline_us > 0) {
		meta = gpuq_put(&a, map, GPUQ_WIRE_META, gpuq_map(&a));
		if (key)
			gpuq_put(&a, meta, GPUQ_WIRE_KEY, gpuq_str(&a, key));
		if (deadline_us > 0)
			gpuq_put(&a, meta, GPUQ_WIRE_DEADLINE,
				 gpuq_int(&a, (deadline_us + 999) / 1000));
	}
	if (rc == 0) {
		gpuq_wire_request(b, id, method, map);
		if (!gpuq_val_ok(map) || b->failed)
			rc = gpuq_fail(err, GPUQ_ENOMEM, "no memory for a request");
	}
	/* The server would close the connection over such a request; refuse it here instead. */
	if (rc == 0) {
		rc = gpuq_mp_next(&scan, &gpuq_wire_limits, b->data, b->len, &n, err);
		rc = rc < 0 ? gpuq_err_prefix(err, "%s", method), rc : 0;
	}
	gpuq_arena_done(&a);
	return rc;
}

/* The connection ended while a call was under way. */
int gpuq_client_lost(struct gpuq *g, int rc, struct gpuq_err *err)
{
	if (g->closing.code) {
		if (err)
			*err = g->closing;
		return g->closing.code;
	}
	if (rc != GPUQ_EUNREACH)
		return rc;
	return gpuq_fail(err, GPUQ_EUNKNOWN,
			 "the connection to the server broke before it answered; repeat with the "
			 "same key to learn what happened");
}

/* A server that shows us out says why and closes; that may have happened before our
 * first byte left, and the words are still to be read. */
static bool heard_why(struct gpuq *g)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_incoming in;

	if (g->n_sent == 0 && g->t.fd >= 0 && !g->closing.code)
		gpuq_client_next(g, gpuq_mono_us(), &a, &in, NULL);
	gpuq_arena_done(&a);
	return g->closing.code != 0;
}

/* Send a request. Fails with what became of it: when none of it left the connection
 * is as it was; when a part did, it is of no further use. */
int gpuq_client_send_request(struct gpuq *g, const char *method, const struct gpuq_val *params,
			     const char *key, int64_t deadline_us, int64_t until_us, uint32_t *id,
			     struct gpuq_err *err)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	size_t sent = 0;
	int rc;

	rc = encode(&b, g->last_id + 1, method, params, key, deadline_us, err);
	if (rc == 0) {
		*id = ++g->last_id;
		rc = gpuq_transport_write(&g->t, b.data, b.len, until_us, &sent, err);
		if (rc < 0 && (sent > 0 || heard_why(g))) {
			gpuq_transport_close(&g->t);
			rc = gpuq_client_lost(g, GPUQ_EUNREACH, err);
		}
	}
	gpuq_buf_done(&b);
	g->t.heard_us = gpuq_mono_us(); /* silence counts from now */
	return rc;
}

static int send_note(struct gpuq *g, struct gpuq_buf *b, struct gpuq_err *err)
{
	size_t sent = 0;
	int rc = b->failed ? gpuq_fail(err, GPUQ_ENOMEM, "no memory")
			   : gpuq_transport_write(&g->t, b->data, b->len,
						  gpuq_mono_us() + CANCEL_US, &sent, err);

	if (rc < 0 && sent > 0)
		gpuq_transport_close(&g->t);
	gpuq_buf_done(b);
	return rc;
}

/* Answer a ping, remember why the server closes. Items are the caller's. */
static int on_note(struct gpuq *g, const struct gpuq_wire_msg *m, struct gpuq_err *err)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	uint32_t id;

	if (strcmp(m->method, GPUQ_WIRE_PING) == 0) {
		gpuq_wire_ping(g->duplex ? &g->out : &b);
		return g->duplex ? 0 : send_note(g, &b, err);
	}
	if (g->duplex && strcmp(m->method, GPUQ_WIRE_CREDIT) == 0) {
		if (gpuq_wire_note_id(m, &id) && id == g->credit_id && m->params->n == 2 &&
		    m->params->items[1]->type == GPUQ_INT && m->params->items[1]->i > 0 &&
		    m->params->items[1]->i <= GPUQ_STREAM_CREDIT_MAX)
			g->credit += (uint32_t)m->params->items[1]->i;
		return 0;
	}
	if (strcmp(m->method, GPUQ_WIRE_ERROR) == 0 && m->params->n == 1)
		gpuq_wire_error_read(m->params->items[0], &g->closing);
	return 0;
}

/* The next response or item, read into a. Returns 1, 0 at the deadline, or an error. */
int gpuq_client_next(struct gpuq *g, int64_t until_us, struct gpuq_arena *a,
		     struct gpuq_incoming *in, struct gpuq_err *err)
{
	struct gpuq_val *v;
	int rc;

	for (;;) {
		const int64_t fold = gpuq_mono_us() + FOLD_US;

		rc = gpuq_transport_next(&g->t, until_us < fold ? until_us : fold, &in->bytes,
					 &in->n, err);
		if (rc == 0 && gpuq_mono_us() - g->t.heard_us > SILENCE_US) {
			gpuq_transport_close(&g->t);
			return gpuq_fail(err, GPUQ_EUNKNOWN,
					 "no sign of life from the server for %d s",
					 (int)(SILENCE_US / 1000000));
		}
		if (rc == 0 && gpuq_mono_us() < until_us)
			continue;
		if (rc <= 0)
			return rc;
		in->rows = g->rows && gpuq_rows_here(g->rows, in->bytes, in->n);
		if (in->rows)
			return 1;
		rc = gpuq_mp_read(a, &gpuq_wire_limits, in->bytes, in->n, &v, err);
		if (rc == 0)
			rc = gpuq_wire_split(v, &in->msg, err);
		if (rc < 0)
			return rc;
		if (in->msg.type == GPUQ_WIRE_RESPONSE)
			return 1;
		if (in->msg.type != GPUQ_WIRE_NOTE)
			continue; /* requests to clients do not exist */
		if (strcmp(in->msg.method, GPUQ_WIRE_ITEM) == 0)
			return 1;
		rc = on_note(g, &in->msg, err);
		if (rc < 0)
			return rc;
	}
}

static bool take_sent(struct gpuq *g, uint32_t id)
{
	for (size_t i = 0; i < g->n_sent; i++)
		if (g->sent[i] == id) {
			g->sent[i] = g->sent[--g->n_sent];
			return true;
		}
	return false;
}

/* Keep a reply to gpuq_send for gpuq_recv; drop one that is no longer expected. */
int gpuq_client_keep(struct gpuq *g, const struct gpuq_incoming *in, struct gpuq_err *err)
{
	struct answer *x;

	if (in->msg.type != GPUQ_WIRE_RESPONSE || !take_sent(g, in->msg.id))
		return 0;
	x = malloc(sizeof(*x) + in->n);
	if (!x)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory for a reply");
	x->next = NULL;
	x->id = in->msg.id;
	x->n = in->n;
	memcpy(x->bytes, in->bytes, in->n);
	*g->last_answer = x;
	g->last_answer = &x->next;
	return 0;
}

int gpuq_client_settle(const struct gpuq_wire_msg *m, struct gpuq_val **reply, struct gpuq_err *err)
{
	struct gpuq_err local;

	if (!m->error) {
		if (reply)
			*reply = (struct gpuq_val *)m->result;
		return 0;
	}
	gpuq_wire_error_read(m->error, err ? err : &local);
	return err ? err->code : local.code;
}

static int64_t until(int64_t deadline_us)
{
	const int64_t now = gpuq_mono_us();

	return deadline_us > 0 && deadline_us < GPUQ_NO_DEADLINE - now ? now + deadline_us
								       : GPUQ_NO_DEADLINE;
}

static int timed_out(struct gpuq *g, uint32_t id, int64_t deadline_us, struct gpuq_err *err)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	gpuq_wire_cancel(&b, id);
	send_note(g, &b, NULL);
	return gpuq_fail(err, GPUQ_ETIMEOUT,
			 "no reply within %.1f s; the request may or may not have been carried out",
			 (double)deadline_us / 1e6);
}

static int call(struct gpuq *g, const char *method, const struct gpuq_val *params, const char *key,
		int64_t deadline_us, int64_t until_us, struct gpuq_arena *a,
		struct gpuq_val **reply, struct gpuq_err *err)
{
	struct gpuq_incoming in;
	uint32_t id = 0;
	int rc;

	rc = gpuq_client_send_request(g, method, params, key, deadline_us, until_us, &id, err);
	if (rc < 0)
		return rc;
	for (;;) {
		rc = gpuq_client_next(g, until_us, a, &in, err);
		if (rc == 0)
			return timed_out(g, id, deadline_us, err);
		if (rc < 0)
			return gpuq_client_lost(g, rc, err);
		if (in.msg.type == GPUQ_WIRE_RESPONSE && in.msg.id == id)
			return gpuq_client_settle(&in.msg, reply, err);
		rc = gpuq_client_keep(g, &in, err);
		if (rc < 0)
			return rc;
	}
}

/* Wait as long as a server says that is busy. False: it does not, or not for so long, or the caller is to stop. */
static bool wait_busy(const struct gpuq *g, int rc, const struct gpuq_err *err, int64_t until_us)
{
	struct pollfd stop = { .fd = g->t.stop_fd, .events = POLLIN };

	return rc == GPUQ_EBUSY && err->retry_ms > 0 &&
	       gpuq_mono_us() + err->retry_ms * INT64_C(1000) < until_us &&
	       poll(&stop, 1, err->retry_ms) == 0;
}

int gpuq_client_busy(const struct gpuq *g, struct gpuq_err *err)
{
	if (g->streaming)
		return gpuq_fail(err, GPUQ_EINVAL, "a stream is under way on this connection");
	return 0;
}

int gpuq_call(struct gpuq *g, const char *method, const struct gpuq_val *params, const char *key,
	      int64_t deadline_us, struct gpuq_arena *a, struct gpuq_val **reply,
	      struct gpuq_err *err)
{
	const int64_t busy_us = gpuq_mono_us() + g->busy_us, until_us = until(deadline_us);
	struct gpuq_err local;
	int rc = gpuq_client_busy(g, err);

	if (rc < 0)
		return rc;
	if (!err)
		err = &local;
	do {
		*err = (struct gpuq_err)GPUQ_ERR_INIT;
		rc = call(g, method, params, key, deadline_us, until_us, a, reply, err);
	} while (wait_busy(g, rc, err, busy_us < until_us ? busy_us : until_us));
	return rc;
}

static int hello(struct gpuq *g, const struct gpuq_connect_opts *o, int64_t timeout_us,
		 int64_t until_us, struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *params = gpuq_map(&a);
	struct gpuq_val *proto = gpuq_put(&a, params, "proto", gpuq_list(&a)), *auth;
	const struct gpuq_val *theirs;
	int rc;

	gpuq_add(&a, proto, gpuq_int(&a, GPUQ_PROTO_MAJOR));
	gpuq_add(&a, proto, gpuq_int(&a, GPUQ_PROTO_MINOR));
	gpuq_put(&a, params, "client", gpuq_str(&a, o->client));
	if (g->t.tls && o->token) {
		auth = gpuq_put(&a, params, "auth", gpuq_map(&a));
		gpuq_put(&a, auth, "token", gpuq_str(&a, o->token));
	}
	rc = gpuq_val_ok(params) ? call(g, "hello", params, NULL, timeout_us, until_us,
					&g->info_arena, &g->info, err)
				 : gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	gpuq_arena_done(&a);
	/* Nothing can have happened by a hello: the caller may just try again. */
	if (rc == GPUQ_EUNKNOWN || rc == GPUQ_ETIMEOUT)
		return gpuq_fail(err, GPUQ_EUNREACH, "the server does not answer");
	if (rc < 0)
		return rc;
	theirs = gpuq_get(g->info, "proto");
	if (!theirs || theirs->type != GPUQ_LIST || theirs->n < 1 ||
	    theirs->items[0]->type != GPUQ_INT || theirs->items[0]->i != GPUQ_PROTO_MAJOR)
		return gpuq_fail(err, GPUQ_EVERSION,
				 "the server speaks another version of the protocol than %d.%d",
				 GPUQ_PROTO_MAJOR, GPUQ_PROTO_MINOR);
	return 0;
}

int gpuq_connect(const char *addr, const char *client, int64_t timeout_us, struct gpuq **out,
		 struct gpuq_err *err)
{
	return gpuq_connect_stop(addr, client, timeout_us, -1, out, err);
}

int gpuq_connect_stop(const char *addr, const char *client, int64_t timeout_us, int stop_fd,
		      struct gpuq **out, struct gpuq_err *err)
{
	const struct gpuq_connect_opts o = {
		.addr = addr, .client = client, .timeout_us = timeout_us, .stop_fd = stop_fd
	};

	return gpuq_connect_opts(&o, out, err);
}

int gpuq_connect_opts(const struct gpuq_connect_opts *o, struct gpuq **out, struct gpuq_err *err)
{
	const int64_t timeout_us = o->timeout_us > 0 ? o->timeout_us : CONNECT_US;
	const int64_t until_us = until(timeout_us);
	struct gpuq *g = calloc(1, sizeof(*g));
	int rc;

	if (!g)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	g->t.fd = -1;
	g->busy_us = o->busy_us;
	g->last_answer = &g->answers;
	rc = gpuq_transport_open(&g->t, o, until_us, err);
	if (rc == 0 && !o->no_hello) {
		rc = hello(g, o, timeout_us, until_us, err);
		if (rc == GPUQ_EUNREACH && !g->closing.code)
			gpuq_transport_explain(&g->t, o->addr, err);
	}
	if (rc < 0) {
		gpuq_close(g);
		return rc;
	}
	*out = g;
	return 0;
}

const char *gpuq_server_pin(const struct gpuq *g)
{
	return g->t.tls ? gpuq_tls_pin(g->t.tls) : NULL;
}

void gpuq_close(struct gpuq *g)
{
	struct answer *x;

	if (!g)
		return;
	gpuq_transport_close(&g->t);
	while ((x = g->answers) != NULL) {
		g->answers = x->next;
		free(x);
	}
	gpuq_arena_done(&g->info_arena);
	gpuq_buf_done(&g->out);
	free(g);
}

const struct gpuq_val *gpuq_server_info(const struct gpuq *g)
{
	return g->info;
}

/* A stream under way. */
struct stream {
	uint32_t id;
	gpuq_item_fn fn;
	void *arg;
	uint32_t used; /* credit since the last grant */
	int verdict; /* of the callback, once not 0: the call is cancelled */
	bool begun; /* an item came */
};

/* Hand on an item, or rows (NULL: it is a tick); grant credit, or cancel when the callback
 * has enough. */
static int on_item(struct gpuq *g, struct stream *s, const struct gpuq_val *item, bool rows,
		   struct gpuq_err *err)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	int rc = 0;

	if (s->verdict)
		return 0; /* still under way when we cancelled */
	g->streaming = true;
	s->begun |= item || rows;
	if (rows)
		rc = gpuq_rows_each(g->rows, s->fn, s->arg, &s->verdict, err);
	else
		s->verdict = s->fn(s->arg, item);
	g->streaming = false;
	if (rc < 0)
		return rc;
	if (s->verdict)
		gpuq_wire_cancel(&b, s->id);
	else if ((item || rows) && ++s->used >= GPUQ_STREAM_CREDIT / 2)
		gpuq_wire_credit(&b, s->id, s->used);
	else
		return 0;
	s->used = 0;
	return send_note(g, &b, err);
}

/* Returns 1 when the stream has ended, with its result in *end. */
static int stream_step(struct gpuq *g, struct stream *s, int64_t until_us, struct gpuq_arena *a,
		       struct gpuq_val **reply, int *end, struct gpuq_err *err)
{
	struct gpuq_arena item_arena = GPUQ_ARENA_INIT(0);
	struct gpuq_incoming in;
	uint32_t id;
	struct gpuq_val *result = NULL;
	int rc = gpuq_client_next(g, until_us, &item_arena, &in, err);

	if (rc == 0) {
		rc = s->verdict ? gpuq_fail(err, GPUQ_ETIMEOUT, "the server does not let go")
				: on_item(g, s, NULL, false, err);
	} else if (rc == 1 && in.rows) {
		rc = on_item(g, s, NULL, true, err);
	} else if (rc == 1 && in.msg.type == GPUQ_WIRE_RESPONSE && in.msg.id == s->id) {
		*end = gpuq_client_settle(&in.msg, &result, err);
		if (*end == 0 && result && reply) {
			*reply = gpuq_val_copy(a, result);
			if (!*reply)
				*end = gpuq_fail(err, GPUQ_ENOMEM, "no memory for a reply");
		}
	} else if (rc == 1 && in.msg.type == GPUQ_WIRE_NOTE) {
		rc = gpuq_wire_note_id(&in.msg, &id) && id == s->id && in.msg.params->n == 3
			     ? on_item(g, s, in.msg.params->items[2], false, err)
			     : 0;
	} else if (rc == 1) {
		rc = gpuq_client_keep(g, &in, err);
	}
	gpuq_arena_done(&item_arena);
	return rc;
}

static int stream_once(struct gpuq *g, const char *method, const struct gpuq_val *params,
		       int64_t tick_us, gpuq_item_fn fn, void *arg, struct gpuq_arena *a,
		       struct gpuq_val **reply, bool *begun, struct gpuq_err *err)
{
	struct stream s = { .fn = fn, .arg = arg };
	int64_t next_us;
	int end = 0, rc = gpuq_client_send_request(g, method, params, NULL, 0, until(CONNECT_US),
						   &s.id, err);

	if (rc < 0)
		return rc;
	if (g->rows)
		g->rows->id = s.id;
	next_us = until(tick_us);
	do {
		const bool was_over = s.verdict != 0;

		rc = stream_step(g, &s, next_us, a, reply, &end, err);
		if (s.verdict && !was_over)
			next_us = until(CANCEL_US);
		else if (!s.verdict && gpuq_mono_us() >= next_us)
			next_us = until(tick_us);
	} while (rc == 0);
	*begun = s.begun;
	if (s.verdict) {
		/* The server's final reply no longer matters; but a connection whose stream did
		 * not end cannot be used any more. */
		if (rc < 0)
			gpuq_transport_close(&g->t);
		return s.verdict;
	}
	return rc < 0 ? gpuq_client_lost(g, rc, err) : end;
}

static int stream(struct gpuq *g, const char *method, const struct gpuq_val *params,
		  int64_t tick_us, gpuq_item_fn fn, void *arg, struct gpuq_arena *a,
		  struct gpuq_val **reply, struct gpuq_err *err)
{
	const int64_t until_us = gpuq_mono_us() + g->busy_us;
	struct gpuq_err local;
	bool begun = false;
	int rc;

	if (!err)
		err = &local;
	do {
		*err = (struct gpuq_err)GPUQ_ERR_INIT;
		rc = stream_once(g, method, params, tick_us, fn, arg, a, reply, &begun, err);
	} while (!begun && wait_busy(g, rc, err, until_us));
	return rc;
}

int gpuq_stream(struct gpuq *g, const char *method, const struct gpuq_val *params, int64_t tick_us,
		gpuq_item_fn fn, void *arg, struct gpuq_arena *a, struct gpuq_val **reply,
		struct gpuq_err *err)
{
	int rc = gpuq_client_busy(g, err);

	return rc < 0 ? rc : stream(g, method, params, tick_us, fn, arg, a, reply, err);
}

int gpuq_stream_rows(struct gpuq *g, const char *method, const struct gpuq_val *params,
		     const char *const *keys, int64_t tick_us, gpuq_item_fn fn, void *arg,
		     struct gpuq_arena *a, struct gpuq_val **reply, struct gpuq_err *err)
{
	struct gpuq_val *with_keys = NULL;
	struct gpuq_rows rows;
	int rc = gpuq_client_busy(g, err);

	if (rc < 0)
		return rc;
	rc = gpuq_rows_init(&rows, keys, params, &with_keys, err);
	if (rc == 0) {
		g->rows = &rows;
		rc = stream(g, method, with_keys, tick_us, fn, arg, a, reply, err);
		g->rows = NULL;
	}
	gpuq_rows_done(&rows);
	return rc;
}

int gpuq_send(struct gpuq *g, const char *method, const struct gpuq_val *params, const char *key,
	      uint32_t *id, struct gpuq_err *err)
{
	int rc = gpuq_client_busy(g, err);

	if (rc == 0 && g->n_sent == GPUQ_OUTSTANDING_MAX)
		rc = gpuq_fail(err, GPUQ_EBUSY, "%u calls are under way already",
			       GPUQ_OUTSTANDING_MAX);
	if (rc == 0)
		rc = gpuq_client_send_request(g, method, params, key, 0, until(CONNECT_US), id,
					      err);
	if (rc == 0)
		g->sent[g->n_sent++] = *id;
	return rc;
}

/* Take a kept answer. */
static int recv_kept(struct gpuq *g, uint32_t *id, struct gpuq_arena *a, struct gpuq_val **reply,
		     int *call_rc, struct gpuq_err *err)
{
	struct answer *x = g->answers;
	struct gpuq_wire_msg m;
	struct gpuq_val *v;
	int rc = gpuq_mp_read(a, &gpuq_wire_limits, x->bytes, x->n, &v, err);

	if (rc == 0)
		rc = gpuq_wire_split(v, &m, err);
	if (rc < 0)
		return rc;
	g->answers = x->next;
	if (!g->answers)
		g->last_answer = &g->answers;
	*id = x->id;
	*call_rc = gpuq_client_settle(&m, reply, err);
	free(x);
	return 0;
}

int gpuq_recv(struct gpuq *g, int64_t deadline_us, uint32_t *id, struct gpuq_arena *a,
	      struct gpuq_val **reply, int *call_rc, struct gpuq_err *err)
{
	const int64_t until_us = until(deadline_us);
	struct gpuq_incoming in;
	int rc = gpuq_client_busy(g, err);

	if (rc < 0)
		return rc;
	if (g->answers)
		return recv_kept(g, id, a, reply, call_rc, err);
	if (g->n_sent == 0)
		return gpuq_fail(err, GPUQ_EINVAL, "no call is under way");
	for (;;) {
		rc = gpuq_client_next(g, until_us, a, &in, err);
		if (rc == 0)
			return gpuq_fail(err, GPUQ_ETIMEOUT, "no answer within %.1f s",
					 (double)deadline_us / 1e6);
		if (rc < 0)
			return gpuq_client_lost(g, rc, err);
		if (in.msg.type == GPUQ_WIRE_RESPONSE && take_sent(g, in.msg.id))
			break;
	}
	*id = in.msg.id;
	*call_rc = gpuq_client_settle(&in.msg, reply, err);
	return 0;
}
