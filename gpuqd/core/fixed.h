/* fixed.h - products and quotients that do not fit a word in between
 *
 * Owns     nothing. Touches nothing.
 * Used by  usage, fair tree, priority, budget.
 *
 * A division of 128 bits would call into the compiler's library; what ranks calls
 * nothing that is not here.
 */
#ifndef GPUQD_CORE_FIXED_H
#define GPUQD_CORE_FIXED_H

#include <stdint.h>

typedef unsigned __int128 fixed_u128;

/* floor(x / d), d > 0; the quotient must fit 64 bits. */
static inline uint64_t fixed_div(fixed_u128 x, uint64_t d)
{
	uint64_t rest, out = 0;

	if (x >> 64 == 0)
		return (uint64_t)x / d;
	rest = (uint64_t)(x >> 64) % d;
	for (int i = 63; i >= 0; i--) {
		const int carry = (int)(rest >> 63);

		rest = rest << 1 | ((uint64_t)x >> i & 1);
		out <<= 1;
		if (carry || rest >= d) {
			rest -= d;
			out |= 1;
		}
	}
	return out;
}

/* floor(x * y / d), y <= d, d > 0. */
static inline uint64_t fixed_part(uint64_t x, uint64_t y, uint64_t d)
{
	return fixed_div((fixed_u128)x * y, d);
}

static inline uint64_t fixed_gcd(uint64_t x, uint64_t y)
{
	while (y) {
		const uint64_t r = x % y;

		x = y;
		y = r;
	}
	return x;
}

#endif
