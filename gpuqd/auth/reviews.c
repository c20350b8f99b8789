#include "gpuqd/auth/reviews.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "gpuqd/base/log.h"
#include "gpuqd/base/loop.h"
#include "gpuqd/cluster/cluster.h"
#include "libgpuq/buf.h"

#define US INT64_C(1000000)
#define HOLDS_US (60 * US)
#define AWAY_US (86400 * US)
#define ACCOUNT "system:serviceaccount:"

struct waiter {
	struct waiter *next;
	auth_fn fn;
	void *arg;
};

/* A token, under review or with what came of it. */
struct review {
	UT_hash_handle hh;
	struct reviews *reviews;
	char *token;
	int64_t expires_wall_us;
	char user[RULE_USER_BYTES]; /* "" = the first review is not over */
	char credential[32];
	int64_t good_us; /* of the last review that found it good; monotonic */
	struct cluster_review *asking;
	struct loop_timer *again;
	struct waiter *waiters;
};

struct reviews {
	struct loop *loop;
	const struct auth_opts *opts;
	struct cluster *cluster;
	struct review *all;
	unsigned long n; /* that there were: numbers the credentials */
	char *queues;
};

static void ask(struct review *v);

static void answer_one(const struct review *v, auth_fn fn, void *arg, const struct gpuq_err *why)
{
	const struct auth_rule *rule = v->reviews->opts->kubernetes;
	const struct auth_identity id = { .user = v->user,
					  .groups = "",
					  .queues = v->reviews->queues,
					  .credential = v->credential,
					  .scopes = rule->scopes,
					  .reviewed = true,
					  .expires_wall_us = v->expires_wall_us };

	fn(arg, why ? NULL : &id, why);
}

static void answer(struct review *v, const struct gpuq_err *why)
{
	struct waiter *w;

	while ((w = v->waiters) != NULL) {
		v->waiters = w->next;
		answer_one(v, w->fn, w->arg, why);
		free(w);
	}
}

static void forget(struct review *v)
{
	HASH_DEL(v->reviews->all, v);
	loop_cancel(v->again);
	explicit_bzero(v->token, strlen(v->token));
	free(v->token);
	free(v);
}

/* It is no user, or none any longer. */
static void drop(struct review *v, const struct gpuq_err *why)
{
	const struct auth_opts *o = v->reviews->opts;

	answer(v, why);
	if (*v->user)
		o->drop(o->arg, v->credential, why);
	forget(v);
}

static void on_again(void *arg)
{
	struct review *v = arg;
	const struct auth_opts *o = v->reviews->opts;

	v->again = NULL;
	if (o->in_use(o->arg, v->credential))
		ask(v);
	else
		forget(v);
}

static const char *claim(const void *arg, const char *name)
{
	const char *const *pair = arg;

	return strcmp(name, "namespace") == 0 ? pair[0]
	       : strcmp(name, "name") == 0    ? pair[1]
					      : NULL;
}

/* The user of a service account: system:serviceaccount:NAMESPACE:NAME. */
static int name_user(const struct auth_rule *rule, const char *is, char user[RULE_USER_BYTES],
		     struct gpuq_err *err)
{
	const size_t n = sizeof(ACCOUNT) - 1;
	char ns[256];
	const char *name = strncmp(is, ACCOUNT, n) == 0 ? strchr(is + n, ':') : NULL;
	const char *pair[] = { ns, name ? name + 1 : NULL };

	if (!name || (size_t)(name - is) - n >= sizeof(ns))
		return gpuq_fail(err, GPUQ_EAUTH,
				 "the cluster says that the token is of %.64s, which is no service "
				 "account",
				 is);
	snprintf(ns, sizeof(ns), "%.*s", (int)((size_t)(name - is) - n), is + n);
	return rule_user(rule->user, claim, pair, user, err);
}

static void settle(struct review *v, const char *is)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	char user[RULE_USER_BYTES];

	if (name_user(v->reviews->opts->kubernetes, is, user, &err) < 0 ||
	    (*v->user && strcmp(v->user, user) != 0)) {
		if (!err.code)
			gpuq_fail(&err, GPUQ_EAUTH, "the token is of another account now");
		drop(v, &err);
		return;
	}
	snprintf(v->user, sizeof(v->user), "%s", user);
	v->good_us = loop_mono_us(v->reviews->loop);
	v->again = loop_after(v->reviews->loop, HOLDS_US, on_again, v);
	answer(v, NULL);
}

