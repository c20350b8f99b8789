/* token.create, token.list, token.revoke; the issue of a token; and whose a token is that a connection presents. */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/auth/auth.h"
#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/flow/audit.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/rpc/method/m_int.h"
#include "gpuqd/rpc/token_text.h"
#include "gpuqd/state/record/token.h"
#include "gpuqd/util/scope.h"
#include "gpuqd/util/walltime.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

#define LIFE_US (30 * 86400 * GPUQ_US_PER_S)
#define LIFE_OPERATE_US (GPUQ_TOKEN_OPERATE_S * GPUQ_US_PER_S)
#define USED_US (3600 * GPUQ_US_PER_S) /* how exactly the last use is known */
#define PASSWD_BYTES 65536
#define NAMES_MAX 64u

struct create_params {
	struct gpuq_strlist scopes, queues;
	int64_t expires_us;
	const char *comment, *user;
};

static const struct gpuq_field create_fields[] = {
	P(create_params, "scopes", GPUQ_K_STRLIST, scopes),
	P(create_params, "queues", GPUQ_K_STRLIST, queues),
	P(create_params, "expires", GPUQ_K_DURATION, expires_us),
	P(create_params, "comment", GPUQ_K_STR, comment, .max = GPUQ_TEXT_BYTES_MAX),
	P(create_params, "user", GPUQ_K_STR, user, .max = GPUQ_IDENTITY_BYTES_MAX),
	P_END,
};
const struct gpuq_schema p_token_create = P_SCHEMA(create_params, create_fields);

struct choose_params {
	struct gpuq_strlist ids;
	struct gpuq_strlist users;
	bool all;
};

static const struct gpuq_field list_fields[] = {
	P(choose_params, "users", GPUQ_K_STRLIST, users),
	P(choose_params, "all", GPUQ_K_BOOL, all),
	P_END,
};
const struct gpuq_schema p_token_list = P_SCHEMA(choose_params, list_fields);

static const struct gpuq_field revoke_fields[] = {
	P(choose_params, "ids", GPUQ_K_STRLIST, ids),
	P(choose_params, "users", GPUQ_K_STRLIST, users),
	P_END,
};
const struct gpuq_schema p_token_revoke = P_SCHEMA(choose_params, revoke_fields);

static bool ended(const struct token *t, int64_t now_us)
{
	return t->revoked_us || t->expires_us <= now_us;
}

static struct gpuq_val *instant(struct gpuq_arena *a, int64_t us)
{
	return us ? gpuq_int(a, us) : gpuq_null(a);
}

static struct gpuq_val *view_scopes(struct gpuq_arena *a, uint32_t scopes)
{
	struct gpuq_val *list = gpuq_list(a);

	for (unsigned k = 0; k < N_SCOPES; k++)
		if (scopes & 1u << k)
			gpuq_add(a, list, gpuq_str(a, scope_word(k)));
	return list;
}

/* A list of names that are joined by commas. */
static struct gpuq_val *view_names(struct gpuq_arena *a, const char *names)
{
	struct gpuq_val *list = gpuq_list(a);
	char *rest = gpuq_arena_strdup(a, names), *name;

	while (rest && *rest && (name = strsep(&rest, ",")) != NULL)
		gpuq_add(a, list, gpuq_str(a, name));
	return list;
}

static struct gpuq_val *view(struct gpuq_arena *a, const struct token *t, int64_t now_us)
{
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "id", gpuq_str(a, t->id));
	gpuq_put(a, v, "user", gpuq_str(a, t->user));
	gpuq_put(a, v, "state",
		 gpuq_str(a, t->revoked_us             ? "revoked"
			     : t->expires_us <= now_us ? "expired"
						       : "valid"));
	gpuq_put(a, v, "scopes", view_scopes(a, t->scopes));
	gpuq_put(a, v, "queues", view_names(a, t->queues));
	gpuq_put(a, v, "groups", view_names(a, t->groups));
	gpuq_put(a, v, "comment", gpuq_str(a, t->comment));
	gpuq_put(a, v, "by", gpuq_str(a, t->by));
	gpuq_put(a, v, "created_time", instant(a, t->created_us));
	gpuq_put(a, v, "expires_time", instant(a, t->expires_us));
	gpuq_put(a, v, "revoked_time", instant(a, t->revoked_us));
	gpuq_put(a, v, "used_time", instant(a, t->used_us));
	return v;
}

