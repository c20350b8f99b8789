/* price.h - price of a device and hour, and cost of use
 *
 * Owns     the form of prices in a site file, and their arithmetic.
 * Touches  memory only.
 * Used by  site/site.c (the form), state/accounting.c (cost of use), rpc/, gpuq plan.
 *
 * Money is an integer of millionths of the site's currency (its `currency`, a text
 * that is only shown). A pool is billed by what was committed for it, or on demand; its
 * own price comes before that of the flavor.
 */
#ifndef GPUQD_SITE_PRICE_H
#define GPUQD_SITE_PRICE_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/schema.h"

enum price_kind { PRICE_ON_DEMAND, PRICE_COMMITTED, N_PRICES };

/* The words of enum price_kind; ends with NULL. */
extern const char *const price_kinds[];

/* In millionths of the currency for one device and hour; up to 10^12. */
struct price {
	bool given; /* otherwise use costs nothing */
	int64_t micro[N_PRICES]; /* a device and hour, in millionths */
};

/* `2.50` (both alike) or `{on_demand: 3.10, committed: 1.20}`; of one word that is not
 * given, the other's counts. */
extern const struct gpuq_custom price_custom;

struct site;

/* Return the price of one device in a pool and of a flavor (either may be unknown to the site; NULL = of no
 * flavor in particular); 0 = no price. */
int64_t price_micro(const struct site *s, const char *pool, const char *flavor);

/* Return the cost of this many device-microseconds (>= 0), in millionths, rounded to the nearest;
 * stops at INT64_MAX. */
int64_t price_cost(int64_t micro_per_hour, int64_t gpu_us);

#endif