static void on_review(void *arg, enum review_outcome o, const char *user, const char *message)
{
	struct review *v = arg;
	struct gpuq_err err = GPUQ_ERR_INIT;

	v->asking = NULL;
	if (o == REVIEW_IS) {
		settle(v, user);
	} else if (o == REVIEW_IS_NOT) {
		/* Its words are for the log: a stranger is not told what was right. */
		log_info("auth.review", "said=%s", LOGS(message));
		gpuq_fail(&err, GPUQ_EAUTH,
			  "the cluster does not know the token, or not for the audience %.64s: it "
			  "has "
			  "expired, its pod or account is gone, or it was made for another purpose",
			  v->reviews->opts->kubernetes->audience);
		drop(v, &err);
	} else {
		log_warn("auth.review", "error=%s", LOGS(message));
		gpuq_fail(&err, GPUQ_EAUTH, "the cluster does not say whose the token is: %.160s",
			  message);
		if (*v->user && loop_mono_us(v->reviews->loop) - v->good_us < AWAY_US) {
			answer(v, NULL);
			v->again = loop_after(v->reviews->loop, HOLDS_US, on_again, v);
		} else {
			drop(v, &err);
		}
	}
}

static void ask(struct review *v)
{
	struct cluster *c = v->reviews->cluster;

	loop_cancel(v->again);
	v->again = NULL;
	if (c && c->ops->token_review)
		v->asking = c->ops->token_review(
			c, v->token, v->reviews->opts->kubernetes->audience, on_review, v);
	if (!v->asking)
		on_review(v, REVIEW_UNKNOWN, "", "there is no connection to it; repeat later");
}

/* Room for one more: those that no connection uses may go. */
static bool make_room(struct reviews *r)
{
	const struct auth_opts *o = r->opts;
	struct review *v, *next;

	if (HASH_COUNT(r->all) < GPUQ_REVIEWS_MAX)
		return true;
	HASH_ITER(hh, r->all, v, next)
		if (!v->asking && !o->in_use(o->arg, v->credential))
			forget(v);
	return HASH_COUNT(r->all) < GPUQ_REVIEWS_MAX;
}

static struct review *add(struct reviews *r, const char *token, int64_t expires_wall_us)
{
	struct review *v = make_room(r) ? calloc(1, sizeof(*v)) : NULL;

	if (!v)
		return NULL;
	v->token = strdup(token);
	if (!v->token) {
		free(v);
		return NULL;
	}
	v->reviews = r;
	v->expires_wall_us = expires_wall_us;
	snprintf(v->credential, sizeof(v->credential), "review:%lu", ++r->n);
	HASH_ADD_KEYPTR(hh, r->all, v->token, strlen(v->token), v);
	return v;
}

void reviews_check(struct reviews *r, const char *token, int64_t expires_wall_us, auth_fn fn,
		   void *arg)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct waiter *w = NULL;
	struct review *v;

	HASH_FIND_STR(r->all, token, v);
	if (v && !v->asking && loop_mono_us(r->loop) - v->good_us < HOLDS_US) {
		answer_one(v, fn, arg, NULL);
		return;
	}
	if (!v)
		v = add(r, token, expires_wall_us);
	if (v)
		w = calloc(1, sizeof(*w));
	if (!w) {
		gpuq_fail(&err, GPUQ_EAUTH, "too many tokens are under review: repeat later");
		fn(arg, NULL, &err);
		if (v && !v->asking && !v->again)
			forget(v);
		return;
	}
	*w = (struct waiter){ v->waiters, fn, arg };
	v->waiters = w;
	if (!v->asking)
		ask(v);
}

void reviews_set_cluster(struct reviews *r, struct cluster *c)
{
	struct review *v, *next;

	HASH_ITER(hh, r->all, v, next)
		if (v->asking) {
			r->cluster->ops->review_cancel(v->asking);
			on_review(v, REVIEW_UNKNOWN, "", "the connection to it is made anew");
		}
	r->cluster = c;
}

void reviews_drop(struct reviews *r, const struct gpuq_err *why)
{
	struct review *v, *next;

	HASH_ITER(hh, r->all, v, next) {
		if (v->asking)
			r->cluster->ops->review_cancel(v->asking);
		drop(v, why);
	}
}

struct reviews *reviews_new(struct loop *l, const struct auth_opts *o)
{
	struct reviews *r = calloc(1, sizeof(*r));
	struct gpuq_buf queues = GPUQ_BUF_INIT;

	if (!r)
		return NULL;
	r->loop = l;
	r->opts = o;
	for (size_t k = 0; k < o->kubernetes->queues.n; k++)
		gpuq_buf_printf(&queues, "%s%s", k ? "," : "", o->kubernetes->queues.items[k]);
	r->queues = queues.failed ? NULL : strdup(gpuq_buf_str(&queues));
	gpuq_buf_done(&queues);
	if (!r->queues) {
		free(r);
		return NULL;
	}
	return r;
}

void reviews_free(struct reviews *r)
{
	struct review *v, *next;

	if (!r)
		return;
	reviews_set_cluster(r, NULL);
	HASH_ITER(hh, r->all, v, next)
		forget(v);
	free(r->queues);
	free(r);
}