/* ---- token.create ---- */

static bool is_name(const char *s)
{
	for (size_t i = 0; s[i]; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
		      (s[i] >= '0' && s[i] <= '9') || strchr("._:/@+-", s[i])))
			return false;
	return *s && strlen(s) <= GPUQ_IDENTITY_BYTES_MAX;
}

/* The names, joined; each is that of a queue, and one of those to which the caller is restricted. */
static int join_queues(const struct model *m, const struct rpc_peer *peer,
		       const struct gpuq_strlist *queues, struct gpuq_buf *out,
		       struct gpuq_err *err)
{
	const bool restricted = peer->auth != RPC_AUTH_UNIX && peer->queues && *peer->queues;

	if (queues->n > NAMES_MAX)
		return gpuq_fail(err, GPUQ_ETOOBIG, "a token names at most %u queues", NAMES_MAX);
	for (size_t i = 0; i < queues->n; i++) {
		const struct queue *q = model_find_queue(m, queues->items[i]);

		if (!q)
			return gpuq_fail(err, GPUQ_ENOENT, "no queue is named %.64s",
					 queues->items[i]);
		if (restricted && !token_has_queue(peer->queues, q))
			return gpuq_fail(err, GPUQ_EPERM,
					 "this token is restricted to %s: it cannot issue one for "
					 "queue %s",
					 peer->queues, q->name);
		gpuq_buf_printf(out, "%s%s", i ? "," : "", q->name);
	}
	if (!queues->n && restricted)
		gpuq_buf_adds(out, peer->queues);
	return out->failed ? gpuq_no_memory(err) : 0;
}

static int choose_scopes(const struct rpc_call *c, const struct create_params *p, uint32_t *out,
			 struct gpuq_err *err)
{
	const struct rpc_peer *peer = rpc_call_peer(c);
	uint32_t scopes = SCOPE_DEFAULT;
	int rc = p->scopes.n ? scope_parse(&p->scopes, &scopes, err) : 0;

	if (rc < 0)
		return rc;
	if (peer->auth != RPC_AUTH_UNIX && !p->scopes.n)
		scopes &= peer->scopes;
	if (peer->auth != RPC_AUTH_UNIX && scopes & ~peer->scopes)
		return gpuq_fail(err, GPUQ_EPERM,
				 "a token cannot issue one with scopes that it lacks");
	if (scopes & SCOPE_OPERATE && !peer_is_operator(c))
		return gpuq_fail(err, GPUQ_EPERM, "scope operate is for operators; %s is a %s",
				 peer->user, rpc_role_word(peer->role));
	if (scopes & (SCOPE_OPERATE | SCOPE_MANAGE) && p->queues.n)
		return gpuq_fail(
			err, GPUQ_EINVAL,
			"scopes manage and operate are not restricted by queues: leave one "
			"of them out");
	*out = scopes;
	return 0;
}

static int choose_end(const struct methods *m, const struct rpc_peer *peer, uint32_t scopes,
		      int64_t asked_us, int64_t now_us, int64_t *out, struct gpuq_err *err)
{
	const bool operates = scopes & SCOPE_OPERATE;
	int64_t life_us = asked_us ? asked_us : operates ? LIFE_OPERATE_US : LIFE_US;

	if (!asked_us && life_us > m->token_age_us)
		life_us = m->token_age_us;
	if (life_us <= 0 || life_us > m->token_age_us)
		return gpuq_fail_field(err, GPUQ_ELIMIT, "expires",
				       "a token expires after at most %" PRId64
				       " days (auth.token_max_age of gpuqd.yaml)",
				       m->token_age_us / (86400 * GPUQ_US_PER_S));
	if (operates && life_us > LIFE_OPERATE_US)
		return gpuq_fail_field(err, GPUQ_ELIMIT, "expires",
				       "a token with scope operate expires after at most %d hours",
				       GPUQ_TOKEN_OPERATE_S / 3600);
	*out = now_us + life_us;
	if (peer->auth == RPC_AUTH_UNIX || !peer->expires_us || *out <= peer->expires_us)
		return 0;
	if (asked_us)
		return gpuq_fail_field(err, GPUQ_ELIMIT, "expires",
				       "a token cannot issue one that expires later than itself");
	*out = peer->expires_us;
	return 0;
}

