/* How long devices have lain idle: windows in a row, against counting them one by one. */
#include <criterion/criterion.h>
#include <inttypes.h>

#include "gpuqd/state/idle.h"
#include "libgpuq/units.h"
#include "tests/prop/prop.h"

#define S GPUQ_US_PER_S
#define W (30 * S)

static const struct idle_clock from_0 = { 0, W };

Test(idle, twenty_windows_of_nothing_are_ten_minutes)
{
	struct idle i = { .any = false };

	for (int64_t t = 5 * S; t < 600 * S; t += 10 * S) {
		idle_measured(&i, &from_0, t, IDLE_NOTHING);
		cr_expect_eq(idle_due_us(&i, &from_0, 600 * S), 600 * S);
	}
	cr_expect_eq(idle_for_us(&i, &from_0, 600 * S - 1), 570 * S);
	cr_expect_eq(idle_for_us(&i, &from_0, 600 * S), 600 * S);
}

Test(idle, one_busy_moment_spoils_its_window_and_the_row)
{
	struct idle i = { .any = false };

	for (int64_t t = 5 * S; t < 300 * S; t += 10 * S)
		idle_measured(&i, &from_0, t, t == 205 * S ? IDLE_BUSY : IDLE_NOTHING);
	cr_expect_eq(idle_for_us(&i, &from_0, 300 * S), 90 * S);
	cr_expect_eq(idle_due_us(&i, &from_0, 600 * S), 810 * S);
}

Test(idle, what_is_not_measured_is_not_idle)
{
	struct idle i = { .any = false };

	cr_expect_eq(idle_for_us(&i, &from_0, 3600 * S), 0);
	cr_expect_eq(idle_due_us(&i, &from_0, S), GPUQ_UNLIMITED);
	idle_measured(&i, &from_0, 5 * S, IDLE_NOTHING);
	cr_expect_eq(idle_for_us(&i, &from_0, 30 * S), 30 * S);
	cr_expect_eq(idle_for_us(&i, &from_0, 60 * S), 0, "nothing was measured in the second");
	idle_measured(&i, &from_0, 35 * S, IDLE_UNKNOWN);
	cr_expect_eq(idle_for_us(&i, &from_0, 60 * S), 0, "not all devices in the second");
	idle_measured(&i, &from_0, 95 * S, IDLE_NOTHING);
	cr_expect_eq(idle_for_us(&i, &from_0, 120 * S), 30 * S);
}

/* A daemon that was started again knows nothing of the time before. */
Test(idle, a_window_that_had_begun_before_anybody_looked_does_not_count)
{
	struct idle i = { .any = false };

	idle_measured(&i, &from_0, 100 * S, IDLE_NOTHING);
	cr_expect_eq(idle_for_us(&i, &from_0, 120 * S), 0);
	idle_measured(&i, &from_0, 125 * S, IDLE_NOTHING);
	cr_expect_eq(idle_for_us(&i, &from_0, 150 * S), 30 * S);
	cr_expect_eq(idle_due_us(&i, &from_0, 600 * S), 720 * S);
}

/* Windows as a list, filled by measurements, looked at from the last to the first. */
enum { N_WINDOWS = 64 };
struct book {
	bool nothing[N_WINDOWS], busy[N_WINDOWS];
	int from; /* the first whole one that was watched */
};

static int64_t count(const struct book *b, int64_t now_us)
{
	int64_t n = 0;

	for (int64_t k = now_us / W - 1; k >= b->from && b->nothing[k] && !b->busy[k]; k--)
		n++;
	return n * W;
}

Test(idle, any_measurements_give_what_counting_gives)
{
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		uint64_t r = seed;
		struct book b = { .from = -1 };
		struct idle i = { .any = false };
		int64_t t = 0;

		while (t < (N_WINDOWS - 4) * W) {
			const enum idle_use use = prop_random(&r) % 8 < 6 ? IDLE_NOTHING
						  : prop_random(&r) % 2   ? IDLE_BUSY
									  : IDLE_UNKNOWN;
			const int64_t next =
				t +
				(int64_t)(prop_random(&r) % (prop_random(&r) % 4 ? 20 : 90)) * S +
				1;
			const bool steady = prop_random(&r) % 3 == 0;

			if (b.from < 0)
				b.from = t == 0 ? 0 : (int)(t / W + (t >= W));
			if (steady)
				idle_steady(&i, &from_0, t, next, use);
			else
				idle_measured(&i, &from_0, t, use);
			for (int64_t k = t / W; k <= (steady ? next - 1 : t) / W; k++) {
				b.nothing[k] |= use == IDLE_NOTHING;
				b.busy[k] |= use == IDLE_BUSY;
			}
			t = next;
			cr_assert_eq(idle_for_us(&i, &from_0, t), count(&b, t),
				     "seed %" PRIu64 " at %" PRId64 ": %" PRId64 " not %" PRId64,
				     seed, t, idle_for_us(&i, &from_0, t), count(&b, t));
		}
	}
}

/* It is due when it says, not a moment earlier, if nothing is done until then. */
Test(idle, due_is_when_it_is)
{
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		uint64_t r = seed;
		const struct idle_clock c = { (int64_t)(prop_random(&r) % 1000) * S, W };
		const int64_t limit = (int64_t)(prop_random(&r) % 600 + 1) * S;
		struct idle i = { .any = false };
		int64_t t = c.start_us, due;

		for (int k = 0; k < 20; k++, t += (int64_t)(prop_random(&r) % 25) * S + 1)
			idle_measured(&i, &c, t, (enum idle_use)(prop_random(&r) % 3));
		idle_measured(&i, &c, t, IDLE_NOTHING);
		due = idle_due_us(&i, &c, limit);
		if (idle_for_us(&i, &c, t) >= limit)
			continue;
		if (due > t) {
			idle_steady(&i, &c, t, due - 1, IDLE_NOTHING);
			cr_assert_lt(idle_for_us(&i, &c, due - 1), limit, "seed %" PRIu64, seed);
			idle_steady(&i, &c, due - 1, due, IDLE_NOTHING);
		}
		cr_assert_geq(idle_for_us(&i, &c, due), limit, "seed %" PRIu64, seed);
	}
}
