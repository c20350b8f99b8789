#include "gpuqd/rpc/call.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/scope.h"
#include "gpuqd/util/walltime.h"
#include "gpuqd/rpc/conn.h"
#include "gpuqd/rpc/remote.h"
#include "gpuqd/rpc/server.h"
#include "libgpuq/limits.h"

#define US INT64_C(1000000)
#define DEADLINE_MS_MAX (INT64_C(366) * 86400 * 1000)

const struct rpc_peer *rpc_call_peer(const struct rpc_call *c)
{
	return &c->peer;
}

const struct rpc_method *rpc_call_method(const struct rpc_call *c)
{
	return c->method;
}

const char *rpc_call_key(const struct rpc_call *c)
{
	return c->key;
}

int64_t rpc_call_deadline_us(const struct rpc_call *c)
{
	return c->deadline_us;
}

int64_t rpc_call_ahead_us(const struct rpc_call *c)
{
	return loop_ahead_us(server_loop(c->server));
}

const struct gpuq_val *rpc_call_params(const struct rpc_call *c)
{
	return c->params;
}

struct gpuq_arena *rpc_call_arena(struct rpc_call *c)
{
	return &c->arena;
}

/* Tell the method once that the client is gone. */
static void tell_closed(struct rpc_call *call, int why)
{
	void (*closed)(void *arg, int why) = call->closed;

	call->closed = NULL;
	call->resume = NULL;
	call->item = NULL;
	if (closed)
		closed(call->watch_arg, why);
}

static void on_tell(void *arg)
{
	struct rpc_call *call = arg;

	call->tell_timer = NULL;
	tell_closed(call, call->tell_why);
}

void rpc_call_watch(struct rpc_call *c, void (*resume)(void *arg),
		    void (*closed)(void *arg, int why), void *arg)
{
	c->resume = resume;
	c->closed = closed;
	c->watch_arg = arg;
	/* The client is gone already: the method must learn that as well. */
	if (!c->conn && closed && !c->tell_timer) {
		c->tell_why = GPUQ_EGONE;
		c->tell_timer = loop_after(server_loop(c->server), 0, on_tell, c);
	}
}

struct rpc_call *call_find(const struct rpc_conn *c, uint32_t id)
{
	struct rpc_call *call = c->calls;

	while (call && call->id != id)
		call = call->next;
	return call;
}

/* From here on there is no client. */
static void detach(struct rpc_call *call)
{
	if (!call->conn)
		return;
	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
	call->conn->n_calls--;
	call->conn->active_us = loop_mono_us(server_loop(call->server));
	call->conn = NULL;
	call->paused = false;
}

static void release(struct rpc_call *call)
{
	if (!call->finished || call->in_fn)
		return;
	flight_drop(call->server, call->share, call->bytes);
	call->share->lasting -= call->lasting;
	gpuq_arena_done(&call->arena);
	free(call);
}

/* The method is done with it; `bytes` is its reply. */
static void finish(struct rpc_call *call, struct gpuq_buf *bytes, bool failed)
{
	struct rpc_conn *conn = call->conn;

	detach(call);
	loop_cancel(call->tell_timer);
	call->tell_timer = NULL;
	loop_cancel(call->deny_timer);
	call->deny_timer = NULL;
	*call->all_link = call->all_next;
	if (call->all_next)
		call->all_next->all_link = call->all_link;
	call->finished = true;
	server_count_call(call->server, failed);
	if (conn)
		conn_send(conn, call, call->id, false, bytes);
	gpuq_buf_done(bytes);
	release(call);
}

/* Whether the peer will take it: it has the same limits as we do. */
static bool fits(const struct gpuq_buf *b, struct gpuq_err *err)
{
	struct gpuq_mp_scan scan = { 0 };
	size_t n;

	if (b->failed) {
		gpuq_fail(err, GPUQ_ENOMEM, "out of memory for the reply");
		return false;
	}
	if (gpuq_mp_next(&scan, &gpuq_wire_limits, b->data, b->len, &n, err) == 1)
		return true;
	gpuq_fail(err, GPUQ_ETOOBIG, "reply exceeds the message limit: narrow the request");
	return false;
}