static int choose_user(const struct methods *m, const struct rpc_call *c, const char *asked,
		       const char **out, struct gpuq_err *err)
{
	const struct rpc_peer *peer = rpc_call_peer(c);
	uid_t uid;
	gid_t gid;

	*out = asked && *asked ? asked : peer->user;
	if (strcmp(*out, peer->user) != 0 && !peer_is_operator(c))
		return gpuq_fail(err, GPUQ_EPERM,
				 "only operators may issue tokens for another user; %s is a %s",
				 peer->user, rpc_role_word(peer->role));
	if (!is_name(*out))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "a user has at most %u letters, digits and ._:/@+-",
				 GPUQ_IDENTITY_BYTES_MAX);
	return strcmp(m->kind, "local") == 0 ? tokens_account(NULL, *out, &uid, &gid, err) : 0;
}

static int note(struct methods *m, struct rpc_call *c, const char *action, const struct token *t,
		struct gpuq_err *err)
{
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *after = NULL;
	const struct rpc_peer *peer = rpc_call_peer(c);
	/* A login has its user from the token only. */
	struct audit_note n = { .who = peer->auth == RPC_AUTH_NONE ? t->user : peer->user,
				.action = action,
				.kind = "token",
				.name = t->id,
				.owner = t->user,
				.note = t->comment };

	if (!t->revoked_us) {
		after = gpuq_map(a);
		gpuq_put(a, after, "scopes", view_scopes(a, t->scopes));
		gpuq_put(a, after, "queues", view_names(a, t->queues));
	}
	n.after = after;
	return audit_add(m->j, &n, err);
}

int tokens_issue(struct methods *m, struct rpc_call *c, struct event *ev, struct gpuq_err *err)
{
	struct gpuq_arena *a = rpc_call_arena(c);
	const struct token *t = NULL;
	char text[TOKEN_TEXT_BYTES];
	struct token_text made;
	struct gpuq_val *v;
	int rc = 0;

	if (token_count(journal_model(m->j), ev->token.user) >= GPUQ_TOKENS_PER_USER)
		return gpuq_fail(err, GPUQ_ELIMIT, "user %s has %u tokens already", ev->token.user,
				 GPUQ_TOKENS_PER_USER);
	rc = token_text_new(text, &made, err);
	if (rc == 0) {
		ev->token.id = made.id;
		ev->token.hash = made.hash;
		rc = journal_apply(m->j, ev, err);
	}
	if (rc == 0) {
		t = token_find(journal_model(m->j), made.id);
		rc = note(m, c, "token.issued", t, err);
	}
	if (rc == 0) {
		v = view(a, t, ev->at_us);
		gpuq_put(a, v, "token", gpuq_str(a, text));
		rpc_reply(c, v);
	}
	token_text_wipe(text, sizeof(text));
	return rc;
}

int m_token_create(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct create_params *p = params;
	const int64_t now_us = loop_now_us(journal_loop(m->j));
	struct gpuq_buf queues = GPUQ_BUF_INIT;
	struct event ev = { .type = EV_TOKEN_ISSUED, .at_us = now_us };
	int rc;

	ev.token.by = rpc_call_peer(c)->user;
	ev.token.comment = p->comment ? p->comment : "";
	rc = choose_user(m, c, p->user, &ev.token.user, err);
	if (rc == 0)
		rc = choose_scopes(c, p, &ev.token.scopes, err);
	if (rc == 0)
		rc = choose_end(m, rpc_call_peer(c), ev.token.scopes, p->expires_us, now_us,
				&ev.token.expires_us, err);
	if (rc == 0)
		rc = join_queues(journal_model(m->j), rpc_call_peer(c), &p->queues, &queues, err);
	if (rc == 0) {
		ev.token.queues = gpuq_buf_str(&queues);
		rc = tokens_issue(m, c, &ev, err);
	}
	gpuq_buf_done(&queues);
	return rc;
}

