#include "gpuqd/sched/quota/fairshare.h"

#include <stdbool.h>

#include "libgpuq/units.h"

/* Portions stay below 2^44, so that portion x (2k - 1) fits 63 bits for the values of k tried. */
#define PORTION_BITS 44
#define STEP_MAX (INT64_C(1) << 17)

static int64_t min_i64(int64_t x, int64_t y)
{
	return x < y ? x : y;
}

static bool hungry(const struct share_child *c)
{
	return c->portion > 0 && c->fair < c->demand;
}

/* Return the greatest common divisor: weights are compared by products, which it keeps small. */
static int64_t gcd(int64_t x, int64_t y)
{
	while (y) {
		int64_t r = x % y;

		x = y;
		y = r;
	}
	return x;
}

/* Set P of every child in the band that wants more, as whole numbers of equal scale: P = W + k (W -
 * U) times the sum of weights and 10^9, as far as that fits. */
static void set_portions(struct share_child *c, uint32_t n, int64_t rank, int64_t k_milli)
{
	__int128 sum = 0, largest = 0;
	int64_t common = 0;
	int shift = 0;

	for (uint32_t i = 0; i < n; i++) {
		c[i].portion = c[i].units = 0;
		if (c[i].rank == rank && c[i].fair < c[i].demand)
			sum += c[i].weight_milli;
	}
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < n; i++) {
			__int128 p;

			if (c[i].rank != rank || c[i].fair >= c[i].demand || !c[i].weight_milli)
				continue;
			p = (__int128)c[i].weight_milli * 1000000;
			p = p * 1000 + k_milli * (p - c[i].usage_micro * sum);
			if (p <= 0)
				continue;
			if (pass == 0)
				largest = p > largest ? p : largest;
			else
				c[i].portion = (int64_t)(p >> shift) ? (int64_t)(p >> shift) : 1;
		}
		while (largest >> shift >= (__int128)1 << 62)
			shift++;
	}
	for (uint32_t i = 0; i < n; i++)
		common = gcd(common, c[i].portion);
	largest = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (common > 1)
			c[i].portion /= common;
		largest = c[i].portion > largest ? c[i].portion : largest;
	}
	for (shift = 0; largest >> shift >= (__int128)1 << PORTION_BITS; shift++)
		;
	for (uint32_t i = 0; shift && i < n; i++)
		if (c[i].portion)
			c[i].portion = c[i].portion >> shift ? c[i].portion >> shift : 1;
}

/* True if x gets the next unit before y: larger P / (2n + 1), then lower usage where that counts;
 * ties go by position, which is age. */
static bool before(const struct share_child *x, const struct share_child *y, int64_t k_milli)
{
	__int128 a = (__int128)x->portion * (2 * y->units + 1);
	__int128 b = (__int128)y->portion * (2 * x->units + 1);

	if (a != b)
		return a > b;
	return k_milli > 0 && x->usage_micro < y->usage_micro;
}

/* Give one unit after the other to the child that comes first. It defines the division;
 * hand_out_together() only skips rounds whose result is certain. Returns what no child takes. */
static int64_t hand_out_singly(struct share_child *c, uint32_t n, int64_t rem, int64_t unit,
			       int64_t k_milli)
{
	while (rem > 0) {
		struct share_child *next = NULL;
		int64_t give;

		for (uint32_t i = 0; i < n; i++)
			if (hungry(&c[i]) && (!next || before(&c[i], next, k_milli)))
				next = &c[i];
		if (!next)
			break;
		give = min_i64(unit, min_i64(rem, next->demand - next->fair));
		next->fair += give;
		next->units++;
		rem -= give;
	}
	return rem;
}

/* Return the units that child c has received when the one with portion `top` has received k. */
static int64_t units_at(const struct share_child *c, int64_t top, int64_t k)
{
	int64_t n = k > 0 ? (c->portion * (2 * k - 1) / top + 1) / 2 : 0;

	return n > c->units ? n : c->units;
}

/* Return what a child gets until its level reaches `top', at most what it can use. */
static int64_t given_at(const struct share_child *c, int64_t top, int64_t k, int64_t unit)
{
	int64_t room = c->demand - c->fair, give;

	if (__builtin_mul_overflow(units_at(c, top, k) - c->units, unit, &give))
		return room;
	return min_i64(room, give);
}

/* True if all hungry children together get no more than rem up to step k. */
static bool affordable(const struct share_child *c, uint32_t n, int64_t top, int64_t k,
		       int64_t unit, int64_t rem)
{
	for (uint32_t i = 0; i < n; i++) {
		int64_t give = hungry(&c[i]) ? given_at(&c[i], top, k, unit) : 0;

		if (give > rem)
			return false;
		rem -= give;
	}
	return true;
}

/* Allocate many units at once: everything up to the k-th unit of the child with the largest
 * portion, for the largest k that rem allows. The units are the same in another order, since no
 * child is refused up to there. */
static int64_t hand_out_together(struct share_child *c, uint32_t n, int64_t rem, int64_t unit)
{
	for (;;) {
		int64_t top = 0, lo = 0, hi = STEP_MAX, before_round = rem;

		for (uint32_t i = 0; i < n; i++)
			if (hungry(&c[i]) && c[i].portion > top)
				top = c[i].portion;
		if (top == 0)
			return rem;
		while (lo < hi) {
			int64_t mid = lo + (hi - lo + 1) / 2;

			if (affordable(c, n, top, mid, unit, rem))
				lo = mid;
			else
				hi = mid - 1;
		}
		for (uint32_t i = 0; i < n; i++) {
			int64_t give;

			if (!hungry(&c[i]))
				continue;
			give = given_at(&c[i], top, lo, unit);
			c[i].units = units_at(&c[i], top, lo);
			c[i].fair += give;
			rem -= give;
		}
		if (rem == before_round)
			return rem;
	}
}

/* Divide a total: each child gets its quota as far as it can use it, and the rest goes to the
 * ranks one after the other, within a rank by weight. */
static void divide(struct share_child *c, uint32_t n, int64_t total, int64_t unit, int64_t k_milli,
		   bool fast)
{
	int64_t rem = total, last = 0;

	for (uint32_t i = 0; i < n; i++) {
		c[i].fair =
			total == GPUQ_UNLIMITED ? c[i].demand : min_i64(c[i].quota, c[i].demand);
		rem = rem > c[i].fair ? rem - c[i].fair : 0;
	}
	if (total == GPUQ_UNLIMITED)
		return;
	/* The band of this round stays below that of the last one. */
	for (bool more = true, any = false; more && rem > 0; any = true) {
		int64_t band = 0;

		more = false;
		for (uint32_t i = 0; i < n; i++) {
			if (c[i].fair >= c[i].demand || c[i].weight_milli == 0 ||
			    (any && c[i].rank >= last))
				continue;
			if (!more || c[i].rank > band)
				band = c[i].rank;
			more = true;
		}
		if (!more)
			break;
		set_portions(c, n, band, k_milli);
		if (fast)
			rem = hand_out_together(c, n, rem, unit);
		rem = hand_out_singly(c, n, rem, unit, k_milli);
		last = band;
	}
}

void fairshare_divide(struct share_child *c, uint32_t n, int64_t total, int64_t unit,
		      int64_t k_milli)
{
	divide(c, n, total, unit, k_milli, true);
}

void fairshare_divide_plainly(struct share_child *c, uint32_t n, int64_t total, int64_t unit,
			      int64_t k_milli)
{
	divide(c, n, total, unit, k_milli, false);
}
