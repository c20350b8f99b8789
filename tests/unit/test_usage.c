/* Usage that is forgotten: exact whatever the steps. */
#include <criterion/criterion.h>

#include <inttypes.h>

#include "gpuqd/util/fixed.h"
#include "gpuqd/state/usage.h"
#include "libgpuq/units.h"

#define MINUTE (60 * GPUQ_US_PER_S)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define ONE ((usage_q32)1 << 32) /* a GPU-second */

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static usage_q32 distance(usage_q32 x, usage_q32 y)
{
	return x > y ? x - y : y - x;
}

/* Equal to rounding: some units, and 2^-55 of the amount. */
static void expect_close(usage_q32 x, usage_q32 y, uint64_t units, const char *what)
{
	cr_expect_leq((uint64_t)distance(x, y), (uint64_t)(x >> 55) + units,
		      "%s: %" PRIu64 " and %" PRIu64 " units", what, (uint64_t)x, (uint64_t)y);
}

Test(usage, halves_every_half_life)
{
	cr_expect_eq((uint64_t)usage_left(ONE, HOUR, HOUR), (uint64_t)(ONE / 2));
	cr_expect_eq((uint64_t)usage_left(ONE * 1000, 10 * HOUR, HOUR),
		     (uint64_t)(ONE * 1000 >> 10));
	cr_expect_eq((uint64_t)usage_left(ONE * 1000, 0, HOUR), (uint64_t)(ONE * 1000));
	cr_expect_eq((uint64_t)usage_left(ONE * 1000, 100 * DAY, HOUR), 0);
	/* 2^-0.5 = 0.70710678118654752440 */
	cr_expect_eq(usage_factor(HOUR, 2 * HOUR), UINT64_C(6521908912666391106));
}

Test(usage, a_steady_rate_converges)
{
	/* 4 GPUs, half-life 60 minutes: 346.2468 GPU-minutes. */
	const usage_q32 u = usage_of(4000, 100 * HOUR, HOUR);

	cr_expect_eq((uint64_t)(u * 10000 / 60 >> 32), 3462468);
	cr_expect_eq((uint64_t)usage_of(4000, 1000 * HOUR, HOUR), (uint64_t)u);
}

Test(usage, little_is_forgotten_in_little_time)
{
	/* 1.5 devices for a second in a week's half-life: 1.5 GPU-seconds but a millionth. */
	const usage_q32 u = usage_of(1500, GPUQ_US_PER_S, 7 * DAY);

	cr_expect_lt((uint64_t)u, (uint64_t)(ONE + ONE / 2));
	cr_expect_gt((uint64_t)u, (uint64_t)(ONE + ONE / 2 - ONE / 1000000));
}

Test(usage, without_a_half_life_nothing_is_forgotten)
{
	cr_expect_eq((uint64_t)usage_of(2000, 3 * GPUQ_US_PER_S, 0), (uint64_t)(6 * ONE));
	cr_expect_eq((uint64_t)usage_of(1, 1000, 0), 4295); /* a millionth of a GPU-second */
	cr_expect_eq((uint64_t)usage_left(ONE, 1000 * DAY, 0), (uint64_t)ONE);
}

Test(usage, news_may_come_late)
{
	struct usage_account told = { 0 }, late = { 0 };
	const int64_t t0 = 1000 * DAY, h = DAY;

	usage_begin(&told, 8000, t0, t0, h);
	usage_begin(&told, 1000, t0 + HOUR, t0 + HOUR, h);
	usage_end(&told, 8000, t0 + 5 * HOUR, t0 + 5 * HOUR, h);
	usage_end(&told, 1000, t0 + 6 * HOUR, t0 + 6 * HOUR, h);

	usage_begin(&late, 1000, t0 + HOUR, t0 + 2 * HOUR, h);
	usage_begin(&late, 8000, t0, t0 + 3 * HOUR, h);
	usage_end(&late, 1000, t0 + 6 * HOUR, t0 + 8 * HOUR, h);
	usage_end(&late, 8000, t0 + 5 * HOUR, t0 + 9 * HOUR, h);

	cr_expect_eq(told.rate_milli, 0);
	cr_expect_eq(late.rate_milli, 0);
	expect_close(usage_at(&told, t0 + 2 * DAY, h), usage_at(&late, t0 + 2 * DAY, h), 64,
		     "late news");
	/* A clock that was put back forgets nothing and charges nothing. */
	cr_expect_eq((uint64_t)usage_at(&late, t0, h), (uint64_t)late.sum);
}

Test(usage, never_below_zero)
{
	struct usage_account a = { 0 };

	usage_begin(&a, 1, 1000, 1001, HOUR);
	usage_end(&a, 1, 1000, 5000, HOUR);
	cr_expect_leq((uint64_t)a.sum, 8);
	usage_end(&a, 1000, 0, 6000, HOUR);
	cr_expect_eq((uint64_t)a.sum, 0);
}

Test(usage, in_parts_of_what_there_is)
{
	/* 24 GPU-hours of a 10-GPU, 10-hour window. */
	cr_expect_eq(usage_micro(24 * 3600 * ONE, 10000, 0, 10 * HOUR), 240000);
	cr_expect_eq(usage_micro(usage_of(5000, 1000 * DAY, DAY), 10000, DAY, 0), 500000);
	cr_expect_eq(usage_micro(0, 10000, DAY, 0), 0);
	cr_expect_eq(usage_micro(ONE, 0, DAY, 0), 0);
	cr_expect_eq(usage_micro((usage_q32)1 << 126, 1, 1, 0), INT64_MAX);
}

/* The result of the compiler's library, which the core does not call. */
Test(usage, quotients_of_two_words)
{
	static const uint64_t edges[] = { 1,
					  2,
					  3,
					  1000,
					  UINT32_MAX,
					  UINT64_C(1) << 32,
					  (UINT64_C(1) << 32) + 1,
					  INT64_MAX,
					  UINT64_C(1) << 63,
					  (UINT64_C(1) << 63) + 1,
					  UINT64_MAX - 1,
					  UINT64_MAX };
	const size_t n = sizeof(edges) / sizeof(edges[0]);
	uint64_t seed = 88172645463325252;

	for (int i = 0; i < 300000; i++) {
		const uint64_t d = next(&seed) % 4 ? (next(&seed) >> next(&seed) % 64) | 1
						   : edges[next(&seed) % n];
		const uint64_t high = next(&seed) % 4 ? next(&seed) % d : d - 1;
		const uint64_t low = next(&seed) % 4 ? next(&seed) : edges[next(&seed) % n] - 1;
		const fixed_u128 x = (fixed_u128)high << 64 | low;

		cr_assert_eq(fixed_div(x, d), (uint64_t)(x / d),
			     "%016" PRIx64 "%016" PRIx64 " / %016" PRIx64, high, low, d);
	}
}
