/* auth.begin, auth.finish: logins in a browser, which bring a token. Whoever may connect may call them. */
#include <stdlib.h>
#include <string.h>

#include "gpuqd/auth/auth.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/method/m_int.h"
#include "gpuqd/util/scope.h"

#define LOGIN_BYTES_MAX 64

struct begin_params {
	const char *issuer; /* NULL = the only one */
};

static const struct gpuq_field begin_fields[] = {
	P(begin_params, "issuer", GPUQ_K_STR, issuer, .max = GPUQ_NAME_BYTES_MAX),
	P_END,
};
const struct gpuq_schema p_auth_begin = P_SCHEMA(begin_params, begin_fields);

struct finish_params {
	const char *login;
};

static const struct gpuq_field finish_fields[] = {
	P(finish_params, "login", GPUQ_K_STR, login, .flags = GPUQ_F_REQUIRED,
	  .max = LOGIN_BYTES_MAX),
	P_END,
};
const struct gpuq_schema p_auth_finish = P_SCHEMA(finish_params, finish_fields);

/* A call that waits for an issuer. */
struct waiting {
	struct methods *m;
	struct rpc_call *call;
};

static struct waiting *wait_for(struct methods *m, struct rpc_call *c, struct gpuq_err *err)
{
	struct waiting *w = NULL;

	if (!m->auth)
		gpuq_fail(err, GPUQ_ENOENT,
			  "this server has no logins in a browser (auth.oidc of gpuqd.yaml): use a "
			  "token");
	else if (!(w = malloc(sizeof(*w))))
		gpuq_no_memory(err);
	else
		*w = (struct waiting){ m, c };
	return w;
}

static void fail(struct rpc_call *c, const struct gpuq_err *why)
{
	if (why->code == GPUQ_EAUTH)
		rpc_deny(c, why);
	else
		rpc_fail(c, why);
}

static void on_begun(void *arg, const struct device_begun *b, const struct gpuq_err *why)
{
	struct waiting *w = arg;
	struct rpc_call *c = w->call;
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *v = gpuq_map(a);

	free(w);
	if (!b) {
		fail(c, why);
		return;
	}
	gpuq_put(a, v, "login", gpuq_str(a, b->login));
	gpuq_put(a, v, "issuer", gpuq_str(a, b->rule));
	gpuq_put(a, v, "verification_uri", gpuq_str(a, b->uri));
	if (b->uri_complete)
		gpuq_put(a, v, "verification_uri_complete", gpuq_str(a, b->uri_complete));
	gpuq_put(a, v, "user_code", gpuq_str(a, b->code));
	gpuq_put(a, v, "expires_s", gpuq_int(a, b->expires_s));
	gpuq_put(a, v, "interval_s", gpuq_int(a, b->interval_s));
	rpc_reply(c, v);
}

int m_auth_begin(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	const struct begin_params *p = params;
	struct waiting *w = wait_for(arg, c, err);
	char net[RPC_NET_BYTES];

	if (!w)
		return GPUQ_ENOENT;
	rpc_call_net(c, net);
	auth_login(w->m->auth, p->issuer, net, on_begun, w);
	return 0;
}

static void pending(struct rpc_call *c, const struct device_state *s)
{
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "state", gpuq_str(a, "pending"));
	gpuq_put(a, v, "interval_s", gpuq_int(a, s->interval_s));
	if (*s->trouble)
		gpuq_put(a, v, "trouble", gpuq_str(a, s->trouble));
	rpc_reply(c, v);
}

/* The user is known: issue its token. Never with scope operate, which makes an operator of any token of gpuqd. */
static int issue(struct methods *m, struct rpc_call *c, const struct auth_rule *r,
		 const struct auth_identity *id, struct gpuq_err *err)
{
	const int64_t now_us = loop_now_us(journal_loop(m->j));
	const int64_t life_us =
		r->login_age_us < m->token_age_us ? r->login_age_us : m->token_age_us;
	struct event ev = { .type = EV_TOKEN_ISSUED, .at_us = now_us };
	uid_t uid;
	gid_t gid;

	if (strcmp(m->kind, "local") == 0 && tokens_account(NULL, id->user, &uid, &gid, err) < 0) {
		err->code = GPUQ_EAUTH;
		return GPUQ_EAUTH;
	}
	ev.token.user = id->user;
	ev.token.by = id->credential;
	ev.token.groups = id->groups;
	ev.token.queues = id->queues;
	ev.token.comment = "gpuq login";
	ev.token.scopes = id->scopes & ~(uint32_t)SCOPE_OPERATE;
	ev.token.expires_us = now_us + life_us;
	return tokens_issue(m, c, &ev, err);
}

static void on_state(void *arg, const struct device_state *s, const struct auth_identity *id,
		     const struct gpuq_err *why)
{
	struct waiting *w = arg;
	struct methods *m = w->m;
	struct rpc_call *c = w->call;
	struct gpuq_err err = GPUQ_ERR_INIT;

	free(w);
	if (!s)
		fail(c, why);
	else if (!id)
		pending(c, s);
	else if (issue(m, c, s->rule, id, &err) < 0)
		fail(c, &err);
}

int m_auth_finish(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	const struct finish_params *p = params;
	struct waiting *w = wait_for(arg, c, err);

	if (!w)
		return GPUQ_ENOENT;
	auth_login_finish(w->m->auth, p->login, on_state, w);
	return 0;
}
