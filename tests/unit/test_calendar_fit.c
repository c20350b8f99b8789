/* Is there enough of what the calendar promises? Against adding it up hour by hour. */
#include <criterion/criterion.h>
#include <inttypes.h>

#include "gpuqd/sched/timeline/reservations_fit.h"
#include "libgpuq/units.h"
#include "tests/prop/prop.h"

#define AT(start, duration)                                                                        \
	{                                                                                          \
		.start_us = (start), .duration_us = (duration)                                     \
	}
#define DAY_US (86400 * GPUQ_US_PER_S)

enum { HOURS = 2000, ENTRIES = 6, NODES = 4 };

static const uint32_t all_nodes[NODES] = { 0, 1, 2, 3 };

static bool covers(const struct calendar_entry *e, int64_t t)
{
	if (t < e->when.start_us)
		return false;
	return (e->when.every_us ? (t - e->when.start_us) % e->when.every_us
				 : t - e->when.start_us) < e->when.duration_us;
}

/* Devices in thousandths that are left at t; all nodes are alike, of flavor 0 and pool 0. */
static int64_t left(const struct calendar_node *nodes, const struct calendar_entry *e, uint32_t n,
		    int64_t t)
{
	int64_t sum = 0;

	for (uint32_t k = 0; k < NODES; k++)
		sum += nodes[k].milli;
	for (uint32_t i = 0; i < n; i++)
		sum -= covers(&e[i], t) ? e[i].milli : 0;
	return sum;
}

static int64_t first_lack(const struct calendar_node *nodes, const struct calendar_entry *e,
			  uint32_t which, int64_t now)
{
	int64_t end = e[which].when.start_us + e[which].when.duration_us;

	/* A year of weeks is looked at. */
	while (e[which].when.every_us && end <= now)
		end += e[which].when.every_us;
	end += 52 * e[which].when.every_us;

	for (int64_t t = now; t < end; t++)
		if (covers(&e[which], t) && left(nodes, e, which, t) < e[which].milli)
			return t;
	return GPUQ_UNLIMITED;
}

Test(calendar_fit, amounts_are_what_adding_them_up_gives)
{
	uint32_t n_misfits = 0;

	for (uint64_t seed = 1; seed <= 5000; seed++) {
		uint64_t r = seed;
		struct calendar_node nodes[NODES];
		struct calendar_entry e[ENTRIES];
		const int64_t now = (int64_t)(prop_random(&r) % 20);
		struct calendar_misfit got = { .with = CALENDAR_NONE };
		int64_t want, total = 0;
		bool fits;

		for (uint32_t k = 0; k < NODES; k++) {
			nodes[k] = (struct calendar_node){ .milli = (int64_t)(prop_random(&r) % 5) *
								    1000 };
			total += nodes[k].milli;
		}
		for (uint32_t i = 0; i < ENTRIES; i++) {
			e[i] = (struct calendar_entry){
				.when.start_us = (int64_t)(prop_random(&r) % 60),
				.when.duration_us = (int64_t)(prop_random(&r) % 12) + 1,
				.milli = (int64_t)(prop_random(&r) % 6 + 1) * 1000,
				.flavor = prop_random(&r) % 2 ? 0 : CALENDAR_NONE,
				.pool = prop_random(&r) % 2 ? 0 : CALENDAR_NONE
			};
			if (prop_random(&r) % 4 == 0)
				e[i].when.every_us = e[i].when.duration_us + 20;
		}
		fits = reservations_fits(nodes, NODES, e, ENTRIES - 1, now, &got);
		want = e[ENTRIES - 1].milli > total ? GPUQ_UNLIMITED
						    : first_lack(nodes, e, ENTRIES - 1, now);
		cr_assert_eq(fits, want == GPUQ_UNLIMITED, "seed %" PRIu64, seed);
		if (fits)
			continue;
		n_misfits++;
		cr_assert_eq(got.at_us, want, "seed %" PRIu64 ": at %" PRId64 " not %" PRId64, seed,
			     got.at_us, want);
		cr_assert(got.with < ENTRIES - 1 && covers(&e[got.with], want));
		/* No other start from its own on is earlier. */
		for (int64_t t = e[ENTRIES - 1].when.start_us;
		     !e[ENTRIES - 1].when.every_us && t < HOURS; t++) {
			struct calendar_entry was = e[ENTRIES - 1];
			bool ok;

			e[ENTRIES - 1].when.start_us = t;
			ok = t >= now && first_lack(nodes, e, ENTRIES - 1, now) == GPUQ_UNLIMITED;
			e[ENTRIES - 1] = was;
			if (!ok)
				continue;
			cr_assert_eq(got.earliest_us, t,
				     "seed %" PRIu64 ": %" PRId64 " not %" PRId64, seed,
				     got.earliest_us, t);
			break;
		}
	}
	cr_expect_gt(n_misfits, 500);
}

