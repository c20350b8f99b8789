#include "gpuqd/auth/auth.h"

#include <stdlib.h>
#include <string.h>

#include "gpuqd/auth/issuer.h"
#include "gpuqd/auth/jwt.h"
#include "gpuqd/auth/reviews.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/net/fetch.h"
#include "libgpuq/buf.h"

struct auth {
	struct loop *loop;
	struct auth_opts opts;
	struct fetcher *fetcher;
	struct issuer **issuers; /* one for each that the rules name */
	size_t n_issuers;
	struct devices *devices; /* logins */
	struct reviews *reviews; /* NULL = tokens of the cluster are refused */
	struct cluster *cluster; /* NULL while there is none */
};

/* A token whose key is being asked for. */
struct question {
	struct auth *auth;
	struct issuer *issuer;
	const struct auth_rule *only; /* the one that counts; NULL = the first that fits */
	struct jwt *token;
	auth_fn fn;
	void *arg;
};

static struct issuer *issuer_find(const struct auth *a, const char *url)
{
	for (size_t k = 0; k < a->n_issuers; k++)
		if (strcmp(issuer_url(a->issuers[k]), url) == 0)
			return a->issuers[k];
	return NULL;
}

static void join(const struct gpuq_strlist *l, struct gpuq_buf *out)
{
	for (size_t k = 0; k < l->n; k++)
		gpuq_buf_printf(out, "%s%s", k ? "," : "", l->items[k]);
}

/* The signature holds: the first rule that fits says which user it is. */
static void apply(const struct question *q)
{
	const struct auth_opts *o = &q->auth->opts;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf groups = GPUQ_BUF_INIT, queues = GPUQ_BUF_INIT, credential = GPUQ_BUF_INIT;
	char user[RULE_USER_BYTES];
	struct auth_identity id = { .user = user };
	int rc = GPUQ_EAUTH;

	for (size_t k = 0; k < o->n_rules && rc != 0; k++) {
		const struct auth_rule *r = &o->rules[k];

		if (q->only ? r != q->only : strcmp(r->issuer, issuer_url(q->issuer)) != 0)
			continue;
		gpuq_buf_clear(&groups);
		err = (struct gpuq_err)GPUQ_ERR_INIT;
		rc = jwt_apply(q->token, r, loop_wall_us(q->auth->loop), user, &groups, &err);
		if (rc < 0)
			continue;
		join(&r->queues, &queues);
		gpuq_buf_printf(&credential, "oidc:%s", r->name);
		id.groups = gpuq_buf_str(&groups);
		id.queues = gpuq_buf_str(&queues);
		id.credential = gpuq_buf_str(&credential);
		id.scopes = r->scopes;
		id.expires_wall_us = jwt_expires_us(q->token);
		if (groups.failed || queues.failed || credential.failed)
			rc = gpuq_no_memory(&err);
		break;
	}
	if (rc < 0 && !err.code)
		gpuq_fail(&err, GPUQ_EAUTH,
			  "the rule of auth.oidc for the web token was changed: repeat");
	q->fn(q->arg, rc == 0 ? &id : NULL, &err);
	gpuq_buf_done(&groups);
	gpuq_buf_done(&queues);
	gpuq_buf_done(&credential);
}

static void end(struct question *q)
{
	jwt_free(q->token);
	free(q);
}

/* True: the key was there, and q is answered. */
static bool decide(const struct question *q)
{
	const struct jwks *keys = issuer_keys(q->issuer);
	const cjose_jwk_t *key =
		keys ? jwks_find(keys, jwt_kid(q->token), jwt_alg(q->token)) : NULL;
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (!key)
		return false;
	if (jwt_verify(q->token, key, &err) < 0)
		q->fn(q->arg, NULL, &err);
	else
		apply(q);
	return true;
}

static void refuse(const struct question *q)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const char *url = issuer_url(q->issuer), *why = issuer_why(q->issuer);

	if (issuer_keys(q->issuer))
		gpuq_fail(
			&err, GPUQ_EAUTH,
			"the web token's key is not among those of %.128s; where it is new, repeat "
			"in a minute",
			url);
	else
		gpuq_fail(&err, GPUQ_EAUTH,
			  "the keys of %.128s are not known: %s; once it answers, repeat", url,
			  *why ? why : "it has not answered yet");
	q->fn(q->arg, NULL, &err);
}

static void on_renewed(void *arg)
{
	struct question *q = arg;

	if (!decide(q))
		refuse(q);
	end(q);
}

