/* usage.h - what was used, and how it is forgotten
 *
 * Owns     the arithmetic of decayed usage; nothing is kept here.
 * Touches  memory only.
 * Used by  state/account.c (one account for each user of a queue), gpuq-sim, tests.
 *
 * Usage is GPU-seconds with 32 fractional bits that halve every half-life h. What g
 * devices add during dt is exact, so that it does not matter how often one looks:
 *
 *     U(t + dt) = U(t) 2^(-dt/h) + g (h / ln 2) (1 - 2^(-dt/h))
 *
 * A half-life of 0 forgets nothing. Amounts of devices are thousandths, >= 0, times are
 * microseconds. Powers of two are products of the tabled 2^(-2^-i), i = 1..32, and a
 * linear rest; the relative error stays below 2^-58.
 * Source of the form: integral of g 2^(-(t+dt-x)/h) over x in [t, t+dt].
 */
#ifndef GPUQD_STATE_USAGE_H
#define GPUQD_STATE_USAGE_H

#include <stdint.h>

#include "gpuqd/util/fixed.h"

typedef fixed_u128 usage_q32; /* GPU-seconds, 32 fractional bits */

/* One account. Zeroed, it has never been used. */
struct usage_account {
	usage_q32 sum; /* as it stood at at_us */
	int64_t at_us;
	int64_t rate_milli; /* devices that are being charged since then */
};

/* 2^(-dt/h) with 63 fractional bits: 2^63 is 1. dt < 0 counts as 0. */
uint64_t usage_factor(int64_t dt_us, int64_t half_life_us);

/* What is left of an amount after dt. */
usage_q32 usage_left(usage_q32 u, int64_t dt_us, int64_t half_life_us);

/* What so many devices add in dt, as it stands at its end. */
usage_q32 usage_of(int64_t milli, int64_t dt_us, int64_t half_life_us);

/* So many thousandths of it, below 2^40 of them. */
usage_q32 usage_scaled(usage_q32 u, int64_t milli);

/* The account's amount at a time; one before at_us is taken for at_us. */
usage_q32 usage_at(const struct usage_account *a, int64_t now_us, int64_t half_life_us);

/* Devices began to be used at start_us, which is not after now; and were given back at
 * end_us, which may have been before now. Both bring the account to now. */
void usage_begin(struct usage_account *a, int64_t milli, int64_t start_us, int64_t now_us,
		 int64_t half_life_us);
void usage_end(struct usage_account *a, int64_t milli, int64_t end_us, int64_t now_us,
	       int64_t half_life_us);

/* What devices were charged from from_us to to_us counts no longer, not below nothing. */
void usage_give_back(struct usage_account *a, int64_t milli, int64_t from_us, int64_t to_us,
		     int64_t now_us, int64_t half_life_us);

/* In millionths of what `devices_milli` give when they are used for ever (with h = 0:
 * of `window_us` of them). Stops at INT64_MAX; 0 devices give 0. */
int64_t usage_micro(usage_q32 u, int64_t devices_milli, int64_t half_life_us, int64_t window_us);

#endif
