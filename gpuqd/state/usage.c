#include "gpuqd/state/usage.h"

#define ONE (UINT64_C(1) << 63) /* 1 with 63 fractional bits */
#define LN2_Q32 UINT64_C(0xb17217f8)
/* From thousandths of a device x us to GPU-seconds: 2^93 / 10^9, and the same by ln 2. */
#define PER_SECOND UINT64_C(0x89705f4136b4a597)
#define PER_SECOND_LN2 UINT64_C(0xc64851b276096134)

/* 2^(-2^-i) with 64 fractional bits, i = 1..32. */
static const uint64_t roots[32] = {
	UINT64_C(0xb504f333f9de6484), UINT64_C(0xd744fccad69d6af4), UINT64_C(0xeac0c6e7dd24392f),
	UINT64_C(0xf5257d152486cc2c), UINT64_C(0xfa83b2db722a033a), UINT64_C(0xfd3e0c0cf486c175),
	UINT64_C(0xfe9e115c7b8f884c), UINT64_C(0xff4ecb59511ec8a5), UINT64_C(0xffa756521c8daed2),
	UINT64_C(0xffd3a751c0f7e10c), UINT64_C(0xffe9d2b2f7db2756), UINT64_C(0xfff4e91bff1b8c3e),
	UINT64_C(0xfffa747ea0040664), UINT64_C(0xfffd3a3b7814eb54), UINT64_C(0xfffe9d1cc60ddab1),
	UINT64_C(0xffff4e8e25879bfa), UINT64_C(0xffffa7470363f451), UINT64_C(0xffffd3a37dda0313),
	UINT64_C(0xffffe9d1bdf703af), UINT64_C(0xfffff4e8debe025e), UINT64_C(0xfffffa746f4fa150),
	UINT64_C(0xfffffd3a37a3f8b0), UINT64_C(0xfffffe9d1bd1065a), UINT64_C(0xffffff4e8de845ae),
	UINT64_C(0xffffffa746f41377), UINT64_C(0xffffffd3a37a05e4), UINT64_C(0xffffffe9d1bd01fc),
	UINT64_C(0xfffffff4e8de80c0), UINT64_C(0xfffffffa746f4051), UINT64_C(0xfffffffd3a37a025),
	UINT64_C(0xfffffffe9d1bd011), UINT64_C(0xffffffff4e8de808),
};

uint64_t usage_factor(int64_t dt_us, int64_t half_life_us)
{
	const uint64_t dt = dt_us > 0 ? (uint64_t)dt_us : 0, h = (uint64_t)half_life_us;
	uint64_t halvings, rest, f = ONE;

	if (half_life_us <= 0 || dt == 0)
		return ONE;
	halvings = dt / h;
	if (halvings >= 64)
		return 0;
	rest = fixed_div((fixed_u128)(dt % h) << 64, h);
	for (int i = 0; i < 32; i++)
		if (rest >> (63 - i) & 1)
			f = (uint64_t)(((fixed_u128)f * roots[i] + ONE) >> 64);
	/* 1 - y ln 2 for the part below the table's resolution. */
	f -= (uint64_t)(((fixed_u128)f * ((rest & UINT32_MAX) * LN2_Q32 >> 32)) >> 64);
	return halvings ? (f + (UINT64_C(1) << (halvings - 1))) >> halvings : f;
}

/* Return u f / 2^63, rounded. */
static usage_q32 times(usage_q32 u, uint64_t f)
{
	const uint64_t hi = (uint64_t)(u >> 64), lo = (uint64_t)u;

	return ((fixed_u128)hi * f << 1) + (((fixed_u128)lo * f + (ONE >> 1)) >> 63);
}

/* Return x m / 2^shift, rounded; shift >= 64. */
static usage_q32 scaled(fixed_u128 x, uint64_t m, int shift)
{
	const fixed_u128 lo = (fixed_u128)(uint64_t)x * m;
	const fixed_u128 hi = (x >> 64) * m + (lo >> 64);

	if (shift == 64)
		return hi;
	return (hi + ((fixed_u128)1 << (shift - 65))) >> (shift - 64);
}

usage_q32 usage_left(usage_q32 u, int64_t dt_us, int64_t half_life_us)
{
	return times(u, usage_factor(dt_us, half_life_us));
}

