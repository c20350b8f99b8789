/* When reservations are. */
#include <string.h>

#include "gpuqd/site/site.h"
#include "libgpuq/units.h"

#define DAY_US (86400 * GPUQ_US_PER_S)
#define RELEASE_US (15 * 60 * GPUQ_US_PER_S)

const char *const site_reservation_flags[] = { "maintenance", "daily",          "weekly",
					       "recurring",   "release-unused", NULL };

bool site_reservation_has(const struct site_reservation *r, const char *flag)
{
	for (size_t i = 0; i < r->flags.n; i++)
		if (strcmp(r->flags.items[i], flag) == 0)
			return true;
	return false;
}

int64_t site_reservation_every_us(const struct site_reservation *r)
{
	int64_t us = site_reservation_has(r, "daily") ? DAY_US
		     : site_reservation_has(r, "weekly") || site_reservation_has(r, "recurring")
			     ? 7 * DAY_US
			     : 0;

	if (r->every_us > 0)
		us = r->every_us;
	return us < r->duration_us ? 0 : us;
}

int64_t site_reservation_release_us(const struct site_reservation *r)
{
	if (r->release_after_us > 0)
		return r->release_after_us;
	return site_reservation_has(r, "release-unused") ? RELEASE_US : 0;
}

int64_t site_reservation_start(const struct site_reservation *r, int64_t now_us)
{
	const int64_t every = site_reservation_every_us(r);
	int64_t past;

	if (every == 0 || r->start_us >= now_us || now_us - r->start_us < r->duration_us)
		return r->start_us;
	past = now_us - r->start_us - r->duration_us;
	return r->start_us + (past / every + 1) * every;
}
