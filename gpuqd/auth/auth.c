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
	struct reviews *reviews; /* NULL = tokens of the cluster are refused */
};

/* A token whose key is being asked for. */
struct question {
	struct auth *auth;
	struct issuer *issuer;
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

		if (strcmp(r->issuer, issuer_url(q->issuer)) != 0)
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

void auth_check(struct auth *a, const char *token, auth_fn fn, void *arg)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct question *q = calloc(1, sizeof(*q));

	if (!q) {
		gpuq_no_memory(&err);
		fn(arg, NULL, &err);
		return;
	}
	*q = (struct question){ .auth = a, .fn = fn, .arg = arg };
	if (jwt_read(token, &q->token, &err) < 0) {
		fn(arg, NULL, &err);
		end(q);
		return;
	}
	q->issuer = issuer_find(a, jwt_issuer(q->token));
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

void auth_set_cluster(struct auth *a, struct cluster *c)
{
	if (a && a->reviews)
		reviews_set_cluster(a->reviews, c);
}

static int add_issuer(struct auth *a, const struct auth_rule *r, struct gpuq_err *err)
{
	const struct issuer_opts o = {
		.url = r->issuer, .ca = r->ca, .proxy = a->opts.proxy, .fetcher = a->fetcher
	};

	if (issuer_find(a, r->issuer))
		return 0;
	a->issuers[a->n_issuers] = issuer_new(a->loop, &o);
	if (!a->issuers[a->n_issuers])
		return gpuq_no_memory(err);
	a->n_issuers++;
	return 0;
}

int auth_new(struct loop *l, const struct auth_opts *o, struct auth **out, struct gpuq_err *err)
{
	struct auth *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return gpuq_no_memory(err);
	a->loop = l;
	a->opts = *o;
	a->issuers = calloc(o->n_rules + 1, sizeof(*a->issuers));
	rc = a->issuers ? fetcher_new(l, o->agent, &a->fetcher, err) : gpuq_no_memory(err);
	for (size_t k = 0; rc == 0 && k < o->n_rules; k++)
		rc = add_issuer(a, &o->rules[k], err);
	if (rc == 0 && o->kubernetes && !(a->reviews = reviews_new(l, &a->opts)))
		rc = gpuq_no_memory(err);
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
	for (size_t k = 0; k < a->n_issuers; k++)
		issuer_free(a->issuers[k]);
	free(a->issuers);
	reviews_free(a->reviews);
	fetcher_free(a->fetcher);
	free(a);
}