/* usage_of() with usage_factor(dt_us, half_life_us) at hand. */
static usage_q32 of_factor(int64_t milli, int64_t dt_us, int64_t half_life_us, uint64_t factor)
{
	const int64_t span = half_life_us > 0 ? half_life_us : dt_us;
	fixed_u128 x = (fixed_u128)(uint64_t)milli * (uint64_t)(span > 0 ? span : 0);
	int shift = 124;

	if (milli <= 0 || dt_us <= 0)
		return 0;
	/* 2^32 of 2^93 stay; eight bits more, so that there is something to round. */
	if (half_life_us <= 0)
		return scaled(x << 8, PER_SECOND, 61 + 8);
	for (; x >> 63; shift--)
		x >>= 1;
	return scaled(x * (ONE - factor), PER_SECOND_LN2, shift);
}

usage_q32 usage_of(int64_t milli, int64_t dt_us, int64_t half_life_us)
{
	if (milli <= 0 || dt_us <= 0)
		return 0;
	return of_factor(milli, dt_us, half_life_us, usage_factor(dt_us, half_life_us));
}

usage_q32 usage_scaled(usage_q32 u, int64_t milli)
{
	const uint64_t n = (uint64_t)(milli > 0 ? milli : 0);
	fixed_u128 x;
	uint64_t hi;

	if (milli == 1000)
		return u;
	x = (u >> 88 ? ((fixed_u128)1 << 88) - 1 : u) * n;
	hi = (uint64_t)(x >> 64);
	return (fixed_u128)(hi / 1000) << 64 |
	       fixed_div((fixed_u128)(hi % 1000) << 64 | (uint64_t)x, 1000);
}

usage_q32 usage_at(const struct usage_account *a, int64_t now_us, int64_t half_life_us)
{
	const int64_t dt = now_us - a->at_us;
	uint64_t factor;

	if (dt <= 0 || (a->sum == 0 && a->rate_milli == 0))
		return a->sum;
	factor = usage_factor(dt, half_life_us);
	return times(a->sum, factor) + of_factor(a->rate_milli, dt, half_life_us, factor);
}

/* Bring an account up to now: decay what there is, and add what has run since. */
static void advance(struct usage_account *a, int64_t now_us, int64_t half_life_us)
{
	a->sum = usage_at(a, now_us, half_life_us);
	if (now_us > a->at_us)
		a->at_us = now_us;
}

void usage_begin(struct usage_account *a, int64_t milli, int64_t start_us, int64_t now_us,
		 int64_t half_life_us)
{
	advance(a, now_us, half_life_us);
	a->sum += usage_of(milli, a->at_us - start_us, half_life_us);
	a->rate_milli += milli;
}

void usage_end(struct usage_account *a, int64_t milli, int64_t end_us, int64_t now_us,
	       int64_t half_life_us)
{
	usage_q32 beyond;

	advance(a, now_us, half_life_us);
	beyond = usage_of(milli, a->at_us - end_us, half_life_us);
	/* Rounding may have left a unit less than is subtracted. */
	a->sum = a->sum > beyond ? a->sum - beyond : 0;
	a->rate_milli -= milli;
}

void usage_give_back(struct usage_account *a, int64_t milli, int64_t from_us, int64_t to_us,
		     int64_t now_us, int64_t half_life_us)
{
	usage_q32 was;

	advance(a, now_us, half_life_us);
	was = usage_left(usage_of(milli, to_us - from_us, half_life_us), a->at_us - to_us,
			 half_life_us);
	a->sum = a->sum > was ? a->sum - was : 0;
}

int64_t usage_micro(usage_q32 u, int64_t devices_milli, int64_t half_life_us, int64_t window_us)
{
	usage_q32 full =
		usage_of(devices_milli, half_life_us > 0 ? INT64_MAX : window_us, half_life_us);

	if (full == 0)
		return 0;
	/* The quotient needs both below 2^64. */
	while (full >> 63 || u >> 63) {
		full >>= 1;
		u >>= 1;
	}
	if (u * 1000000 >> 63 >= full)
		return INT64_MAX;
	return (int64_t)fixed_div((fixed_u128)u * 1000000, (uint64_t)full);
}