Test(calendar_fit, kinds_stand_inside_one_another)
{
	/* Two pools of 8, of one flavor. */
	const struct calendar_node nodes[] = { { 0, 0, 8000, 0 }, { 0, 1, 8000, 0 } };
	struct calendar_entry e[] = {
		{ AT(0, 10), 8000, 0, CALENDAR_NONE, NULL, 0, false }, /* of the flavor, anywhere */
		{ AT(0, 10), 8000, CALENDAR_NONE, 1, NULL, 0, false }, /* of one pool */
	};
	struct calendar_misfit lack;

	cr_expect(reservations_fits(nodes, 2, e, 1, 0, &lack), "the first takes the other pool");
	e[1].milli = 9000;
	cr_expect(reservations_fits(nodes, 2, e, 1, 0, &lack), "waits for machines to come");
	e[0].milli = 9000;
	e[1].milli = 8000;
	cr_assert_not(reservations_fits(nodes, 2, e, 1, 0, &lack));
	cr_expect_eq(lack.have_milli, 7000);
	cr_expect_eq(lack.earliest_us, 10);
}

Test(calendar_fit, whole_nodes)
{
	const struct calendar_node nodes[NODES] = {
		{ 0, 0, 4000, 0 }, { 0, 0, 4000, 0 }, { 0, 0, 4000, 0 }, { 0, 0, 4000, 0 }
	};
	struct calendar_entry e[] = {
		{ AT(0, 10), 0, CALENDAR_NONE, CALENDAR_NONE, all_nodes, 2, false },
		{ AT(5, 10), 8000, CALENDAR_NONE, CALENDAR_NONE, NULL, 0, false },
		{ AT(5, 10), 0, CALENDAR_NONE, CALENDAR_NONE, all_nodes + 1, 2, false },
	};
	struct calendar_misfit lack;

	cr_expect(reservations_fits(nodes, NODES, e, 1, 0, &lack));
	cr_assert_not(reservations_fits(nodes, NODES, e, 2, 0, &lack));
	cr_expect_eq(lack.at_us, 5);
	cr_expect_eq(lack.with, 1);
	cr_expect_eq(lack.have_milli, 0, "node 1 is taken, and the amount needs the others");
	cr_expect_eq(lack.earliest_us, 10, "two nodes are free then for the amount, two for it");
	e[2].maintenance = true;
	cr_expect(reservations_fits(nodes, NODES, e, 2, 0, &lack));
}

Test(calendar_fit, cards_that_are_cut_are_reserved_with_their_nodes_alone)
{
	const struct calendar_node nodes[NODES] = {
		{ 0, 0, 2000, 0 }, { 0, 0, 2000, 2000 }, { 0, 0, 2000, 1000 }, { 0, 0, 0, 0 }
	};
	struct calendar_entry e[] = {
		{ AT(0, 10), 3000, CALENDAR_NONE, CALENDAR_NONE, NULL, 0, false },
		{ AT(5, 10), 1000, CALENDAR_NONE, CALENDAR_NONE, NULL, 0, false },
		{ AT(5, 10), 0, CALENDAR_NONE, CALENDAR_NONE, all_nodes + 1, 1, false },
		{ AT(5, 10), 0, CALENDAR_NONE, CALENDAR_NONE, all_nodes + 1, 2, false },
	};
	struct calendar_misfit lack;

	cr_expect(reservations_fits(nodes, NODES, e, 0, 0, &lack));
	cr_assert_not(reservations_fits(nodes, NODES, e, 1, 0, &lack), "three are whole");
	cr_expect_eq(lack.have_milli, 0);
	e[1].when.start_us = 100;
	cr_expect(reservations_fits(nodes, NODES, e, 2, 0, &lack), "none of an amount is there");
	e[0].milli = 99000;
	cr_expect(reservations_fits(nodes, NODES, e, 2, 0, &lack));
	cr_assert_not(reservations_fits(nodes, NODES, e, 3, 0, &lack), "node 1 is taken");
	cr_expect_eq(lack.have_milli, 1000, "the amount needs what is whole of node 2");
	cr_expect_eq(lack.need_milli, 4000);
	cr_expect_eq(lack.with, 2);
}

/* Against looking at each repetition in turn. */
Test(calendar_fit, repetitions_end_and_leave_days_out)
{
	uint32_t n_skipped = 0;

	for (uint64_t seed = 1; seed <= 5000; seed++) {
		uint64_t r = seed;
		const int64_t hour = DAY_US / 24;
		int64_t except[3], want = GPUQ_UNLIMITED;
		struct recur when = { .start_us = (int64_t)(prop_random(&r) % 48) * hour,
				      .duration_us = (int64_t)(prop_random(&r) % 30 + 1) * hour,
				      .except_us = except,
				      .n_except = prop_random(&r) % 4 };
		const int64_t t = (int64_t)(prop_random(&r) % 300) * hour;

		when.every_us = when.duration_us + (int64_t)(prop_random(&r) % 20) * hour;
		when.until_us = prop_random(&r) % 2 ? (int64_t)(prop_random(&r) % 400) * hour : 0;
		for (size_t i = 0; i < when.n_except; i++)
			except[i] = (int64_t)(prop_random(&r) % 15) * DAY_US;
		for (int64_t s = when.start_us; s < 1000 * hour; s += when.every_us) {
			bool barred = when.until_us > 0 && s >= when.until_us;

			for (size_t i = 0; i < when.n_except; i++)
				barred |= s / DAY_US == except[i] / DAY_US;
			n_skipped += barred;
			if (!barred && s + when.duration_us > t) {
				want = s;
				break;
			}
		}
		cr_assert_eq(recur_at(&when, t), want, "seed %" PRIu64 ": %" PRId64 " not %" PRId64,
			     seed, recur_at(&when, t), want);
	}
	cr_expect_gt(n_skipped, 1000);
}
