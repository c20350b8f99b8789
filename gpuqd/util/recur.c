#include "gpuqd/util/recur.h"

#include <stdbool.h>

#include "gpuqd/util/amount.h"
#include "libgpuq/units.h"

#define DAY_US (86400 * GPUQ_US_PER_S)
#define WINDOW_US (7 * DAY_US)

/* Return what the clock of its zone shows. */
static int64_t wall(const struct recur *r, int64_t us)
{
	return r->zone ? zone_wall(r->zone, us) : us;
}

/* The inverse of wall(). */
static int64_t instant(const struct recur *r, int64_t wall_us)
{
	return r->zone ? zone_instant(r->zone, wall_us) : wall_us;
}

/* Return the end of the excepted day on which it begins, or 0 if it may begin. */
static int64_t barred_until(const struct recur *r, int64_t start_us)
{
	const int64_t at = wall(r, start_us);

	for (size_t i = 0; i < r->n_except; i++)
		if (at >= r->except_us[i] && at - r->except_us[i] < DAY_US)
			return instant(r, r->except_us[i] + DAY_US);
	return 0;
}

/* Return the first start at or after t_us, exceptions aside. */
static int64_t next_start(const struct recur *r, int64_t t_us)
{
	const int64_t since = amount_less(t_us, r->start_us);
	int64_t n, start;

	if (since <= 0)
		return r->start_us;
	if (r->every_us <= 0)
		return GPUQ_UNLIMITED;
	n = (since - 1) / r->every_us;
	if (!r->zone || r->every_us % DAY_US != 0)
		return amount_sum(r->start_us, amount_times(n + 1, r->every_us));
	/* By the wall clock it may have begun a period sooner. */
	n -= n > 0;
	do {
		start = instant(r, amount_sum(wall(r, r->start_us), amount_times(n, r->every_us)));
		n++;
	} while (start < t_us);
	return start;
}

int64_t recur_at(const struct recur *r, int64_t t_us)
{
	/* One that covers t began less than its duration before. */
	int64_t start = next_start(r, amount_sum(amount_less(t_us, r->duration_us), 1));

	/* Each step leaves an excepted day behind. */
	for (size_t i = 0; i <= r->n_except; i++) {
		const int64_t barred = barred_until(r, start);

		if (r->until_us > 0 && start >= r->until_us)
			return GPUQ_UNLIMITED;
		if (!barred)
			return start;
		start = next_start(r, barred);
	}
	return GPUQ_UNLIMITED;
}

uint32_t recur_starts(const struct recur *r, int64_t now_us, int64_t starts_us[RECUR_MAX])
{
	int64_t start = recur_at(r, now_us);
	uint32_t n = 0;

	while (n < RECUR_MAX && start < GPUQ_UNLIMITED - r->duration_us) {
		if (n >= RECUR_LEAST && start - now_us > WINDOW_US)
			break;
		starts_us[n++] = start;
		start = recur_at(r, start + r->duration_us);
	}
	return n;
}
