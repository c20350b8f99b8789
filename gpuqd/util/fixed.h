/* fixed.h - products and quotients that do not fit a word in between
 *
 * Owns     nothing. Touches nothing.
 * Used by  usage, fair tree, priority, budget.
 *
 * A division of 128 bits would call into the compiler's library; what ranks calls
 * nothing that is not here.
 */
#ifndef GPUQD_UTIL_FIXED_H
#define GPUQD_UTIL_FIXED_H

#include <stdint.h>

typedef unsigned __int128 fixed_u128;

/* Half a word of the quotient: of rest and the next half word by d, whose highest bit is set;
 * rest < d. Returns it, *rest = what remains.
 * Source: D. Knuth, "The Art of Computer Programming", vol. 2, 4.3.1, algorithm D. */
static inline uint64_t fixed_digit(uint64_t *rest, uint32_t next, uint64_t d)
{
	uint64_t q = *rest / (d >> 32), r = *rest % (d >> 32);

	/* Too large by 2 at most. */
	while (q >> 32 || q * (uint32_t)d > (r << 32 | next)) {
		q--;
		r += d >> 32;
		if (r >> 32)
			break;
	}
	*rest = (*rest << 32 | next) - q * d;
	return q;
}

/* floor(x / d), d > 0; the quotient must fit 64 bits. */
static inline uint64_t fixed_div(fixed_u128 x, uint64_t d)
{
	uint64_t rest, high;
	int shift;

	if (x >> 64 == 0)
		return (uint64_t)x / d;
	shift = __builtin_clzll(d);
	x = ((fixed_u128)((uint64_t)(x >> 64) % d) << 64 | (uint64_t)x) << shift;
	d <<= shift;
	rest = (uint64_t)(x >> 64);
	high = fixed_digit(&rest, (uint32_t)((uint64_t)x >> 32), d);
	return high << 32 | fixed_digit(&rest, (uint32_t)x, d);
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
