/* Time zones: what their clocks show, against the C library, and repetitions that keep their clock. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "gpuqd/base/zonefile.h"
#include "gpuqd/util/recur.h"
#include "gpuqd/util/zone.h"
#include "libgpuq/units.h"
#include "tests/prop/prop.h"

#define DAY_US (86400 * GPUQ_US_PER_S)
#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"

static int64_t at(const char *text)
{
	int64_t us = 0;

	cr_assert_eq(gpuq_instant_parse(text, 0, &us, NULL), 0, "%s", text);
	return us;
}

/* Return what the C library's clock shows, as if that were UTC. */
static int64_t wall_of(int64_t us)
{
	const time_t t = (time_t)(us / GPUQ_US_PER_S);
	struct tm tm;

	localtime_r(&t, &tm);
	return us + tm.tm_gmtoff * GPUQ_US_PER_S;
}

static void against_libc(const char *rule, uint64_t seed)
{
	const int64_t from = at("2026-06-01"), years = at("2046-06-01") - from;
	struct zone z;

	cr_assert(zone_read(rule, &z), "%s", rule);
	setenv("TZ", rule, 1);
	tzset();
	for (int i = 0; i < 2000; i++) {
		const int64_t us = from + (int64_t)(prop_random(&seed) % (uint64_t)years) /
						  (900 * GPUQ_US_PER_S) * (900 * GPUQ_US_PER_S);
		const int64_t wall = wall_of(us), back = zone_instant(&z, wall);

		cr_assert_eq(zone_wall(&z, us), wall, "%s at %" PRId64, rule, us);
		/* The first of those that the clock shows twice. */
		cr_assert(back <= us && wall_of(back) == wall, "%s at %" PRId64, rule, us);
	}
}

Test(zone, its_clock_shows_what_the_c_library_shows)
{
	static const char *const rules[] = { "UTC0",
					     BERLIN,
					     "EST5EDT,M3.2.0,M11.1.0",
					     "<+1245>-12:45<+1345>,M9.5.0/2:45,M4.1.0/3:45",
					     "IST-1GMT0,M10.5.0,M3.5.0/1",
					     "AEST-10AEDT,M10.1.0,M4.1.0/3",
					     "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
					     "EET-2EEST,M3.4.4/50,M10.4.4/50",
					     "<+0530>-5:30",
					     "XXX3YYY,J60/0,J300/5",
					     "XXX3YYY,59,299/1" };

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		against_libc(rules[i], i + 1);
}

Test(zone, the_files_of_this_machine_have_these_rules)
{
	static const struct {
		const char *name, *rule; /* NULL: not the same each year */
	} known[] = { { "Europe/Berlin", BERLIN },
		      { "America/New_York", "EST5EDT,M3.2.0,M11.1.0" },
		      { "Asia/Kolkata", "IST-5:30" } };
	struct gpuq_buf bytes = GPUQ_BUF_INIT_MAX(ZONE_BYTES_MAX);
	char rule[ZONE_RULE_MAX];

	if (zonefile_read("Europe/Berlin", &bytes, NULL) == GPUQ_ENOENT)
		cr_skip_test("no time zones here: install tzdata");
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		gpuq_buf_clear(&bytes);
		cr_assert_eq(zonefile_read(known[i].name, &bytes, NULL), 0, "%s", known[i].name);
		cr_assert_eq(zone_rule(bytes.data, bytes.len, at("2026-06-01"), rule, NULL), 0);
		cr_expect_str_eq(rule, known[i].rule);
	}
	/* Months of the moon: no rule says when. */
	gpuq_buf_clear(&bytes);
	cr_assert_eq(zonefile_read("Africa/Casablanca", &bytes, NULL), 0);
	cr_expect_eq(zone_rule(bytes.data, bytes.len, at("2026-06-01"), rule, NULL), GPUQ_ERANGE);
	cr_expect_eq(zonefile_read("../../../etc/passwd", &bytes, NULL), GPUQ_ENOENT);
	cr_expect_eq(zonefile_read("/etc/localtime", &bytes, NULL), GPUQ_ENOENT);
	cr_expect_eq(zonefile_read("Europe", &bytes, NULL), GPUQ_ENOENT);
	gpuq_buf_done(&bytes);
}

