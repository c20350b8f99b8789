#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <stdlib.h>

#include "gpuqd/sched/quota/overcommit.h"
#include "gpuqd/sched/quota/fairshare.h"
#include "libgpuq/units.h"

#define QUEUES 5
#define ENDLESS 100000000 /* wants everything */

/* Columns of a queue; amounts in thousandths of a device. */
enum { QUOTA, DEMAND, WEIGHT, RANK, USAGE, N_COLUMNS };

static const struct {
	const char *name;
	int64_t total, k;
	int64_t q[QUEUES][N_COLUMNS];
	int64_t want[QUEUES]; /* ends with -1 */
} cases[] = {
	/* Guarantees come first, even beyond the capacity. */
	{ "owed to both",
	  40000,
	  0,
	  { { 20000, 30000, 1000 }, { 20000, 20000, 1000 } },
	  { 20000, 20000, -1 } },
	{ "one wants nothing",
	  40000,
	  0,
	  { { 20000, 40000, 1000 }, { 20000, 0, 1000 } },
	  { 40000, 0, -1 } },
	{ "one wants little",
	  40000,
	  0,
	  { { 20000, 40000, 1000 }, { 20000, 4000, 1000 } },
	  { 36000, 4000, -1 } },
	{ "a limit caps",
	  40000,
	  0,
	  { { 20000, 20000, 1000 }, { 20000, 0, 1000 } },
	  { 20000, 0, -1 } },
	{ "more is owed than there is",
	  8000,
	  0,
	  { { 6000, 8000, 1000 }, { 6000, 8000, 1000 } },
	  { 6000, 6000, -1 } },
	{ "unlimited quota",
	  8000,
	  0,
	  { { GPUQ_UNLIMITED, 8000, 1000 }, { 4000, 8000, 1000 } },
	  { 8000, 4000, -1 } },
	/* The rest goes by weight, in whole devices. */
	{ "weights 1:4",
	  11000,
	  0,
	  { { 2000, 10000, 1000 }, { 2000, 10000, 4000 } },
	  { 3000, 8000, -1 } },
	{ "a tie goes to the older",
	  11000,
	  0,
	  { { 0, 6000, 1000 }, { 0, 6000, 1000 } },
	  { 6000, 5000, -1 } },
	{ "weights 3:1",
	  12000,
	  0,
	  { { 3000, ENDLESS, 3000 }, { 1000, ENDLESS, 1000 } },
	  { 9000, 3000, -1 } },
	{ "weights 1:3",
	  12000,
	  0,
	  { { 3000, ENDLESS, 1000 }, { 1000, ENDLESS, 3000 } },
	  { 5000, 7000, -1 } },
	{ "three alike",
	  10000,
	  0,
	  { { 0, 10000, 1000 }, { 0, 10000, 1000 }, { 0, 10000, 1000 } },
	  { 4000, 3000, 3000, -1 } },
	{ "three departments",
	  36000,
	  0,
	  { { 10000, ENDLESS, 2000 }, { 6000, ENDLESS, 3000 }, { 0, ENDLESS, 1000 } },
	  { 17000, 16000, 3000, -1 } },
	{ "weights 1:2 of a thousand",
	  1000000,
	  0,
	  { { 250000, ENDLESS, 1000 }, { 150000, ENDLESS, 2000 } },
	  { 450000, 550000, -1 } },
	{ "the second is capped",
	  1000000,
	  0,
	  { { 250000, ENDLESS, 1000 }, { 150000, 400000, 2000 } },
	  { 600000, 400000, -1 } },
	{ "weights 5:3:2",
	  100000,
	  0,
	  { { 10000, 99000, 5000 }, { 10000, 99000, 3000 }, { 10000, 99000, 2000 } },
	  { 45000, 31000, 24000, -1 } },
	{ "weights below one",
	  10000,
	  0,
	  { { 0, 10000, 500 }, { 0, 10000, 250 }, { 0, 1000, 250 } },
	  { 6000, 3000, 1000, -1 } },
	{ "weight 0 gets nothing of the rest",
	  8000,
	  0,
	  { { 2000, 8000, 0 }, { 2000, 3000, 1000 } },
	  { 2000, 3000, -1 } },
	{ "a third wants nothing",
	  5000,
	  0,
	  { { 2000, 5000, 2000, 2 }, { 2000, 5000, 2000, 2 }, { 1000, 0, 1000, 1 } },
	  { 3000, 2000, 0, -1 } },
	/* Fractions are given as asked for. */
	{ "a half is left to the other",
	  7000,
	  0,
	  { { 0, 2500, 1000 }, { 0, ENDLESS, 1000 } },
	  { 2500, 4500, -1 } },
	{ "whole devices before halves",
	  3000,
	  0,
	  { { 0, 2500, 1000 }, { 0, 2000, 1000 } },
	  { 2000, 1000, -1 } },
	/* Ranks. */
	{ "the higher rank takes the rest",
	  10000,
	  0,
	  { { 2000, 10000, 1000, 200 }, { 2000, 10000, 1000, 100 } },
	  { 8000, 2000, -1 } },
	{ "weight does not help against rank",
	  6000,
	  0,
	  { { 2000, ENDLESS, 100000, 1 }, { 2000, ENDLESS, 1000, 2 } },
	  { 2000, 4000, -1 } },
	{ "the next rank gets what is left",
	  16000,
	  0,
	  { { 4000, ENDLESS, 1000, 100 }, { 4000, 5000, 1000, 200 }, { 0, ENDLESS, 1000, 100 } },
	  { 8000, 5000, 3000, -1 } },
	{ "leftovers stay in their rank",
	  7000,
	  0,
	  { { 3000, ENDLESS, 1000, 2 }, { 2000, ENDLESS, 1000, 2 }, { 1000, ENDLESS, 1000, 1 } },
	  { 4000, 2000, 1000, -1 } },
	/* Past usage. */
	{ "k 1, usage .24 and 0",
	  16000,
	  1000,
	  { { 0, 16000, 1000, 0, 240000 }, { 0, 16000, 1000, 0, 0 } },
	  { 7000, 9000, -1 } },
	{ "k 1, usage .6 and .2",
	  16000,
	  1000,
	  { { 0, 16000, 1000, 0, 600000 }, { 0, 16000, 1000, 0, 200000 } },
	  { 5000, 11000, -1 } },
	{ "k 1, usage 1 and 0",
	  16000,
	  1000,
	  { { 0, 16000, 1000, 0, 1000000 }, { 0, 16000, 1000, 0, 0 } },
	  { 0, 16000, -1 } },
	{ "k 4, usage .5 and .3",
	  100000,
	  4000,
	  { { 0, 99000, 1000, 0, 500000 }, { 0, 99000, 1000, 0, 300000 } },
	  { 28000, 72000, -1 } },
	{ "k 1, usage .5 and 0 of 15",
	  15000,
	  1000,
	  { { 0, 15000, 1000, 0, 500000 }, { 0, 15000, 1000, 0, 0 } },
	  { 5000, 10000, -1 } },
	/* Nothing to divide, and no bound. */
	{ "nothing", 0, 0, { { 0, 5000, 1000 }, { 0, 5000, 1000 } }, { 0, 0, -1 } },
	{ "not counted",
	  GPUQ_UNLIMITED,
	  0,
	  { { 0, 5000, 1000 }, { 0, ENDLESS, 0 } },
	  { 5000, ENDLESS, -1 } },
};