static void check(struct auth *a, const char *token, const struct auth_rule *only, auth_fn fn,
		  void *arg)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct question *q = calloc(1, sizeof(*q));

	if (!q) {
		gpuq_no_memory(&err);
		fn(arg, NULL, &err);
		return;
	}
	*q = (struct question){ .auth = a, .only = only, .fn = fn, .arg = arg };
	if (jwt_read(token, &q->token, &err) < 0) {
		fn(arg, NULL, &err);
		end(q);
		return;
	}
	q->issuer = issuer_find(a, jwt_issuer(q->token));
	if (only && (!q->issuer || strcmp(issuer_url(q->issuer), only->issuer) != 0)) {
		gpuq_fail(&err, GPUQ_EAUTH, "the id token of %s is of another issuer (iss)",
			  only->name);
		fn(arg, NULL, &err);
		end(q);
		return;
	}
	if (!q->issuer && a->reviews) {
		reviews_check(a->reviews, token, jwt_expires_us(q->token), fn, arg);
		end(q);
		return;
	}
	if (!q->issuer) {
		gpuq_fail(&err, GPUQ_EAUTH,
			  "the issuer of the web token (iss) is none that auth.oidc names");
		fn(arg, NULL, &err);
		end(q);
		return;
	}
	if (!decide(q)) {
		if (issuer_renew(q->issuer, on_renewed, q))
			return;
		refuse(q);
	}
	end(q);
}

void auth_check(struct auth *a, const char *token, auth_fn fn, void *arg)
{
	check(a, token, NULL, fn, arg);
}

void auth_set_cluster(struct auth *a, struct cluster *c)
{
	a->cluster = c;
	if (a->reviews)
		reviews_set_cluster(a->reviews, c);
}

/* ---- logins ---- */

static const struct auth_rule *choose(const struct auth *a, const char *name, struct gpuq_err *err)
{
	const struct auth_rule *found = NULL;
	struct gpuq_buf names = GPUQ_BUF_INIT;
	size_t n = 0;

	for (size_t k = 0; k < a->opts.n_rules; k++) {
		const struct auth_rule *r = &a->opts.rules[k];

		if (!r->client_id)
			continue;
		gpuq_buf_printf(&names, "%s%s", n++ ? ", " : "", r->name);
		if (!name || strcmp(r->name, name) == 0)
			found = r;
	}
	if (n == 0)
		gpuq_fail(err, GPUQ_ENOENT,
			  "this server has no logins in a browser (client_id in auth.oidc of "
			  "gpuqd.yaml): use a token");
	else if (!found)
		gpuq_fail(err, GPUQ_EINVAL, "no issuer with logins is named %.63s; there is %s",
			  name, gpuq_buf_str(&names));
	else if (!name && n > 1)
		gpuq_fail(err, GPUQ_EINVAL,
			  "several issuers have logins, %s: choose one with --issuer",
			  gpuq_buf_str(&names));
	gpuq_buf_done(&names);
	return n == 0 || (!name && n > 1) ? NULL : found;
}

void auth_login(struct auth *a, const char *name, const char *from, device_begun_fn fn, void *arg)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct auth_rule *r = choose(a, name, &err);

	if (r)
		device_begin(a->devices, r, issuer_find(a, r->issuer), from, fn, arg);
	else
		fn(arg, NULL, &err);
}

/* A login of which is asked. */
struct asked {
	struct auth *auth;
	struct device_state state;
	auth_login_fn fn;
	void *arg;
};

static void on_user(void *arg, const struct auth_identity *id, const struct gpuq_err *why)
{
	struct asked *k = arg;

	k->fn(k->arg, id ? &k->state : NULL, id, why);
	free(k);
}

static void on_state(void *arg, const struct device_state *s, const struct gpuq_err *why)
{
	struct asked *k = arg;

	if (s && s->token) {
		k->state = (struct device_state){ .rule = s->rule };
		check(k->auth, s->token, s->rule, on_user, k);
		return;
	}
	k->fn(k->arg, s, NULL, why);
	free(k);
}

void auth_login_finish(struct auth *a, const char *login, auth_login_fn fn, void *arg)
{
	struct asked *k = calloc(1, sizeof(*k));
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (!k) {
		gpuq_no_memory(&err);
		fn(arg, NULL, NULL, &err);
		return;
	}
	*k = (struct asked){ .auth = a, .fn = fn, .arg = arg };
	device_finish(a->devices, login, on_state, k);
}

/* ---- rules ---- */