Test(zone, wrong_rules_and_files_are_refused)
{
	static const char *const wrong[] = { "",
					     "CET",
					     "CET-1CEST",
					     "CET-1CEST,M3.5.0",
					     "CET-1CEST,M13.5.0,M10.5.0",
					     "CET-1CEST,M3.6.0,M10.5.0",
					     "CET-1CEST,M3.5.7,M10.5.0",
					     "CET-1CEST,M3.5.0,M10.5.0/168",
					     "C-1",
					     "CET-25",
					     "<CET-1",
					     "CET-1CEST,M3.5.0,M10.5.0 ",
					     "CET-1CEST,J0,J5" };
	static const char file[] = "TZif2";
	char rule[ZONE_RULE_MAX];
	struct zone z;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_expect(!zone_read(wrong[i], &z), "%s", wrong[i]);
	cr_expect_eq(zone_rule(file, sizeof(file), 0, rule, NULL), GPUQ_EINVAL);
	cr_expect_eq(zone_rule("", 0, 0, rule, NULL), GPUQ_EINVAL);
}

Test(zone, a_daily_repetition_keeps_the_wall_clock)
{
	struct zone z;
	struct recur r = { .start_us = at("2026-10-23T06:00Z"), /* 08:00 in Berlin */
			   .duration_us = 4 * 3600 * GPUQ_US_PER_S,
			   .every_us = DAY_US,
			   .zone = &z };
	const int64_t skipped = at("2026-10-26");

	cr_assert(zone_read(BERLIN, &z));
	cr_expect_eq(recur_at(&r, at("2026-10-24T12:00Z")), at("2026-10-25T07:00Z"));
	cr_expect_eq(recur_at(&r, at("2026-10-25T10:59Z")), at("2026-10-25T07:00Z"));
	cr_expect_eq(recur_at(&r, at("2026-10-25T11:00Z")), at("2026-10-26T07:00Z"));
	cr_expect_eq(recur_at(&r, at("2027-06-01T00:00Z")), at("2027-06-01T06:00Z"));
	/* By the hour it does not. */
	r.every_us = 25 * 3600 * GPUQ_US_PER_S;
	cr_expect_eq(recur_at(&r, at("2026-10-25T12:00Z")), at("2026-10-26T09:00Z"));
	/* Days are the zone's: one that begins at 00:30 there is on that day. */
	r.start_us = at("2026-10-23T22:30Z");
	r.every_us = DAY_US;
	r.except_us = &skipped;
	r.n_except = 1;
	cr_expect_eq(recur_at(&r, at("2026-10-25T12:00Z")), at("2026-10-26T23:30Z"));
}

Test(zone, repetitions_against_enumeration)
{
	static const char *const rules[] = { BERLIN, "EST5EDT,M3.2.0,M11.1.0",
					     "<-02>2<-01>,M3.5.0/-1,M10.5.0/0" };

	for (uint64_t seed = 1; seed <= 600; seed++) {
		uint64_t x = seed;
		struct zone z;
		struct recur r = { .duration_us = (int64_t)(prop_random(&x) % 23 + 1) * 3600 *
						  GPUQ_US_PER_S,
				   .every_us = (int64_t)(prop_random(&x) % 9 + 1) * DAY_US,
				   .zone = &z };
		int64_t first, t;

		cr_assert(zone_read(rules[seed % 3], &z));
		first = at("2026-01-01") +
			(int64_t)(prop_random(&x) % 17520) * 1800 * GPUQ_US_PER_S;
		r.start_us = zone_instant(&z, first);
		first = zone_wall(&z, r.start_us); /* the clock may have leapt over it */
		t = r.start_us;
		for (int k = 0; k < 100; k++) {
			const int64_t want = zone_instant(&z, first + k * r.every_us);

			cr_assert_eq(recur_at(&r, t), want, "seed %" PRIu64 ", the %dth", seed, k);
			t = want + r.duration_us;
		}
	}
}