static void write_error(struct gpuq_buf *b, uint32_t id, const struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);

	gpuq_buf_clear(b);
	gpuq_wire_response(b, id, gpuq_wire_error(&a, err), NULL);
	gpuq_arena_done(&a);
}

void rpc_reply(struct rpc_call *call, const struct gpuq_val *result)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (call->conn) {
		gpuq_wire_response(
			&b, call->id, NULL,
			walltime_tree(&call->arena, NULL, result, rpc_call_ahead_us(call)));
		if (!fits(&b, &err)) {
			rpc_fail(call, &err);
			gpuq_buf_done(&b);
			return;
		}
	}
	finish(call, &b, false);
}

void rpc_end(struct rpc_call *call, const struct gpuq_val *result)
{
	rpc_reply(call, result);
}

void rpc_fail(struct rpc_call *call, const struct gpuq_err *err)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	if (call->conn)
		write_error(&b, call->id, err);
	finish(call, &b, true);
}

static void on_deny(void *arg)
{
	struct rpc_call *call = arg;

	call->deny_timer = NULL;
	rpc_fail(call, call->deny_why);
}

void rpc_deny(struct rpc_call *call, const struct gpuq_err *err)
{
	call->deny_why = call->conn && !call->conn->close_timer
				 ? gpuq_arena_alloc(&call->arena, sizeof(*err))
				 : NULL;
	if (!call->deny_why) {
		rpc_fail(call, err);
		return;
	}
	*call->deny_why = *err;
	server_log_refused(call->server, call->conn, err);
	call->deny_timer =
		loop_after(server_loop(call->server), GPUQ_AUTH_DELAY_S * US, on_deny, call);
}

void rpc_call_net(const struct rpc_call *c, char out[RPC_NET_BYTES])
{
	*out = '\0';
	if (c->conn)
		remote_net(c->conn, out);
}

static bool may_send(const struct rpc_call *call)
{
	return call->credit > 0 && !conn_congested(call->conn);
}

bool rpc_item_ready(struct rpc_call *call)
{
	if (!call->conn)
		return true;
	call->paused = !may_send(call);
	return !call->paused;
}

/* Send what is in b, the next item. */
static void send_item(struct rpc_call *call, struct gpuq_buf *b)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (!fits(b, &err)) {
		gpuq_buf_done(b);
		call_doom(call, &err);
		return;
	}
	call->seq++;
	call->credit--;
	conn_send(call->conn, call, call->id, true, b);
}

bool rpc_item(struct rpc_call *call, const struct gpuq_val *item)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf b = GPUQ_BUF_INIT;

	if (!rpc_item_ready(call))
		return false;
	if (!call->conn)
		return true;
	gpuq_wire_item(&b, call->id, call->seq + 1,
		       walltime_tree(&a, NULL, item, rpc_call_ahead_us(call)));
	gpuq_arena_done(&a);
	send_item(call, &b);
	return true;
}

bool rpc_item_bytes(struct rpc_call *call, const struct gpuq_buf *value)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	if (!rpc_item_ready(call))
		return false;
	if (!call->conn)
		return true;
	gpuq_wire_item_bytes(&b, call->id, call->seq + 1, value->data, value->len);
	b.failed |= value->failed;
	send_item(call, &b);
	return true;
}

static void resume(struct rpc_call *call)
{
	struct loop *l = server_loop(call->server);
	const char *before = loop_enter(l, call->method->name);

	call->paused = false;
	if (call->resume)
		call->resume(call->watch_arg);
	loop_leave(l, before);
}

void call_credit(struct rpc_call *call, int64_t n)
{
	if (n <= 0)
		return;
	if (n > (int64_t)(GPUQ_STREAM_CREDIT_MAX - call->credit))
		n = GPUQ_STREAM_CREDIT_MAX - call->credit;
	call->credit += (uint32_t)n;
	if (call->paused && may_send(call))
		resume(call);
}

/* Each round either sends or clears a pause, so it ends. A callback may finish its
 * call and others: look from the start again. */
