/* amount.h - saturating sums of amounts that users chose
 *
 * Users may request as much as a number holds; sums stop at the largest (which is
 * GPUQ_UNLIMITED) instead of overflowing.
 */
#ifndef GPUQD_UTIL_AMOUNT_H
#define GPUQD_UTIL_AMOUNT_H

#include <stdint.h>

static inline int64_t amount_sum(int64_t x, int64_t y)
{
	int64_t sum;

	return __builtin_add_overflow(x, y, &sum) ? INT64_MAX : sum;
}

/* x >= 0, n >= 0 */
static inline int64_t amount_times(int64_t x, int64_t n)
{
	int64_t product;

	return __builtin_mul_overflow(x, n, &product) ? INT64_MAX : product;
}

/* An instant and a time after it, either of which may be GPUQ_UNLIMITED: the sum is then. */
static inline int64_t amount_later(int64_t t, int64_t d)
{
	return t == INT64_MAX || d == INT64_MAX ? INT64_MAX : amount_sum(t, d);
}

/* Return the rest of x; may be below 0. */
static inline int64_t amount_less(int64_t x, int64_t y)
{
	int64_t rest;

	return __builtin_sub_overflow(x, y, &rest) ? INT64_MIN / 2 : rest;
}

/* Return the thousandths of a device that so many hundredths of its cores are, at most all. */
static inline int64_t amount_percent(int64_t percent)
{
	return percent < 100 ? percent * 10 : 1000;
}

/* Return the thousandths that a share takes of the cores of its device, whose charge may be that of its
 * memory: what it requests beside memory, and no less than one of `slots` equal shares (0 = of any size).
 * cores: in thousandths; 0 = only memory is requested, or no memory. */
static inline int64_t amount_cores(int64_t charged, int64_t cores, uint32_t slots)
{
	const int64_t least = slots ? (1000 + (int64_t)slots - 1) / (int64_t)slots : 0;

	if (cores == 0)
		return charged;
	cores = cores < least ? least : cores;
	return cores < charged ? cores : charged;
}

#endif
