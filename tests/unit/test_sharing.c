#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "gpuqd/devices/sharing.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define GIB (INT64_C(1) << 30)

Test(sharing, words_of_nodes)
{
	cr_expect_eq(sharing_kind_of("whole"), SHARE_WHOLE);
	cr_expect_eq(sharing_kind_of("gpushare"), SHARE_GPUSHARE);
	cr_expect_eq(sharing_kind_of("gpushare-mib"), SHARE_GPUSHARE_MIB);
	cr_expect_eq(sharing_kind_of(""), SHARE_ANY);
	cr_expect_eq(sharing_kind_of("somebody's own"), SHARE_ANY);
	cr_expect_str_eq(sharing_word(SHARE_GPUSHARE), "gpushare");
}

/* Which nodes a pod cannot stand on: the first word of each that is barred. */
static const struct {
	const char *name;
	int64_t gpus_milli, memory, cores;
	const char *mig;
	const char *barred;
} asks[] = {
	{ "no device", 0, 0, 0, NULL, "" },
	{ "a whole device", 1000, 0, 0, NULL, "" },
	{ "half a device", 500, 0, 0, NULL, "whole" },
	{ "memory of one", 1000, 5 * GIB, 0, NULL, "whole" },
	{ "two devices", 2000, 0, 0, NULL, "gpushare gpushare-mib" },
	{ "memory of each of two", 2000, 5 * GIB, 0, NULL, "whole gpushare gpushare-mib" },
	{ "cores", 1000, 0, 30, NULL, "whole gpushare gpushare-mib" },
	{ "an instance", 1000, 0, 0, "1g.10gb", "" },
};

Test(sharing, who_cannot_stand_where)
{
	for (size_t i = 0; i < N(asks); i++) {
		const struct gpuq_group g = { .gpus_milli = asks[i].gpus_milli,
					      .gpu_memory_bytes = asks[i].memory,
					      .gpu_cores = asks[i].cores,
					      .mig = asks[i].mig };
		const char *const *barred = sharing_barred(&g);
		char text[64] = "";

		for (; barred && *barred; barred++) {
			strcat(text, *text ? " " : "");
			strcat(text, *barred);
		}
		cr_expect_str_eq(text, asks[i].barred, "%s: %s", asks[i].name, text);
	}
}

Test(sharing, units_of_a_node)
{
	int64_t mib = 0;

	cr_expect_eq(sharing_gpushare(60, 4, &mib), SHARE_GPUSHARE);
	cr_expect_eq(mib, 15 * 1024);
	cr_expect_eq(sharing_gpushare(4 * 16276, 4, &mib), SHARE_GPUSHARE_MIB);
	cr_expect_eq(mib, 16276);
	cr_expect_eq(sharing_gpushare(15, 0, &mib), SHARE_GPUSHARE,
		     "one device when nobody counts");
	cr_expect_eq(sharing_gpushare(0, 4, &mib), SHARE_ANY);
	cr_expect_eq(sharing_gpushare(3, 4, &mib), SHARE_ANY);
}

static const char *note(const struct sharing_place *p, const char *key)
{
	for (size_t i = 0; i < p->n_notes; i++)
		if (strcmp(p->notes[i].key, key) == 0)
			return p->notes[i].value;
	return "";
}

static const struct {
	const char *name;
	enum share_kind kind;
	int64_t device_mib, milli, memory;
	int64_t units; /* -1 = refused */
} places[] = {
	{ "GiB", SHARE_GPUSHARE, 15 * 1024, 333, 5 * GIB, 5 },
	{ "a part of a unit is one more", SHARE_GPUSHARE, 15 * 1024, 350, 5 * GIB + 1, 6 },
	{ "MiB", SHARE_GPUSHARE_MIB, 16276, 500, 8138 * (GIB / 1024), 8138 },
	{ "half a device", SHARE_GPUSHARE, 15 * 1024, 500, 0, 7 },
	{ "a whole one", SHARE_GPUSHARE, 15 * 1024, 1000, 0, 15 },
	{ "never nothing", SHARE_GPUSHARE, 15 * 1024, 1, 0, 1 },
	{ "more than there is", SHARE_GPUSHARE, 15 * 1024, 1000, 16 * GIB, -1 },
	{ "memory not known", SHARE_GPUSHARE, 0, 500, 0, -1 },
	{ "no such node", SHARE_WHOLE, 15 * 1024, 500, 0, -1 },
};

Test(sharing, what_the_plugin_reads)
{
	for (size_t i = 0; i < N(places); i++) {
		const struct share_ask ask = { .kind = places[i].kind,
					       .device = 2,
					       .device_mib = places[i].device_mib,
					       .milli = places[i].milli,
					       .memory_bytes = places[i].memory,
					       .now_us = 1000000 };
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct sharing_place p = { .units = -7 };
		const int rc = sharing_place(&ask, &p, &err);

		cr_expect_eq(rc, places[i].units < 0 ? GPUQ_EINVAL : 0, "%s", places[i].name);
		cr_expect_eq(p.units, places[i].units < 0 ? -7 : places[i].units, "%s",
			     places[i].name);
		if (rc != 0)
			continue;
		cr_expect_str_eq(note(&p, GPUSHARE_INDEX), "2");
		cr_expect_str_eq(note(&p, GPUSHARE_ASSIGNED), "false");
		cr_expect_eq(strtoll(note(&p, GPUSHARE_POD), NULL, 10), p.units);
	}
}

Test(sharing, times_rise_when_the_clock_does_not)
{
	const struct share_ask ask = {
		.kind = SHARE_GPUSHARE, .device_mib = 15 * 1024, .milli = 500, .now_us = 1000000
	};
	struct gpuq_err err = GPUQ_ERR_INIT;
	long long last = 0;

	for (int i = 0; i < 5; i++) {
		struct sharing_place p;
		long long now;

		cr_assert_eq(sharing_place(&ask, &p, &err), 0);
		now = strtoll(note(&p, GPUSHARE_TIME), NULL, 10);
		cr_expect_gt(now, last);
		last = now;
	}
	cr_expect_geq(last, 1000000LL * 1000);
}