void call_resume_some(struct rpc_conn *c)
{
	struct rpc_call *call = c->calls;

	while (call && !conn_congested(c)) {
		if (call->paused && call->credit > 0) {
			resume(call);
			call = c->calls;
		} else {
			call = call->next;
		}
	}
}

void rpc_call_take(struct rpc_call *call, void (*item)(void *arg, const struct gpuq_val *item))
{
	call->item = item;
}

void rpc_call_grant(struct rpc_call *call, unsigned n)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	if (!call->conn || n == 0)
		return;
	call->granted += n;
	gpuq_wire_credit(&b, call->id, n);
	conn_send(call->conn, NULL, call->id, true, &b);
}

bool call_item(struct rpc_call *call, const struct gpuq_val *seq, const struct gpuq_val *item)
{
	if (call->granted == 0 || seq->type != GPUQ_INT || seq->i != (int64_t)call->taken + 1)
		return false;
	call->granted--;
	call->taken++;
	if (call->item)
		call->item(call->watch_arg, item);
	return true;
}

static void answer_for(struct rpc_call *call, const struct gpuq_err *why)
{
	struct rpc_conn *conn = call->conn;
	struct gpuq_buf b = GPUQ_BUF_INIT;

	detach(call);
	write_error(&b, call->id, why);
	conn_send(conn, call, call->id, false, &b);
	gpuq_buf_done(&b);
}

void call_cancel(struct rpc_call *call)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (!call->closed)
		return; /* it cannot be stopped: its reply comes */
	gpuq_fail(&err, GPUQ_ECANCELED, "cancelled");
	answer_for(call, &err);
	tell_closed(call, GPUQ_ECANCELED);
}

void call_doom(struct rpc_call *call, const struct gpuq_err *why)
{
	answer_for(call, why);
	call->tell_why = GPUQ_EGONE;
	/* Its method may be in the middle of something: tell it from the loop. */
	call->tell_timer = loop_after(server_loop(call->server), 0, on_tell, call);
}

void call_orphan(struct rpc_call *call)
{
	detach(call);
	tell_closed(call, GPUQ_EGONE);
}

void call_abandon(struct rpc_call *call)
{
	struct gpuq_buf none = GPUQ_BUF_INIT;

	call->in_fn = true; /* it must outlive its callback */
	detach(call);
	tell_closed(call, GPUQ_EGONE);
	call->in_fn = false;
	if (!call->finished)
		finish(call, &none, true);
	else
		release(call);
}

/* The call's own map beside the params: {k, dl}. */
static int read_meta(struct rpc_call *call, struct gpuq_err *err)
{
	const struct gpuq_val *meta = gpuq_get(call->params, GPUQ_WIRE_META);
	const struct gpuq_val *key = gpuq_get(meta, GPUQ_WIRE_KEY);
	const struct gpuq_val *dl = gpuq_get(meta, GPUQ_WIRE_DEADLINE);

	if (key) {
		if ((key->type != GPUQ_STR && key->type != GPUQ_BIN) || key->n == 0 ||
		    key->n > GPUQ_KEY_BYTES_MAX || memchr(key->s, '\0', key->n))
			return gpuq_fail_field(err, GPUQ_EINVAL, "$.k",
					       "a key is text of 1 to %u bytes",
					       GPUQ_KEY_BYTES_MAX);
		call->key = key->s;
	}
	if (dl) {
		if (dl->type != GPUQ_INT || dl->i < 0 || dl->i > DEADLINE_MS_MAX)
			return gpuq_fail_field(err, GPUQ_EINVAL, "$.dl",
					       "a deadline is 0 to %lld milliseconds",
					       (long long)DEADLINE_MS_MAX);
		if (dl->i > 0)
			call->deadline_us = loop_mono_us(server_loop(call->server)) + dl->i * 1000;
	}
	gpuq_unset(call->params, GPUQ_WIRE_META);
	return 0;
}

static void to_ledger(struct rpc_call *call, const char *key)
{
	struct gpuq_val *v = gpuq_get(call->params, key);

	if (v && v->type == GPUQ_INT)
		v->i = walltime_to_ledger(v->i, rpc_call_ahead_us(call));
}