static uint32_t fill(size_t ix, struct share_child *c)
{
	uint32_t n = 0;

	for (; cases[ix].want[n] >= 0; n++)
		c[n] = (struct share_child){ .quota = cases[ix].q[n][QUOTA],
					     .demand = cases[ix].q[n][DEMAND],
					     .weight_milli = cases[ix].q[n][WEIGHT],
					     .rank = cases[ix].q[n][RANK],
					     .usage_micro = cases[ix].q[n][USAGE] };
	return n;
}

ParameterizedTestParameters(share, divides_as_published)
{
	static size_t ix[sizeof(cases) / sizeof(cases[0])];
	const size_t n = sizeof(ix) / sizeof(ix[0]);

	for (size_t i = 0; i < n; i++)
		ix[i] = i;
	return cr_make_param_array(size_t, ix, n);
}

ParameterizedTest(size_t *ix, share, divides_as_published)
{
	struct share_child c[QUEUES];
	const uint32_t n = fill(*ix, c);

	fairshare_divide(c, n, cases[*ix].total, 1000, cases[*ix].k);
	for (uint32_t i = 0; i < n; i++)
		cr_expect_eq(c[i].fair, cases[*ix].want[i], "%s: queue %u gets %lld, not %lld",
			     cases[*ix].name, i, (long long)c[i].fair,
			     (long long)cases[*ix].want[i]);
}

/* ---- random inputs ---- */

static uint64_t state;

static int64_t below(int64_t n)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (int64_t)((z ^ z >> 31) % (uint64_t)n);
}

struct sample {
	struct share_child c[QUEUES];
	uint32_t n;
	int64_t total, k;
};

static struct sample sample(int64_t seed, int64_t size)
{
	struct sample s = { .k = 0 };

	state = (uint64_t)seed;
	s.n = (uint32_t)(1 + below(QUEUES));
	s.total = below(size) * 1000;
	if (below(3) == 0)
		s.k = below(4000);
	for (uint32_t i = 0; i < s.n; i++)
		s.c[i] = (struct share_child){
			.quota = below(6) * 1000,
			.demand = below(size) * 1000 + (below(3) ? 0 : 500),
			.weight_milli = below(5) * 1000 + (below(2) ? below(1000) : 0),
			.rank = below(2),
			.usage_micro = below(3) ? 0 : below(1000000),
		};
	return s;
}

Test(share, many_at_once_is_one_by_one)
{
	for (int64_t seed = 0; seed < 20000; seed++) {
		struct sample x = sample(seed, seed % 50 ? 40 : 4000), y = x;

		fairshare_divide(x.c, x.n, x.total, 1000, x.k);
		fairshare_divide_plainly(y.c, y.n, y.total, 1000, y.k);
		for (uint32_t i = 0; i < x.n; i++)
			cr_assert_eq(x.c[i].fair, y.c[i].fair, "seed %lld, queue %u",
				     (long long)seed, i);
	}
}

