/* Logins in a browser: what an issuer may answer, how often it is asked, and how many there may be. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/auth/device.h"
#include "gpuqd/auth/device_reply.h"
#include "gpuqd/auth/issuer.h"
#include "libgpuq/limits.h"
#include "tests/unit/fetch_rig.h"
#include "tests/unit/loop_rig.h"

#define CODES                                                                                      \
	"{\"device_code\": \"d\", \"user_code\": \"AB-CD\", \"verification_uri\": "                \
	"\"https://i/go\", \"expires_in\": 600, \"interval\": 5}"
#define ERROR(e) "{\"error\": \"" e "\"}"

/* ---- answers ---- */

static int codes_of(long status, const char *text, struct device_codes *out, struct gpuq_err *err)
{
	const struct fetched got = { text, strlen(text), status, 0 };

	return device_read_codes("sso", &got, out, err);
}

#define CODES_OF(device, user, uri, expires)                                                       \
	"{\"device_code\": " device ", \"user_code\": " user ", \"verification_uri\": " uri        \
	", \"expires_in\": " expires "}"

Test(device, answers_to_the_request_for_a_code_that_are_wrong)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{}",
		"<html>",
		"{\"device_code\": \"d\", \"device_code\": \"e\"}",
		CODES_OF("\"\"", "\"u\"", "\"https://i\"", "9"),
		CODES_OF("1", "\"u\"", "\"https://i\"", "9"),
		CODES_OF("\"d\"", "\"\\u001b[2J\"", "\"https://i\"", "9"),
		CODES_OF("\"d\"", "\"\\u00fc\"", "\"https://i\"", "9"),
		CODES_OF("\"d\"", "\"u\\u0000v\"", "\"https://i\"", "9"),
		CODES_OF("\"d\"",
			 "\"0123456789012345678901234567890123456789012345678901234567890123456\"",
			 "\"https://i\"", "9"),
		CODES_OF("\"d\"", "\"u\"", "\"http://i\"", "9"),
		CODES_OF("\"d\"", "\"u\"", "\"https://\"", "9"),
		CODES_OF("\"d\"", "\"u\"", "\"https://i\\nx\"", "9"),
		CODES_OF("\"d\"", "\"u\"", "\"javascript:x\"", "9"),
		CODES_OF("\"d\"", "\"u\"", "\"https://i\"", "0"),
		CODES_OF("\"d\"", "\"u\"", "\"https://i\"", "-5"),
		CODES_OF("\"d\"", "\"u\"", "\"https://i\"", "\"9\""),
		CODES_OF("\"d\"", "\"u\"", "\"https://i\"", "9.5"),
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct device_codes c;

		cr_assert_lt(codes_of(200, texts[i], &c, &err), 0, "%s", texts[i]);
		cr_assert(strstr(err.text, "sso begins no login"), "%s", err.text);
	}
}

Test(device, times_of_the_issuer_have_bounds)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct device_codes c;

	cr_assert_eq(codes_of(200,
			      "{\"device_code\": \"d\", \"user_code\": \"a b\", "
			      "\"verification_url\": \"https://i\", \"expires_in\": 86400, "
			      "\"interval\": 86400, \"verification_uri_complete\": \"http://x\"}",
			      &c, &err),
		     0, "%s", err.text);
	cr_assert_eq(c.expires_s, GPUQ_LOGIN_S);
	cr_assert_eq(c.interval_s, 60);
	cr_assert_null(c.uri_complete);
	device_codes_done(&c);
	cr_assert_eq(codes_of(200, CODES_OF("\"d\"", "\"u\"", "\"https://i\"", "9"), &c, &err), 0);
	cr_assert_eq(c.interval_s, 5);
	device_codes_done(&c);
	cr_assert_lt(codes_of(400, ERROR("invalid_client"), &c, &err), 0);
	cr_assert(strstr(err.text, "HTTP status 400, invalid_client"), "%s", err.text);
	cr_assert_lt(codes_of(302, CODES, &c, &err), 0);
}

