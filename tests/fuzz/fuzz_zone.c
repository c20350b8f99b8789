/* A time zone: the file of one, or its rule alone. No clock is more than a day or so from UTC, and a
 * daily repetition goes on. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/util/recur.h"
#include "gpuqd/util/zone.h"
#include "libgpuq/units.h"

#define DAY_US (86400 * GPUQ_US_PER_S)
#define SUMMERS 30

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void look_at(const char *rule)
{
	struct zone z;
	struct recur r = { .start_us = INT64_C(1790000000000000),
			   .duration_us = GPUQ_US_PER_S,
			   .every_us = DAY_US,
			   .zone = &z };
	int64_t t = r.start_us;

	if (!zone_read(rule, &z))
		return;
	for (int i = 0; i < SUMMERS * 4; i++) {
		const int64_t us = r.start_us + i * 91 * DAY_US, wall = zone_wall(&z, us);
		const int64_t back = zone_instant(&z, wall) - wall;

		if (wall - us > 2 * DAY_US || us - wall > 2 * DAY_US || back > 2 * DAY_US ||
		    back < -2 * DAY_US)
			abort();
	}
	for (int i = 0; i < 400; i++) {
		const int64_t next = recur_at(&r, t);

		if (next + r.duration_us <= t)
			abort();
		t = next + r.duration_us;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *copy = malloc(n + 1), rule[ZONE_RULE_MAX];
	unsigned char *bytes =
		malloc(n ? n : 1); /* of its very size, so that a look beyond is seen */

	memcpy(copy, data, n);
	copy[n] = '\0';
	look_at(copy);
	memcpy(bytes, data, n);
	if (zone_rule(bytes, n, INT64_C(1790000000000000), rule, NULL) == 0)
		look_at(rule);
	free(bytes);
	free(copy);
	return 0;
}