/* ---- token.list, token.revoke ---- */

static bool has(const struct gpuq_strlist *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->items[i], s) == 0)
			return true;
	return false;
}

int m_token_list(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct choose_params *p = params;
	const int64_t now_us = loop_now_us(journal_loop(m->j));
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *list = gpuq_list(a);

	for (const struct token *t = journal_model(m->j)->tokens; t; t = t->hh.next) {
		const bool own = strcmp(t->user, rpc_call_peer(c)->user) == 0;

		if (!(own || peer_is_operator(c)) || (p->users.n && !has(&p->users, t->user)) ||
		    (!p->all && ended(t, now_us)))
			continue;
		gpuq_add(a, list, view(a, t, now_us));
	}
	return rpc_send_items(c, list, err);
}

static int revoke_one(struct methods *m, struct rpc_call *c, struct token *t, struct gpuq_err *err)
{
	struct event ev = { .type = EV_TOKEN_REVOKED, .at_us = loop_now_us(journal_loop(m->j)) };
	int rc;

	ev.token.id = t->id;
	rc = journal_apply(m->j, &ev, err);
	return rc == 0 ? note(m, c, "token.revoked", t, err) : rc;
}

/* Its connections end at once; the reply was before, since this may be one of them. */
static void show_out(struct methods *m, const struct token *t)
{
	struct gpuq_err why = GPUQ_ERR_INIT;

	gpuq_fail(&why, GPUQ_EAUTH, "the token %s was revoked", t->id);
	if (m->server)
		rpc_server_drop(m->server, t->id, &why);
}

int m_token_revoke(void *arg, struct rpc_call *c, const void *params, struct gpuq_err *err)
{
	struct methods *m = arg;
	const struct choose_params *p = params;
	const struct model *model = journal_model(m->j);
	const int64_t now_us = loop_now_us(journal_loop(m->j));
	struct gpuq_arena *a = rpc_call_arena(c);
	struct gpuq_val *v = gpuq_map(a);
	int64_t n = 0;
	int rc = 0;

	if (!p->ids.n && !p->users.n)
		return gpuq_fail(err, GPUQ_EINVAL, "expected ids of tokens, or users");
	for (size_t i = 0; i < p->ids.n; i++) {
		const char *id = p->ids.items[i];
		const struct token *t = strlen(id) == TOKEN_ID_BYTES ? token_find(model, id) : NULL;

		/* Whether another user's token exists is not reported. */
		if (!t || !(peer_is_operator(c) || strcmp(t->user, rpc_call_peer(c)->user) == 0))
			return gpuq_fail(err, GPUQ_ENOENT, "no such token: %.64s", id);
	}
	for (size_t i = 0; i < p->users.n; i++)
		if (!peer_is_operator(c) && strcmp(p->users.items[i], rpc_call_peer(c)->user) != 0)
			return gpuq_fail(err, GPUQ_EPERM,
					 "only operators may revoke the tokens of another user");
	for (struct token *t = model->tokens; rc == 0 && t; t = t->hh.next) {
		if (ended(t, now_us) || !(has(&p->ids, t->id) || has(&p->users, t->user)))
			continue;
		rc = revoke_one(m, c, t, err);
		n++;
	}
	if (rc == 0) {
		gpuq_put(a, v, "revoked", gpuq_int(a, n));
		rpc_reply(c, v);
	}
	for (const struct token *t = model->tokens; t; t = t->hh.next)
		if (t->revoked_us == now_us)
			show_out(m, t);
	return rc;
}

/* ---- who presents one ---- */

int tokens_account(void *arg, const char *user, uid_t *uid, gid_t *gid, struct gpuq_err *err)
{
	struct passwd pw, *got = NULL;
	char *buf = malloc(PASSWD_BYTES);
	int rc = buf ? 0 : gpuq_no_memory(err);

	(void)arg;
	if (rc == 0 && (getpwnam_r(user, &pw, buf, PASSWD_BYTES, &got) != 0 || !got))
		rc = gpuq_fail(
			err, GPUQ_EPERM,
			"user %s has no account on the server's machine, where its jobs would "
			"run",
			user);
	else if (rc == 0 && pw.pw_uid == 0)
		rc = gpuq_fail(
			err, GPUQ_EPERM,
			"%s cannot connect from another machine: local jobs would run as root",
			user);
	if (rc == 0) {
		*uid = pw.pw_uid;
		*gid = pw.pw_gid;
	}
	free(buf);
	return rc;
}

