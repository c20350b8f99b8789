/* usage.h - usage and its decay
 *
 * Owns     the arithmetic of decayed usage; nothing is kept here.
 * Touches  memory only.
 * Used by  state/account.c (one account for each user of a queue), gpuq-sim, tests.
 *
 * Usage is GPU-seconds with 32 fractional bits that halve every half-life h. The usage that g
 * devices add during dt is exact, so that the number of readings does not matter:
 *
 *     U(t + dt) = U(t) 2^(-dt/h) + g (h / ln 2) (1 - 2^(-dt/h))
 *
 * A half-life of 0 means no decay. Amounts of devices are thousandths, >= 0, times are
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
	int64_t rate_milli; /* devices charged since then */
};

/* Return 2^(-dt/h) with 63 fractional bits: 2^63 is 1. dt < 0 counts as 0. */
uint64_t usage_factor(int64_t dt_us, int64_t half_life_us);

/* Return the rest of an amount after decaying for dt. */
usage_q32 usage_left(usage_q32 u, int64_t dt_us, int64_t half_life_us);

/* Return the usage that devices add during dt, at its end. */
usage_q32 usage_of(int64_t milli, int64_t dt_us, int64_t half_life_us);

/* Return that many thousandths of u; milli < 2^40. */
usage_q32 usage_scaled(usage_q32 u, int64_t milli);

/* Return the account's amount at a time; a time before at_us counts as at_us. */
usage_q32 usage_at(const struct usage_account *a, int64_t now_us, int64_t half_life_us);

/* Note that the use of devices began at start_us, not after now; and ended at end_us, which may be
 * before now. Both bring the account to now. */
void usage_begin(struct usage_account *a, int64_t milli, int64_t start_us, int64_t now_us,
		 int64_t half_life_us);
void usage_end(struct usage_account *a, int64_t milli, int64_t end_us, int64_t now_us,
	       int64_t half_life_us);

/* Deduct the charge of devices from from_us to to_us, not below zero. */
void usage_give_back(struct usage_account *a, int64_t milli, int64_t from_us, int64_t to_us,
		     int64_t now_us, int64_t half_life_us);

/* Return usage in millionths of what `devices_milli` add when used for ever (with h = 0: during
 * `window_us`). Stops at INT64_MAX; 0 devices give 0. */
int64_t usage_micro(usage_q32 u, int64_t devices_milli, int64_t half_life_us, int64_t window_us);

#endif