Test(device, answers_to_the_request_for_the_token)
{
	static char large[GPUQ_CREDENTIAL_BYTES_MAX + 64];
	static const struct {
		long status;
		const char *text;
		enum device_outcome is;
		const char *says;
	} rows[] = {
		{ 400, ERROR("authorization_pending"), DEVICE_PENDING, "" },
		{ 400, ERROR("slow_down"), DEVICE_SLOWER, "" },
		{ 400, ERROR("access_denied"), DEVICE_FAILED, "access_denied: " },
		{ 403, ERROR("expired_token"), DEVICE_FAILED, "expired_token: " },
		{ 401, ERROR("invalid_client"), DEVICE_FAILED,
		  "sso gives no token: invalid_client" },
		{ 400, ERROR("\\u001b[2J"), DEVICE_AWAY, "HTTP status 400" },
		{ 400, "", DEVICE_AWAY, "HTTP status 400" },
		{ 500, ERROR("access_denied"), DEVICE_AWAY, "HTTP status 500" },
		{ 302, "", DEVICE_AWAY, "HTTP status 302" },
		{ 200, "", DEVICE_FAILED, "no id token" },
		{ 200, "{\"id_token\": 1}", DEVICE_FAILED, "no id token" },
		{ 200, "{\"id_token\": \"a\", \"id_token\": \"b\"}", DEVICE_FAILED, "no id token" },
		{ 200, "{\"access_token\": \"a.b.c\"}", DEVICE_FAILED, "no id token" },
		{ 200, large, DEVICE_FAILED, "no id token" },
		{ 200, "{\"id_token\": \"a.b.c\"}", DEVICE_HAS_TOKEN, "" },
	};

	snprintf(large, sizeof(large), "{\"id_token\": \"%0*d\"}",
		 (int)GPUQ_CREDENTIAL_BYTES_MAX + 1, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct fetched got = { rows[i].text, strlen(rows[i].text), rows[i].status,
					     0 };
		struct gpuq_err err = GPUQ_ERR_INIT;
		char *token = NULL;

		cr_assert_eq(device_read_token("sso", &got, NULL, &token, &err), rows[i].is, "%zu",
			     i);
		cr_assert(strstr(err.text, rows[i].says), "%zu: %s", i, err.text);
		cr_assert_eq(token != NULL, rows[i].is == DEVICE_HAS_TOKEN);
		free(token);
	}
}

/* ---- logins ---- */

static struct issuer_places places = { true, "https://i/device", "https://i/token", false };

void issuer_places(const struct issuer *i, struct issuer_places *out)
{
	(void)i;
	*out = places;
}

const char *issuer_why(const struct issuer *i)
{
	(void)i;
	return "";
}

bool issuer_renew(struct issuer *i, issuer_fn fn, void *arg)
{
	(void)i, (void)fn, (void)arg;
	return false;
}

static const char *proxy;
static const struct auth_rule rule = { .name = "sso", .client_id = "gpuq" };
static struct devices *devices;
static char login[128], token[64], trouble[256];
static int64_t interval_s;
static struct gpuq_err why;
static unsigned n_begun, n_states;

static void setup(void)
{
	devices = devices_new(NULL, NULL, &proxy);
	cr_assert(devices);
}

static void teardown(void)
{
	devices_free(devices);
	cr_assert_eq(rig_timers(), 0);
}

TestSuite(logins, .init = setup, .fini = teardown);

static void on_begun(void *arg, const struct device_begun *b, const struct gpuq_err *err)
{
	(void)arg;
	why = b ? (struct gpuq_err)GPUQ_ERR_INIT : *err;
	if (!b)
		return;
	n_begun++;
	snprintf(login, sizeof(login), "%s", b->login);
}

static void begin(const char *from)
{
	device_begin(devices, &rule, NULL, from, on_begun, NULL);
}

static void begin_one(const char *from)
{
	begin(from);
	cr_assert_str_eq(rig_fetch.form, "scope=openid&client_id=gpuq");
	rig_answer(200, CODES, 0);
	cr_assert_eq(why.code, 0, "%s", why.text);
}

static void on_state(void *arg, const struct device_state *s, const struct gpuq_err *err)
{
	(void)arg;
	n_states++;
	why = s ? (struct gpuq_err)GPUQ_ERR_INIT : *err;
	snprintf(token, sizeof(token), "%s", s && s->token ? s->token : "");
	snprintf(trouble, sizeof(trouble), "%s", s ? s->trouble : "");
	interval_s = s ? s->interval_s : 0;
}