static int find(struct methods *m, const char *text, const struct token **out, struct gpuq_err *err)
{
	static const unsigned char none[TOKEN_HASH_BYTES];
	const int64_t now_us = loop_now_us(journal_loop(m->j));
	struct token_text read;
	const struct token *t;
	int rc = token_text_read(text, &read, err);

	if (rc < 0)
		return rc;
	t = token_find(journal_model(m->j), read.id);
	if (!token_text_same(t ? t->hash : none, read.hash) || !t)
		return gpuq_fail(
			err, GPUQ_EAUTH,
			"this server did not issue the token: log in again with gpuq login");
	if (t->revoked_us)
		return gpuq_fail(err, GPUQ_EAUTH, "the token %s was revoked", t->id);
	if (t->expires_us <= now_us)
		return gpuq_fail(err, GPUQ_EAUTH, "the token %s has expired", t->id);
	*out = t;
	return 0;
}

static void note_use(struct methods *m, const struct token *t)
{
	struct event ev = { .type = EV_TOKEN_USED, .at_us = loop_now_us(journal_loop(m->j)) };
	struct gpuq_err err = GPUQ_ERR_INIT;

	ev.token.id = t->id;
	if (ev.at_us - t->used_us >= USED_US && journal_apply(m->j, &ev, &err) < 0)
		log_info("token.used", "id=%s error=%s", t->id, LOGS(err.text));
}

/* A web token whose user has been asked for. */
struct asked {
	struct methods *m;
	rpc_authed_fn fn;
	void *arg;
};

static void on_vouched(void *arg, const struct auth_identity *is, const struct gpuq_err *why)
{
	struct asked *k = arg;
	struct loop *l = journal_loop(k->m->j);
	struct rpc_identity id = { .auth = RPC_AUTH_JWT };

	if (is) {
		if (is->reviewed)
			id.auth = RPC_AUTH_REVIEW;
		id.user = is->user;
		id.queues = is->queues;
		id.groups = is->groups;
		id.credential = is->credential;
		id.scopes = is->scopes;
		id.expires_us = walltime_to_ledger(is->expires_wall_us, loop_ahead_us(l));
	}
	k->fn(k->arg, is ? &id : NULL, why);
	free(k);
}

static void ask_others(struct methods *m, const char *text, rpc_authed_fn fn, void *fn_arg)
{
	struct asked *k = malloc(sizeof(*k));
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (!k) {
		gpuq_no_memory(&err);
		fn(fn_arg, NULL, &err);
		return;
	}
	*k = (struct asked){ m, fn, fn_arg };
	auth_check(m->auth, text, on_vouched, k);
}

void tokens_authenticate(void *arg, const char *text, rpc_authed_fn fn, void *fn_arg)
{
	struct methods *m = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct rpc_identity id = { .auth = RPC_AUTH_TOKEN };
	const struct token *t = NULL;

	if (m->auth && !token_text_is(text)) {
		ask_others(m, text, fn, fn_arg);
		return;
	}
	if (find(m, text, &t, &err) < 0) {
		fn(fn_arg, NULL, &err);
		return;
	}
	note_use(m, t);
	id.user = t->user;
	id.queues = t->queues;
	id.groups = t->groups;
	id.scopes = t->scopes;
	id.expires_us = t->expires_us;
	id.credential = t->id;
	fn(fn_arg, &id, NULL);
}

void tokens_refused(void *arg, const char *address, const char *why, unsigned more)
{
	struct methods *m = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const struct audit_note n = {
		.who = "-",
		.action = "auth.refused",
		.kind = "address",
		.name = address,
		.note = more ? gpuq_arena_printf(&a, "%s (and %u more)", why, more) : why,
	};

	if (audit_add(m->j, &n, &err) < 0)
		log_info("audit", "error=%s", LOGS(err.text));
	gpuq_arena_done(&a);
}
