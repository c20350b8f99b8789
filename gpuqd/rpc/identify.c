#include "gpuqd/rpc/identify.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/rpc/server.h"
#include "gpuqd/rpc/tls.h"
#include "gpuqd/util/scope.h"
#include "gpuqd/util/walltime.h"
#include "libgpuq/limits.h"

#define US INT64_C(1000000)

/* The user of a token has been requested, or the refusal is held back for a while. */
struct ask {
	struct rpc_conn *conn; /* NULL = it is gone */
	uint32_t id; /* of hello */
	struct loop_timer *later;
	struct gpuq_err why;
};

static void put_scopes(struct gpuq_arena *a, struct gpuq_val *info, const struct rpc_conn *c)
{
	const struct rpc_peer *p = &c->peer;
	struct gpuq_val *list;

	gpuq_put(a, info, "auth", gpuq_str(a, rpc_auth_word(p->auth)));
	if (p->auth == RPC_AUTH_UNIX)
		return;
	list = gpuq_put(a, info, "scopes", gpuq_list(a));
	for (unsigned k = 0; k < N_SCOPES; k++)
		if (p->scopes & 1u << k)
			gpuq_add(a, list, gpuq_str(a, scope_word(k)));
	gpuq_put(a, info, "queues", gpuq_str(a, p->queues ? p->queues : ""));
	if (p->credential)
		gpuq_put(a, info, "credential", gpuq_str(a, p->credential));
	if (p->expires_us)
		gpuq_put(a, info, "expires_time",
			 gpuq_int(a, walltime_of(p->expires_us,
						 loop_ahead_us(server_loop(c->server)))));
}

static void answer(struct rpc_conn *c, uint32_t id)
{
	const struct rpc_opts *o = server_opts(c->server);
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_val *info = gpuq_map(&a), *list, *limits;

	gpuq_put(&a, info, "version", gpuq_str(&a, o->version));
	list = gpuq_put(&a, info, "proto", gpuq_list(&a));
	gpuq_add(&a, list, gpuq_int(&a, GPUQ_PROTO_MAJOR));
	gpuq_add(&a, list, gpuq_int(&a, GPUQ_PROTO_MINOR));
	gpuq_put(&a, info, "server", gpuq_str(&a, o->server));
	gpuq_put(&a, info, "user", gpuq_str(&a, c->peer.user));
	gpuq_put(&a, info, "role", gpuq_str(&a, rpc_role_word(server_role(c->server, &c->peer))));
	put_scopes(&a, info, c);
	limits = gpuq_put(&a, info, "limits", gpuq_map(&a));
	gpuq_put(&a, limits, "message_bytes", gpuq_int(&a, GPUQ_MSG_BYTES_MAX));
	gpuq_put(&a, limits, "outstanding", gpuq_int(&a, GPUQ_OUTSTANDING_MAX));
	gpuq_put(&a, limits, "stream_credit", gpuq_int(&a, GPUQ_STREAM_CREDIT));
	if (o->describe)
		o->describe(o->arg, &a, info);
	gpuq_wire_response(&b, id, NULL, info);
	if (!gpuq_val_ok(info))
		b.failed = true;
	conn_send(c, NULL, id, false, &b);
	gpuq_arena_done(&a);
}

static void refuse(struct rpc_conn *c, uint32_t id, const struct gpuq_err *why)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf b = GPUQ_BUF_INIT;

	gpuq_wire_response(&b, id, gpuq_wire_error(&a, why), NULL);
	gpuq_arena_done(&a);
	conn_send(c, NULL, id, false, &b);
	conn_close(c, NULL);
}

static void end(struct ask *k)
{
	if (k->conn)
		k->conn->asking = NULL;
	loop_cancel(k->later);
	free(k);
}

static void on_later(void *arg)
{
	struct ask *k = arg;
	struct rpc_conn *c = k->conn;
	const struct gpuq_err why = k->why;
	const uint32_t id = k->id;

	k->later = NULL;
	end(k);
	if (!c->close_timer)
		refuse(c, id, &why);
}

/* No, in a while: who tries many tokens is slow. */
static void deny(struct ask *k, const struct gpuq_err *why)
{
	struct rpc_conn *c = k->conn;

	server_log_refused(c->server, c, why);
	k->why = *why;
	k->later = loop_after(server_loop(c->server), GPUQ_AUTH_DELAY_S * US, on_later, k);
}

static int take(struct rpc_conn *c, const struct rpc_identity *id, struct gpuq_err *err)
{
	const struct rpc_opts *o = server_opts(c->server);
	struct rpc_peer p = { .auth = id->auth,
			      .uid = (uid_t)-1,
			      .gid = (gid_t)-1,
			      .role = RPC_ROLE_USER,
			      .scopes = id->scopes,
			      .expires_us = id->expires_us };
	int rc = o->account ? o->account(o->arg, id->user, &p.uid, &p.gid, err) : 0;

	if (rc < 0) {
		if (err)
			err->code = GPUQ_EAUTH;
		return GPUQ_EAUTH;
	}
	c->queues = strdup(id->queues ? id->queues : "");
	c->groups = strdup(id->groups ? id->groups : "");
	c->credential = strdup(id->credential);
	if (!c->queues || !c->groups || !c->credential)
		return gpuq_no_memory(err);
	p.queues = c->queues;
	p.groups = c->groups;
	p.credential = c->credential;
	p.user = id->user; /* replaced by the server's own copy */
	return server_conn_known(c->server, c, &p, err);
}