static void finish(void)
{
	device_finish(devices, login, on_state, NULL);
}

Test(logins, the_issuer_is_asked_no_more_often_than_it_allows)
{
	begin_one("a");
	finish();
	cr_assert_eq(n_states, 1);
	cr_assert_eq(interval_s, 5);
	cr_assert_eq(rig_fetches, 1);
	rig_pass(5 * RIG_S);
	finish();
	cr_assert_eq(rig_fetches, 2);
	rig_answer(400, ERROR("slow_down"), 0);
	cr_assert_eq(interval_s, 10);
	rig_pass(9 * RIG_S);
	finish();
	cr_assert_eq(rig_fetches, 2);
	rig_pass(RIG_S);
	finish();
	rig_away();
	cr_assert(strstr(trouble, "no route to host"));
	cr_assert_eq(interval_s, 20);
	rig_pass(20 * RIG_S);
	finish();
	rig_answer(200, "{\"id_token\": \"a.b.c\"}", 0);
	cr_assert_str_eq(token, "a.b.c");
	/* It is over. */
	finish();
	cr_assert_eq(why.code, GPUQ_EAUTH);
}

Test(logins, an_answer_that_comes_late_is_kept)
{
	begin_one("a");
	rig_pass(5 * RIG_S);
	finish();
	rig_pass(3 * RIG_S);
	cr_assert_eq(n_states, 1);
	cr_assert_str_empty(token);
	rig_answer(200, "{\"id_token\": \"a.b.c\"}", 0);
	cr_assert_eq(n_states, 1);
	finish();
	cr_assert_str_eq(token, "a.b.c");
	cr_assert_eq(rig_fetches, 2);
}

Test(logins, a_failure_is_told_once_and_ends_it)
{
	begin_one("a");
	rig_pass(5 * RIG_S);
	finish();
	rig_answer(400, ERROR("access_denied"), 0);
	cr_assert(strstr(why.text, "access_denied"));
	finish();
	cr_assert(strstr(why.text, "no such login"), "%s", why.text);
}

Test(logins, a_slow_issuer_holds_nobody)
{
	begin("a");
	rig_pass(3 * RIG_S);
	cr_assert_eq(why.code, GPUQ_EUNREACH);
	cr_assert(!rig_fetch.open);
	places.known = false;
	begin("a");
	cr_assert_eq(why.code, GPUQ_EUNREACH);
	places = (struct issuer_places){ .known = true, .token = "https://i/token" };
	begin("a");
	cr_assert(strstr(why.text, "device_authorization_endpoint"), "%s", why.text);
}

Test(logins, few_of_one_address_and_a_bound_for_all)
{
	char from[16];

	for (unsigned i = 0; i < GPUQ_LOGINS_PER_ADDRESS; i++)
		begin_one("a");
	begin("a");
	cr_assert_eq(why.code, GPUQ_EBUSY);
	cr_assert(strstr(why.text, "from this address"), "%s", why.text);
	for (unsigned i = 0; n_begun < GPUQ_LOGINS_MAX; i++) {
		snprintf(from, sizeof(from), "%u", i);
		begin_one(from);
	}
	begin("new");
	cr_assert_eq(why.code, GPUQ_EBUSY);
	/* Their clients have gone: there is room again. */
	rig_pass((GPUQ_LOGIN_IDLE_S + 6) * RIG_S);
	begin_one("a");
	finish();
	cr_assert_eq(why.code, 0);
}

Test(logins, one_that_is_asked_for_ends_with_its_time)
{
	begin_one("a");
	for (int i = 0; i < 120; i++) {
		rig_pass(5 * RIG_S);
		finish();
		rig_answer(400, ERROR("authorization_pending"), 0);
		cr_assert_eq(why.code, 0, "%s", why.text);
	}
	rig_pass(61 * RIG_S);
	finish();
	cr_assert_eq(why.code, GPUQ_EAUTH);
}

Test(logins, all_end_with_the_rules)
{
	begin_one("a");
	rig_pass(5 * RIG_S);
	finish();
	cr_assert_eq(n_states, 0);
	devices_end(devices);
	cr_assert_eq(n_states, 1);
	cr_assert_eq(why.code, GPUQ_EAUTH);
	begin("b");
	devices_end(devices);
	cr_assert_eq(why.code, GPUQ_EAUTH);
}
