#include "gpuqd/util/recur.h"

#include "gpuqd/util/amount.h"
#include "libgpuq/units.h"

#define WINDOW_US (7 * 86400 * GPUQ_US_PER_S)

uint32_t recur_starts(int64_t start_us, int64_t duration_us, int64_t every_us, int64_t now_us,
		      int64_t starts_us[RECUR_MAX])
{
	const int64_t since = amount_less(now_us, amount_sum(start_us, duration_us));
	uint32_t n = 0;

	if (every_us <= 0) {
		starts_us[0] = start_us;
		return since < 0;
	}
	/* The first that ends after now. */
	if (since >= 0)
		start_us += (since / every_us + 1) * every_us;
	for (; n < RECUR_MAX && start_us < INT64_MAX - every_us - duration_us; n++) {
		if (n >= RECUR_LEAST && start_us - now_us > WINDOW_US)
			break;
		starts_us[n] = start_us;
		start_us += every_us;
	}
	return n;
}
