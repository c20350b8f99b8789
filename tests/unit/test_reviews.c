/* Tokens of service accounts, as the cluster judges them: how long an answer holds, and while there is none. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/auth/reviews.h"
#include "gpuqd/cluster/cluster.h"
#include "tests/unit/loop_rig.h"

#define MINUTE (60 * RIG_S)
#define EXPIRES (INT64_C(2000000000) * RIG_S)

/* ---- a cluster that answers when the test says so ---- */

struct cluster_review {
	bool open;
	cluster_review_fn fn;
	void *arg;
};

static struct cluster_review asked[8];
static unsigned n_asked, n_cancelled;
static char audience[64];

static struct cluster_review *on_review(struct cluster *c, const char *token, const char *aud,
					cluster_review_fn fn, void *arg)
{
	(void)c, (void)token;
	cr_assert_lt(n_asked, 8u);
	snprintf(audience, sizeof(audience), "%s", aud);
	asked[n_asked] = (struct cluster_review){ true, fn, arg };
	return &asked[n_asked++];
}

static void on_cancel(struct cluster_review *r)
{
	cr_assert(r->open);
	r->open = false;
	n_cancelled++;
}

static const struct cluster_ops ops = { .token_review = on_review, .review_cancel = on_cancel };
static struct cluster cluster = { .ops = &ops };

static void say(enum review_outcome o, const char *user, const char *message)
{
	struct cluster_review *r = &asked[n_asked - 1];

	cr_assert(r->open);
	r->open = false;
	r->fn(r->arg, o, user, message);
}

#define IS(user) say(REVIEW_IS, "system:serviceaccount:" user, "")
#define IS_NOT() say(REVIEW_IS_NOT, "", "token has been revoked")
#define AWAY() say(REVIEW_UNKNOWN, "", "apiserver is away")

/* ---- the connections ---- */

static bool in_use;
static char dropped[64], user[RULE_USER_BYTES], credential[32];
static struct gpuq_err why;
static unsigned n_known, n_refused;

static bool is_in_use(void *arg, const char *id)
{
	(void)arg, (void)id;
	return in_use;
}

static void drop(void *arg, const char *id, const struct gpuq_err *err)
{
	(void)arg;
	snprintf(dropped, sizeof(dropped), "%s", id);
	cr_assert_eq(err->code, GPUQ_EAUTH);
	in_use = false;
}

static void on_known(void *arg, const struct auth_identity *id, const struct gpuq_err *err)
{
	(void)arg;
	if (!id) {
		n_refused++;
		why = *err;
		cr_assert_eq(err->code, GPUQ_EAUTH);
		return;
	}
	n_known++;
	cr_assert(id->reviewed);
	cr_assert_eq(id->expires_wall_us, EXPIRES);
	snprintf(user, sizeof(user), "%s", id->user);
	snprintf(credential, sizeof(credential), "%s", id->credential);
}

static const struct auth_rule rule = { .name = "kubernetes",
				       .audience = "gpuq",
				       .user = "k8s:{namespace}:{name}" };
static const struct auth_opts opts = { .kubernetes = &rule, .in_use = is_in_use, .drop = drop };
static struct reviews *reviews;

static void setup(void)
{
	reviews = reviews_new(NULL, &opts);
	cr_assert(reviews);
	reviews_set_cluster(reviews, &cluster);
}

static void teardown(void)
{
	reviews_free(reviews);
	cr_assert_eq(rig_timers(), 0);
}

TestSuite(reviews, .init = setup, .fini = teardown);

static void present(const char *token)
{
	reviews_check(reviews, token, EXPIRES, on_known, NULL);
}

/* One that is good, and on a connection. */
static void connect_one(void)
{
	present("t");
	IS("lab:trainer");
	cr_assert_str_eq(user, "k8s:lab:trainer");
	in_use = true;
}

Test(reviews, an_answer_holds_for_a_minute_and_is_asked_for_once)
{
	present("t");
	present("t");
	cr_assert_eq(n_asked, 1);
	cr_assert_str_eq(audience, "gpuq");
	IS("lab:trainer");
	cr_assert_eq(n_known, 2);
	rig_pass(MINUTE - RIG_S);
	present("t");
	cr_assert_eq(n_known, 3);
	cr_assert_eq(n_asked, 1);
	/* No connection uses it: it is forgotten, not asked for. */
	rig_pass(2 * RIG_S);
	cr_assert_eq(n_asked, 1);
	present("t");
	cr_assert_eq(n_asked, 2);
}

Test(reviews, one_in_use_is_reviewed_each_minute_and_ends_when_its_account_goes)
{
	connect_one();
	rig_pass(MINUTE);
	cr_assert_eq(n_asked, 2);
	IS("lab:trainer");
	rig_pass(MINUTE);
	cr_assert_eq(n_asked, 3);
	cr_assert_str_empty(dropped);
	IS_NOT();
	cr_assert_str_eq(dropped, credential);
	present("t");
	cr_assert_eq(n_asked, 4);
	IS_NOT();
	cr_assert_eq(n_refused, 1);
	/* The cluster's own words are not for strangers. */
	cr_assert_null(strstr(why.text, "revoked"));
}

Test(reviews, one_that_becomes_another_account_ends)
{
	connect_one();
	rig_pass(MINUTE);
	IS("lab:other");
	cr_assert_str_eq(dropped, credential);
}

Test(reviews, what_is_no_service_account_is_refused)
{
	static const char *const names[] = { "ann", "system:serviceaccount:lab", "system:node:n1",
					     "system:serviceaccount:", "" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		present("t");
		say(REVIEW_IS, names[i], "");
		cr_assert_eq(n_refused, i + 1, "%s", names[i]);
	}
	present("t");
	IS("lab:a b");
	cr_assert_eq(n_known, 0);
}

Test(reviews, while_the_apiserver_is_away_a_known_one_holds_for_a_day)
{
	connect_one();
	/* Each minute it is asked for, in vain. */
	for (unsigned m = 1; m < 24 * 60; m++) {
		rig_pass(MINUTE);
		present("t"); /* on another connection */
		AWAY();
		n_asked = 0;
		cr_assert_eq(n_known, 1 + m);
		cr_assert_str_empty(dropped, "after %u minutes", m);
	}
	rig_pass(MINUTE);
	present("t");
	AWAY();
	cr_assert_eq(n_refused, 1);
	cr_assert_str_eq(dropped, credential);
}

Test(reviews, a_new_one_is_refused_while_the_apiserver_is_away)
{
	present("t");
	AWAY();
	cr_assert_eq(n_refused, 1);
	cr_assert(strstr(why.text, "apiserver is away"), "%s", why.text);
	reviews_set_cluster(reviews, NULL);
	present("t");
	cr_assert_eq(n_refused, 2);
	cr_assert(strstr(why.text, "no connection"), "%s", why.text);
}

Test(reviews, a_cluster_that_is_replaced_answers_what_is_open)
{
	present("t");
	present("u");
	reviews_set_cluster(reviews, NULL);
	cr_assert_eq(n_cancelled, 2);
	cr_assert_eq(n_refused, 2);
}

Test(reviews, a_rule_that_goes_ends_its_connections)
{
	const struct gpuq_err gone = { .code = GPUQ_EAUTH };

	connect_one();
	rig_pass(MINUTE); /* and one that is asked for meanwhile */
	reviews_drop(reviews, &gone);
	cr_assert_str_eq(dropped, credential);
	cr_assert_eq(n_cancelled, 1);
}
