/* The keys of an issuer over hours: how long they are kept, when they are got anew, and what holds while it is away. */
#include <criterion/criterion.h>
#include <string.h>

#include "gpuqd/auth/issuer.h"
#include "tests/unit/fetch_rig.h"
#include "tests/unit/loop_rig.h"

#define URL "https://issuer.example"
#define PLACE "{\"issuer\": \"" URL "\", \"jwks_uri\": \"" URL "/keys\"}"
/* RFC 7517, appendix A.1. */
#define KEYS                                                                                       \
	"{\"keys\": [{\"kty\": \"EC\", \"crv\": \"P-256\", \"kid\": \"1\", "                       \
	"\"x\": \"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4\", "                                 \
	"\"y\": \"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM\"}]}"

static struct issuer *issuer;
static unsigned n_woken;

static void on_woken(void *arg)
{
	(void)arg;
	n_woken++;
}

static bool renew(void)
{
	return issuer_renew(issuer, on_woken, NULL);
}

static void setup(void)
{
	const struct issuer_opts o = { .url = URL };

	issuer = issuer_new(NULL, &o);
	cr_assert(issuer);
}

static void teardown(void)
{
	issuer_free(issuer);
	cr_assert_eq(rig_timers(), 0);
}

TestSuite(issuer, .init = setup, .fini = teardown);

/* The issuer answers both questions of a renewal. */
static void answer(int64_t max_age_us)
{
	cr_assert_str_eq(rig_fetch.url, URL "/.well-known/openid-configuration");
	rig_answer(200, PLACE, 0);
	cr_assert_str_eq(rig_fetch.url, URL "/keys");
	rig_answer(200, KEYS, max_age_us);
	cr_assert(issuer_keys(issuer));
}

/* How long the keys are kept that were told to be kept for so long. */
static int64_t kept_us(int64_t max_age_us)
{
	int64_t us = 0;

	answer(max_age_us);
	while (!rig_fetch.open) {
		rig_pass(RIG_S);
		us += RIG_S;
	}
	return us;
}

Test(issuer, keys_are_kept_as_long_as_it_says_but_for_five_minutes_and_not_beyond_half_a_day)
{
	cr_assert_eq(kept_us(0), 300 * RIG_S);
	cr_assert_eq(kept_us(RIG_S), 300 * RIG_S);
	cr_assert_eq(kept_us(RIG_HOUR), RIG_HOUR);
	cr_assert_eq(kept_us(365 * 24 * RIG_HOUR), 12 * RIG_HOUR);
	answer(0);
}

Test(issuer, while_it_is_away_known_keys_hold_for_a_day_and_then_none)
{
	answer(0);
	for (int m = 0; m < 24 * 60 - 1; m++) {
		rig_pass(60 * RIG_S);
		if (rig_fetch.open)
			rig_away();
		cr_assert(issuer_keys(issuer), "after %d minutes", m + 1);
	}
	cr_assert(strstr(issuer_why(issuer), "no route to host"));
	rig_pass(60 * RIG_S);
	cr_assert_null(issuer_keys(issuer));
	/* It comes back. */
	if (!rig_fetch.open)
		rig_pass(60 * RIG_S);
	answer(0);
	cr_assert_str_empty(issuer_why(issuer));
}

Test(issuer, a_clock_that_steps_changes_nothing)
{
	answer(RIG_HOUR);
	rig_wall_us += INT64_C(400) * 24 * RIG_HOUR;
	cr_assert(issuer_keys(issuer));
	rig_wall_us -= INT64_C(800) * 24 * RIG_HOUR;
	rig_pass(RIG_HOUR - RIG_S);
	cr_assert(!rig_fetch.open);
	cr_assert(issuer_keys(issuer));
	rig_pass(RIG_S);
	cr_assert(rig_fetch.open);
	rig_away();
}

Test(issuer, an_unknown_key_renews_them_once_a_minute)
{
	answer(RIG_HOUR);
	cr_assert(renew());
	cr_assert(renew()); /* waits for the same */
	cr_assert_eq(n_woken, 0);
	answer(RIG_HOUR);
	cr_assert_eq(n_woken, 2);
	cr_assert(!renew());
	rig_pass(59 * RIG_S);
	cr_assert(!renew());
	rig_pass(2 * RIG_S);
	cr_assert(renew());
	answer(RIG_HOUR);
	cr_assert_eq(n_woken, 3);
}

Test(issuer, a_slow_one_holds_nobody_for_more_than_three_seconds)
{
	cr_assert(renew());
	rig_pass(3 * RIG_S);
	cr_assert_eq(n_woken, 1);
	cr_assert_null(issuer_keys(issuer));
	answer(0);
}

Test(issuer, keys_that_are_wrong_leave_the_old_ones)
{
	answer(0);
	rig_pass(300 * RIG_S);
	rig_answer(200, PLACE, 0);
	rig_answer(200, "{\"keys\": []}", 0);
	cr_assert(issuer_keys(issuer));
	cr_assert(strstr(issuer_why(issuer), "no key"), "%s", issuer_why(issuer));
	rig_pass(60 * RIG_S);
	rig_answer(200, "{\"issuer\": \"https://evil\", \"jwks_uri\": \"https://evil/keys\"}", 0);
	cr_assert(issuer_keys(issuer));
	cr_assert(!rig_fetch.open);
	cr_assert(strstr(issuer_why(issuer), "does not name this issuer"));
}