static int read_params(struct rpc_call *call, void **params, struct gpuq_err *err)
{
	const struct gpuq_schema *schema = call->method->params;
	struct gpuq_reader r = { .arena = &call->arena,
				 .now_us = loop_wall_us(server_loop(call->server)),
				 .lenient = true,
				 .err = err };

	*params = NULL;
	to_ledger(call, "since_us");
	to_ledger(call, "until_us");
	if (!schema)
		return 0;
	*params = gpuq_arena_alloc(&call->arena, schema->size);
	if (!*params)
		return gpuq_fail(err, GPUQ_ENOMEM, "no memory");
	return gpuq_schema_read(&r, schema, call->params, *params);
}

/* Check what a token, or a certificate, leaves of the rights of its user. */
static int may_use(const struct rpc_call *call, struct gpuq_err *err)
{
	const struct rpc_peer *p = &call->peer;
	const unsigned scope = call->method->scope;

	if (p->auth == RPC_AUTH_UNIX)
		return 0;
	if (p->expires_us && loop_now_us(server_loop(call->server)) >= p->expires_us)
		return gpuq_fail(err, GPUQ_EAUTH,
				 "the credential of %s has expired: log in again with gpuq login",
				 p->user);
	if (scope & ~p->scopes)
		return gpuq_fail(err, GPUQ_EPERM, "%s needs scope %s, which the token of %s lacks",
				 call->method->name, scope_word((unsigned)__builtin_ctz(scope)),
				 p->user);
	if (scope & (SCOPE_MANAGE | SCOPE_OPERATE) && p->queues && *p->queues)
		return gpuq_fail(err, GPUQ_EPERM,
				 "%s requires a token without restriction to queues; this one is "
				 "restricted to %s",
				 call->method->name, p->queues);
	return 0;
}

/* Check that the user makes no more calls a second than it may. */
static int keeps_pace(const struct rpc_call *call, struct gpuq_err *err)
{
	const struct rpc_peer *p = &call->peer;
	const bool submits = call->method->scope & SCOPE_SUBMIT;
	int64_t wait_us;

	if (p->auth == RPC_AUTH_NONE || (p->auth == RPC_AUTH_UNIX && p->role == RPC_ROLE_OPERATOR))
		return 0;
	wait_us = flight_pace(call->share, submits, loop_mono_us(server_loop(call->server)));
	if (wait_us == 0)
		return 0;
	gpuq_fail(err, GPUQ_EBUSY, "user %s makes more than %u calls%s a second; repeat later",
		  p->user, submits ? GPUQ_SUBMITS_PER_S : GPUQ_CALLS_PER_S,
		  submits ? " of submit" : "");
	if (err)
		err->retry_ms = (wait_us + 999) / 1000;
	return GPUQ_EBUSY;
}

/* Run a method after these checks: it exists, the caller may call it, the call's own map and the
 * params are well formed. */
static int run(struct rpc_call *call, const char *name, struct gpuq_err *err)
{
	const struct rpc_opts *o = server_opts(call->server);
	struct loop *l = server_loop(call->server);
	const char *before;
	void *params = NULL;
	int rc;

	call->method = server_method(call->server, name);
	if (!call->method)
		return gpuq_fail(err, GPUQ_ENOMETHOD, "this server has no method '%.64s'", name);
	if (call->peer.role < call->method->least)
		return gpuq_fail(err, GPUQ_EPERM, "%s is for %ss; %s is a %s", name,
				 rpc_role_word(call->method->least), call->peer.user,
				 rpc_role_word(call->peer.role));
	rc = may_use(call, err);
	if (rc == 0)
		rc = keeps_pace(call, err);
	if (rc < 0)
		return rc;
	before = loop_enter(l, call->method->name);
	rc = call->method->lasts ? server_may_last(call->server, call->conn, err) : 0;
	call->lasting = call->method->lasts && rc == 0;
	call->share->lasting += call->lasting;
	if (rc == 0)
		rc = read_meta(call, err);
	if (rc == 0)
		rc = read_params(call, &params, err);
	if (rc == 0)
		rc = call->method->fn(o->arg, call, params, err);
	loop_leave(l, before);
	return rc;
}