static void on_known(void *arg, const struct rpc_identity *id, const struct gpuq_err *why)
{
	struct ask *k = arg;
	struct rpc_conn *c = k->conn;
	struct gpuq_err err = GPUQ_ERR_INIT;
	const uint32_t hello = k->id;
	int rc;

	if (!c || c->close_timer) {
		end(k);
		return;
	}
	if (!id) {
		deny(k, why);
		return;
	}
	rc = take(c, id, &err);
	if (rc == GPUQ_EAUTH) {
		deny(k, &err);
		return;
	}
	end(k);
	if (rc < 0) {
		refuse(c, hello, &err);
		return;
	}
	c->client = c->claims;
	c->claims = NULL;
	conn_welcome(c);
	answer(c, hello);
}

static void no_proof(const struct rpc_opts *o, struct gpuq_err *err)
{
	gpuq_fail(err, GPUQ_EAUTH,
		  "no proof of identity: gpuq login with a token, or a token by --token-file, "
		  "$GPUQ_TOKEN_FILE or $GPUQ_TOKEN%s",
		  o->tls.client_ca ? ", or a client certificate" : "");
}

static void by_certificate(struct rpc_conn *c, struct ask *k)
{
	const struct rpc_opts *o = server_opts(c->server);
	struct rpc_identity id = { .auth = RPC_AUTH_CERT, .scopes = SCOPE_ALL };
	struct gpuq_err err = GPUQ_ERR_INIT;
	char *name = NULL, print[65];
	int rc = tls_client_name(c->tls, o->tls.by_email ? TLS_NAME_EMAIL : TLS_NAME_URI, &name,
				 &err);

	if (rc == 0)
		no_proof(o, &err);
	if (rc == 1) {
		tls_client_print(c->tls, print);
		id.user = name;
		id.credential = print;
		id.expires_us = walltime_to_ledger(tls_client_expires_us(c->tls),
						   loop_ahead_us(server_loop(c->server)));
	}
	on_known(k, rc == 1 ? &id : NULL, &err);
	free(name);
}

static void ask(struct rpc_conn *c, const struct gpuq_wire_msg *m)
{
	const struct rpc_opts *o = server_opts(c->server);
	const struct gpuq_val *token = gpuq_get(gpuq_get(m->params, "auth"), "token");
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct ask *k = calloc(1, sizeof(*k));

	if (!k) {
		gpuq_no_memory(&err);
		conn_close(c, &err);
		return;
	}
	*k = (struct ask){ .conn = c, .id = m->id };
	c->asking = k;
	if (!token) {
		by_certificate(c, k);
		return;
	}
	if (token->type != GPUQ_STR || token->n == 0 || token->n > GPUQ_CREDENTIAL_BYTES_MAX ||
	    memchr(token->s, '\0', token->n) || !o->authenticate) {
		gpuq_fail(&err, GPUQ_EAUTH, "a token is text of 1 to %u bytes",
			  GPUQ_CREDENTIAL_BYTES_MAX);
		on_known(k, NULL, &err);
		return;
	}
	o->authenticate(o->arg, token->s, on_known, k);
}

void identify_hello(struct rpc_conn *c, const struct gpuq_wire_msg *m)
{
	const struct gpuq_val *proto = gpuq_get(m->params, "proto");
	const char *client = gpuq_get_str(m->params, "client", "");
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (m->type != GPUQ_WIRE_REQUEST || strcmp(m->method, "hello") != 0)
		gpuq_fail(&err, GPUQ_EPROTO, "the first call must be hello");
	else if (!proto || proto->type != GPUQ_LIST || proto->n < 1 ||
		 proto->items[0]->type != GPUQ_INT)
		gpuq_fail(&err, GPUQ_EPROTO, "hello needs proto: [major, minor] and client");
	else if (proto->items[0]->i != GPUQ_PROTO_MAJOR)
		gpuq_fail(&err, GPUQ_EVERSION, "this server speaks version 1 of the protocol");
	else if (!(c->claims = strndup(client, GPUQ_NAME_BYTES_MAX)))
		gpuq_no_memory(&err);
	if (err.code) {
		conn_close(c, &err);
	} else if (c->peer.auth == RPC_AUTH_NONE) {
		ask(c, m);
	} else {
		c->client = c->claims;
		c->claims = NULL;
		conn_welcome(c);
		answer(c, m->id);
	}
}

bool identify_may_call(struct rpc_conn *c, const struct gpuq_wire_msg *m)
{
	const struct rpc_method *method =
		m->type == GPUQ_WIRE_REQUEST ? server_method(c->server, m->method) : NULL;

	if (!method || method->least != RPC_ROLE_ANY || c->peer.auth != RPC_AUTH_NONE || c->called)
		return false;
	c->called = true;
	return true;
}

void identify_forget(struct rpc_conn *c)
{
	struct ask *k = c->asking;

	if (!k)
		return;
	c->asking = NULL;
	k->conn = NULL;
	/* A question that is still open is answered, and ended then. */
	if (k->later)
		end(k);
}