/* The issuer of that rule: one of the old ones, which is taken out of them, or a new one. */
static struct issuer *issuer_of(struct auth *a, const struct auth_rule *r, struct issuer **old,
				size_t n_old)
{
	const struct issuer_opts o = {
		.url = r->issuer, .ca = r->ca, .proxy = a->opts.proxy, .fetcher = a->fetcher
	};

	for (size_t k = 0; k < n_old; k++)
		if (old[k] && issuer_is(old[k], &o)) {
			struct issuer *i = old[k];

			old[k] = NULL;
			return i;
		}
	return issuer_new(a->loop, &o);
}

static int set_issuers(struct auth *a, struct gpuq_err *err)
{
	const struct auth_opts *o = &a->opts;
	struct issuer **old = a->issuers;
	const size_t n_old = a->n_issuers;

	a->n_issuers = 0;
	a->issuers = calloc(o->n_rules + 1, sizeof(struct issuer *));
	for (size_t k = 0; a->issuers && k < o->n_rules; k++) {
		if (issuer_find(a, o->rules[k].issuer))
			continue;
		a->issuers[a->n_issuers] = issuer_of(a, &o->rules[k], old, n_old);
		if (!a->issuers[a->n_issuers])
			break;
		a->n_issuers++;
	}
	for (size_t k = 0; k < n_old; k++)
		issuer_free(old[k]);
	free(old);
	for (size_t k = 0; a->issuers && k < o->n_rules; k++)
		if (!issuer_find(a, o->rules[k].issuer))
			return gpuq_no_memory(err);
	return a->issuers ? 0 : gpuq_no_memory(err);
}

static int set_reviews(struct auth *a, struct gpuq_err *err)
{
	reviews_free(a->reviews);
	a->reviews = a->opts.kubernetes ? reviews_new(a->loop, &a->opts) : NULL;
	if (a->opts.kubernetes && !a->reviews)
		return gpuq_no_memory(err);
	if (a->reviews)
		reviews_set_cluster(a->reviews, a->cluster);
	return 0;
}

/* End what was let in by rules that are not in o as they were. */
static void end_others(struct auth *a, const struct auth_opts *o)
{
	const struct auth_rule *was = a->opts.kubernetes, *is = o->kubernetes;
	struct gpuq_buf credential = GPUQ_BUF_INIT;
	struct gpuq_err why = GPUQ_ERR_INIT;

	gpuq_fail(&why, GPUQ_EAUTH,
		  "the rule of auth in gpuqd.yaml for this token was changed: repeat");
	for (size_t k = 0; k < a->opts.n_rules; k++) {
		bool stays = false;

		for (size_t i = 0; i < o->n_rules; i++)
			stays |= rule_same(&a->opts.rules[k], &o->rules[i]);
		if (stays)
			continue;
		gpuq_buf_clear(&credential);
		gpuq_buf_printf(&credential, "oidc:%s", a->opts.rules[k].name);
		a->opts.drop(a->opts.arg, gpuq_buf_str(&credential), &why);
	}
	if (a->reviews && !(was && is && rule_same(was, is)))
		reviews_drop(a->reviews, &why);
	gpuq_buf_done(&credential);
}

int auth_set_opts(struct auth *a, const struct auth_opts *o, struct gpuq_err *err)
{
	const struct auth_rule *was = a->opts.kubernetes, *is = o->kubernetes;
	const bool same = was && is && rule_same(was, is);
	int rc;

	devices_end(a->devices);
	end_others(a, o);
	a->opts = *o;
	rc = set_issuers(a, err);
	return rc < 0 || same ? rc : set_reviews(a, err);
}

int auth_new(struct loop *l, const struct auth_opts *o, struct auth **out, struct gpuq_err *err)
{
	struct auth *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return gpuq_no_memory(err);
	a->loop = l;
	a->opts = *o;
	rc = fetcher_new(l, o->agent, &a->fetcher, err);
	if (rc == 0 && !(a->devices = devices_new(l, a->fetcher, &a->opts.proxy)))
		rc = gpuq_no_memory(err);
	if (rc == 0)
		rc = set_issuers(a, err);
	if (rc == 0)
		rc = set_reviews(a, err);
	if (rc == 0)
		*out = a;
	else
		auth_free(a);
	return rc;
}

void auth_free(struct auth *a)
{
	if (!a)
		return;
	if (a->devices)
		devices_end(a->devices);
	for (size_t k = 0; k < a->n_issuers; k++)
		issuer_free(a->issuers[k]);
	free(a->issuers);
	devices_free(a->devices);
	reviews_free(a->reviews);
	fetcher_free(a->fetcher);
	free(a);
}
