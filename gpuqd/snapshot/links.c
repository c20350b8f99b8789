#include "gpuqd/snapshot/links.h"

#include <stddef.h>

/* Return the class of the link between two devices; of a link that differs by direction, the
 * slower one. */
static uint32_t speed(const struct links *l, uint32_t a, uint32_t b)
{
	uint8_t there, back;

	if (!l->classes)
		return 0;
	there = l->classes[a * l->n_devices + b];
	back = l->classes[b * l->n_devices + a];
	return there < back ? there : back;
}

static uint32_t members(uint64_t set)
{
	return (uint32_t)__builtin_popcountll(set);
}

static uint32_t lowest(uint64_t set)
{
	return (uint32_t)__builtin_ctzll(set);
}

/* The rank of a set of devices among others of its size. */
struct worth {
	uint32_t slowest; /* link within the set; UINT32_MAX = there is none */
	uint32_t numas; /* that the set is on */
	uint64_t rest; /* sum of the speeds of all links among the devices that stay free */
};

/* Return how many NUMA nodes the devices of a set belong to. */
static uint32_t numas_of(const struct links *l, uint64_t set)
{
	uint64_t seen[4] = { 0 };
	uint32_t n = 0;

	if (!l->numa)
		return set != 0;
	for (; set; set &= set - 1) {
		const uint8_t at = l->numa[lowest(set)];

		n += !(seen[at / 64] >> (at % 64) & 1);
		seen[at / 64] |= UINT64_C(1) << (at % 64);
	}
	return n;
}

/* Return what a choice of devices is worth: its slowest link, how few NUMA nodes it spans, and
 * what speed it leaves to the free ones. */
static struct worth worth_of(const struct links *l, uint64_t set, uint64_t free)
{
	struct worth w = { UINT32_MAX, numas_of(l, set), 0 };

	for (uint64_t a = set; a; a &= a - 1)
		for (uint64_t b = a & (a - 1); b; b &= b - 1) {
			const uint32_t s = speed(l, lowest(a), lowest(b));

			w.slowest = s < w.slowest ? s : w.slowest;
		}
	for (uint64_t a = free & ~set; a; a &= a - 1)
		for (uint64_t b = a & (a - 1); b; b &= b - 1)
			w.rest += speed(l, lowest(a), lowest(b));
	return w;
}

/* True if x has the lowest device that only one of two sets of one size has. */
static bool lower_devices(uint64_t x, uint64_t y)
{
	const uint64_t differ = x ^ y;

	return differ && (x & differ & -differ);
}

/* True if x is the better choice; the lower devices at last, so that the result does not depend on
 * the order of the search. */
static bool better(const struct links *l, uint64_t x, uint64_t y, uint64_t free)
{
	const struct worth a = worth_of(l, x, free), b = worth_of(l, y, free);

	if (a.slowest != b.slowest)
		return a.slowest > b.slowest;
	if (a.numas != b.numas)
		return a.numas < b.numas;
	if (a.rest != b.rest)
		return a.rest > b.rest;
	return lower_devices(x, y);
}

bool links_init(struct links *l, struct gpuq_arena *mem, uint32_t n_devices, const uint8_t *classes,
		const uint8_t *numa)
{
	*l = (struct links){ n_devices, classes, numa, NULL };
	if (n_devices > LINKS_TABLE_DEVICES)
		return true;
	l->best = gpuq_arena_calloc(mem, (size_t)1 << n_devices, sizeof(*l->best));
	if (!l->best)
		return false;
	for (uint32_t free = 0; free < 1u << n_devices; free++) {
		/* Every subset of free, as in "x = (x - 1) & free". */
		for (uint32_t set = free; set; set = (set - 1) & free) {
			uint8_t *best = &l->best[free][members(set)];

			if (!*best || better(l, set, *best, free))
				*best = (uint8_t)set;
		}
	}
	return true;
}

/* Return the set grown from one device: each step adds the device whose slowest link into it is the
 * fastest, preferably on a NUMA node that the set already uses. */
static uint64_t grown_from(const struct links *l, uint32_t seed, uint64_t free, uint32_t k)
{
	uint64_t set = UINT64_C(1) << seed;
	uint32_t slowest[LINKS_DEVICES_MAX], newest = seed;

	for (uint32_t d = 0; d < l->n_devices; d++)
		slowest[d] = UINT32_MAX;
	while (members(set) < k) {
		uint32_t best = LINKS_DEVICES_MAX;
		bool best_near = false;

		for (uint64_t rest = free & ~set; rest; rest &= rest - 1) {
			const uint32_t d = lowest(rest), s = speed(l, d, newest);
			const bool near = numas_of(l, set | (rest & -rest)) == numas_of(l, set);

			slowest[d] = s < slowest[d] ? s : slowest[d];
			if (best == LINKS_DEVICES_MAX || slowest[d] > slowest[best] ||
			    (slowest[d] == slowest[best] && near && !best_near)) {
				best = d;
				best_near = near;
			}
		}
		set |= UINT64_C(1) << best;
		newest = best;
	}
	return set;
}

uint64_t links_choose(const struct links *l, uint64_t free, uint32_t k)
{
	uint64_t best = 0;

	if (l->best)
		return l->best[free][k];
	for (uint64_t seeds = free; k && seeds; seeds &= seeds - 1) {
		const uint64_t set = grown_from(l, lowest(seeds), free, k);

		if (!best || better(l, set, best, free))
			best = set;
	}
	return best;
}
