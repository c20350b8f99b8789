/* Sets of joined devices, against looking at every set. */
#include <criterion/criterion.h>
#include <inttypes.h>

#include "gpuqd/snapshot/links.h"
#include "tests/prop/prop.h"

struct worth {
	int slowest, numas, rest;
};

static struct worth worth_of(const uint8_t *cls, const uint8_t *numa, int n, uint64_t set,
			     uint64_t free)
{
	struct worth w = { 256, 0, 0 };

	for (int a = 0; a < n; a++) {
		bool first = set >> a & 1;

		for (int b = 0; b < a; b++) {
			const int there = cls[a * n + b], back = cls[b * n + a];
			const int speed = there < back ? there : back;
			const uint64_t both = UINT64_C(1) << a | UINT64_C(1) << b;

			if ((set & both) == both && speed < w.slowest)
				w.slowest = speed;
			if ((free & ~set & both) == both)
				w.rest += speed;
			if (set >> b & 1 && numa[b] == numa[a])
				first = false;
		}
		w.numas += first;
	}
	return w;
}

/* The order that links.h promises. */
static bool beats(struct worth a, struct worth b, uint64_t x, uint64_t y)
{
	if (a.slowest != b.slowest)
		return a.slowest > b.slowest;
	if (a.numas != b.numas)
		return a.numas < b.numas;
	if (a.rest != b.rest)
		return a.rest > b.rest;
	for (int d = 0; d < 64; d++)
		if ((x ^ y) >> d & 1)
			return x >> d & 1;
	return false;
}

static void roll(uint64_t *r, uint8_t *cls, uint8_t *numa, int n)
{
	const int classes = 1 + (int)(prop_random(r) % 4), nodes = 1 + (int)(prop_random(r) % 3);

	for (int i = 0; i < n * n; i++)
		cls[i] = (uint8_t)(prop_random(r) % (uint64_t)classes);
	for (int i = 0; i < n; i++)
		numa[i] = (uint8_t)(prop_random(r) % (uint64_t)nodes);
}

Test(links, the_table_has_the_best_of_all_sets)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
		uint64_t r = seed;
		const int n = 1 + (int)(prop_random(&r) % LINKS_TABLE_DEVICES);
		uint8_t cls[64], numa[8];
		struct links l;

		roll(&r, cls, numa, n);
		cr_assert(links_init(&l, &mem, (uint32_t)n, cls, numa));
		for (uint64_t free = 0; free < UINT64_C(1) << n; free++) {
			uint64_t best[9] = { 0 };

			for (uint64_t set = free; set; set = (set - 1) & free) {
				const int k = __builtin_popcountll(set);

				if (!best[k] ||
				    beats(worth_of(cls, numa, n, set, free),
					  worth_of(cls, numa, n, best[k], free), set, best[k]))
					best[k] = set;
			}
			for (uint32_t k = 0; k <= (uint32_t)__builtin_popcountll(free); k++)
				cr_assert_eq(links_choose(&l, free, k), best[k],
					     "seed %" PRIu64 ", free %" PRIx64 ", %u devices", seed,
					     free, k);
		}
		gpuq_arena_done(&mem);
	}
}

Test(links, large_nodes_get_so_many_free_devices)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
		uint64_t r = seed, free;
		const int n = 9 + (int)(prop_random(&r) % (LINKS_DEVICES_MAX - 8));
		uint8_t cls[64 * 64], numa[64];
		struct links l;

		roll(&r, cls, numa, n);
		cr_assert(links_init(&l, &mem, (uint32_t)n, cls, numa));
		free = prop_random(&r) & (n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1);
		for (uint32_t k = 0; k <= (uint32_t)__builtin_popcountll(free); k += 1 + k / 4) {
			const uint64_t set = links_choose(&l, free, k);

			cr_assert_eq((uint32_t)__builtin_popcountll(set), k, "seed %" PRIu64, seed);
			cr_assert_eq(set & ~free, 0, "seed %" PRIu64, seed);
		}
		gpuq_arena_done(&mem);
	}
}

/* Two boards of eight, fast inside: greedy finds a board as soon as it is free. */
Test(links, large_nodes_keep_to_one_board)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	uint8_t cls[16 * 16];
	struct links l;

	for (int a = 0; a < 16; a++)
		for (int b = 0; b < 16; b++)
			cls[a * 16 + b] = a / 8 == b / 8 ? 9 : 1;
	cr_assert(links_init(&l, &mem, 16, cls, NULL));
	cr_expect_eq(links_choose(&l, 0xffff, 8), 0x00ff);
	cr_expect_eq(links_choose(&l, 0xfffe, 8), 0xff00);
	cr_expect_eq(links_choose(&l, 0xf00e, 4), 0xf000);
	cr_expect_eq(links_choose(&l, 0xf00e, 3), 0x000e, "leaves the others most");
	gpuq_arena_done(&mem);
}

Test(links, of_two_directions_the_slower_counts)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	const uint8_t cls[9] = { 0, 9, 2, 1, 0, 2, 2, 2, 0 };
	struct links l;

	cr_assert(links_init(&l, &mem, 3, cls, NULL));
	cr_expect_eq(links_choose(&l, 7, 2), 5);
	gpuq_arena_done(&mem);
}