static void refuse(struct rpc_conn *c, uint32_t id, const struct gpuq_err *err)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;

	write_error(&b, id, err);
	conn_send(c, NULL, id, false, &b);
	server_count_call(c->server, true);
}

static void link_call(struct rpc_call *call)
{
	struct rpc_call **all = server_calls(call->server);

	call->next = call->conn->calls;
	call->link = &call->conn->calls;
	if (call->next)
		call->next->link = &call->next;
	call->conn->calls = call;
	call->conn->n_calls++;
	call->all_next = *all;
	call->all_link = all;
	if (call->all_next)
		call->all_next->all_link = &call->all_next;
	*all = call;
}

/* A message that was admitted is taken. A connection without a call may make a small one though the
 * bounds are full: what it costs has a bound of its own. */
static bool is_too_much(const struct rpc_conn *c, size_t n_bytes)
{
	if (c->granted)
		return false;
	if (c->n_calls == 0 && n_bytes <= GPUQ_MSG_BYTES_SMALL)
		return c->share->bytes > GPUQ_FLIGHT_BYTES_PER_USER + GPUQ_FLIGHT_BYTES_RESERVE;
	return !flight_fits(c, n_bytes);
}

void call_start(struct rpc_conn *c, const struct gpuq_wire_msg *m, struct gpuq_arena *a,
		size_t n_bytes)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct rpc_call *call;
	int rc;

	if (call_find(c, m->id)) {
		gpuq_fail(&err, GPUQ_EPROTO, "id %u belongs to a call in progress", m->id);
		conn_close(c, &err);
		return;
	}
	if (c->n_calls >= GPUQ_OUTSTANDING_MAX) {
		gpuq_fail(&err, GPUQ_EBUSY, "%u calls of this connection are pending",
			  GPUQ_OUTSTANDING_MAX);
		err.retry_ms = 100;
		refuse(c, m->id, &err);
		return;
	}
	if (is_too_much(c, n_bytes)) {
		gpuq_fail(&err, GPUQ_EBUSY,
			  "calls and replies of user %s that are under way hold too many bytes "
			  "(limit %u MiB a user, %u MiB in all); repeat later",
			  c->peer.user, GPUQ_FLIGHT_BYTES_PER_USER >> 20,
			  GPUQ_FLIGHT_BYTES_MAX >> 20);
		err.retry_ms = 1000;
		refuse(c, m->id, &err);
		return;
	}
	call = calloc(1, sizeof(*call));
	if (!call) {
		gpuq_fail(&err, GPUQ_ENOMEM, "no memory for a call");
		refuse(c, m->id, &err);
		return;
	}
	call->server = c->server;
	call->conn = c;
	call->id = m->id;
	call->credit = GPUQ_STREAM_CREDIT;
	call->arena = *a;
	*a = (struct gpuq_arena)GPUQ_ARENA_INIT(0);
	call->share = c->share;
	call->bytes = n_bytes;
	flight_add(c->server, call->share, n_bytes);
	call->peer = c->peer;
	call->peer.role = server_role(c->server, &c->peer);
	/* The call may outlive its connection. */
	if (c->peer.queues)
		call->peer.queues = gpuq_arena_strdup(&call->arena, c->peer.queues);
	if (c->peer.groups)
		call->peer.groups = gpuq_arena_strdup(&call->arena, c->peer.groups);
	if (c->peer.credential)
		call->peer.credential = gpuq_arena_strdup(&call->arena, c->peer.credential);
	call->params = m->params ? (struct gpuq_val *)m->params : gpuq_map(&call->arena);
	link_call(call);
	call->in_fn = true;
	rc = call->params ? run(call, m->method, &err)
			  : gpuq_fail(&err, GPUQ_ENOMEM, "no memory for a call");
	call->in_fn = false;
	if (rc < 0 && !call->finished) {
		if (!err.code)
			gpuq_fail(&err, rc, "%s", gpuq_err_text(rc));
		rpc_fail(call, &err);
		return;
	}
	release(call);
}