static int64_t min_i64(int64_t x, int64_t y)
{
	return x < y ? x : y;
}

Test(share, stays_between_owed_and_wanted_and_leaves_nothing)
{
	for (int64_t seed = 0; seed < 20000; seed++) {
		struct sample s = sample(seed, 40);
		int64_t sum = 0, owed = 0;
		bool hungry = false;

		fairshare_divide(s.c, s.n, s.total, 1000, 0);
		for (uint32_t i = 0; i < s.n; i++) {
			const int64_t floor = min_i64(s.c[i].quota, s.c[i].demand);

			cr_assert_geq(s.c[i].fair, floor, "seed %lld", (long long)seed);
			cr_assert_leq(s.c[i].fair, s.c[i].demand, "seed %lld", (long long)seed);
			sum += s.c[i].fair;
			owed += floor;
			hungry |= s.c[i].fair < s.c[i].demand && s.c[i].weight_milli > 0;
		}
		if (hungry)
			cr_assert_eq(sum, s.total > owed ? s.total : owed, "seed %lld",
				     (long long)seed);
		else
			cr_assert_leq(sum, s.total > owed ? s.total : owed, "seed %lld",
				      (long long)seed);
	}
}

/* More weight, quota, rank or demand never costs a queue anything; more capacity costs no queue
 * anything. (The method of largest remainders fails this.) */
Test(share, is_monotone)
{
	for (int64_t seed = 0; seed < 20000; seed++) {
		struct sample before = sample(seed, 40), after = before;
		struct share_child *c = &after.c[0];
		const int64_t what = below(5);

		c->weight_milli += what == 0 ? 1000 : 0;
		c->quota += what == 1 ? 1000 : 0;
		c->rank += what == 2;
		c->demand += what == 3 ? 1000 : 0;
		after.total += what == 4 ? 1000 : 0;
		fairshare_divide(before.c, before.n, before.total, 1000, 0);
		fairshare_divide(after.c, after.n, after.total, 1000, 0);
		for (uint32_t i = 0; i < (what == 4 ? before.n : 1); i++)
			cr_assert_geq(after.c[i].fair, before.c[i].fair,
				      "seed %lld: change %lld costs queue %u", (long long)seed,
				      (long long)what, i);
	}
}

/* ---- quotas that promise too much ---- */

static uint32_t owed(struct snapshot *s, const char *name, const char *parent, int64_t a, int64_t b)
{
	struct snap_share shares[4];
	struct snap_queue q;

	snapshot_queue_default(&q);
	for (int i = 0; i < 4; i++)
		snapshot_share_default(&shares[i]);
	shares[0].quota = a;
	shares[1].quota = b;
	q.shares = shares;
	q.name = name;
	q.parent_name = parent;
	return snapshot_add_queue(s, &q);
}

static void overcommitted(bool grows)
{
	struct overcommit at = { .queue = SNAP_NONE, .flavor = SNAP_NONE };
	struct snap_config config;
	struct snapshot *s;
	struct snap_node n;

	snapshot_config_default(&config);
	s = snapshot_new(&config);
	snapshot_add_flavor(s, "a100", 0);
	snapshot_add_flavor(s, "h100", 1);
	if (grows)
		snapshot_set_grows(s, 0);
	snapshot_node_default(&n);
	n.name = "n1";
	n.n_devices = 8;
	n.flavor = 0;
	snapshot_add_node(s, &n);
	n.name = "n2";
	n.flavor = 1;
	snapshot_add_node(s, &n);
	owed(s, "x", NULL, 5000, 8000);
	owed(s, "y", NULL, 4000, GPUQ_UNLIMITED);
	owed(s, "auto", "x", 5000, SNAP_AUTO);
	owed(s, "x1", "x", 0, 6000);
	owed(s, "x2", "auto", 0, 3000);
	cr_assert_eq(snapshot_seal(s, NULL), 0);
	if (!grows) {
		cr_assert(overcommit_next(s, &at));
		cr_expect_eq(at.queue, SNAP_NONE);
		cr_expect_eq(at.flavor, 0);
		cr_expect_eq(at.sum_milli, 9000);
		cr_expect_eq(at.has_milli, 8000);
	}
	cr_assert(overcommit_next(s, &at));
	cr_expect_str_eq(s->queues[at.queue].name, "x");
	cr_expect_eq(at.flavor, 1);
	cr_expect_eq(at.sum_milli, 9000, "auto has 3 from its child");
	cr_expect_eq(at.has_milli, 8000);
	cr_expect(!overcommit_next(s, &at));
	snapshot_free(s);
}

Test(share, overcommitted_quotas_are_found)
{
	overcommitted(false);
}

/* Its present devices are no bound of the quotas of a flavor that can get more nodes. */
Test(share, quotas_of_a_flavor_that_grows_are_not_overcommitted)
{
	overcommitted(true);
}
