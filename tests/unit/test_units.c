#include <criterion/criterion.h>

#include <string.h>

#include "libgpuq/units.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define S INT64_C(1000000)
#define M (60 * S)
#define H (60 * M)
#define D (24 * H)
#define LEFT (-77) /* what an output holds that was not written */

struct row {
	const char *text;
	int rc;
	int64_t want;
};

static void try_rows(const char *what, const struct row *rows, size_t n,
		     int (*parse)(const char *, int64_t *, struct gpuq_err *))
{
	for (size_t i = 0; i < n; i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		int64_t got = LEFT;
		int rc = parse(rows[i].text, &got, &err);

		cr_expect_eq(rc, rows[i].rc, "%s '%s': %d %s", what, rows[i].text, rc, err.text);
		cr_expect_eq(got, rows[i].rc ? LEFT : rows[i].want, "%s '%s': %lld", what,
			     rows[i].text, (long long)got);
		cr_expect_eq(err.code, rc);
		cr_expect_eq(parse(rows[i].text, &got, NULL), rc, "without an err");
	}
}

static const struct row durations[] = {
	{ "45s", 0, 45 * S },
	{ "90m", 0, 90 * M },
	{ "12h", 0, 12 * H },
	{ "1d12h", 0, 36 * H },
	{ "7d", 0, 7 * D },
	{ "2w", 0, 14 * D },
	{ "250ms", 0, S / 4 },
	{ "1s500ms", 0, 3 * S / 2 },
	{ "7us", 0, 7 },
	{ "0s", 0, 0 },
	{ "1d90m", 0, D + 90 * M },
	{ "90", 0, 90 * M },
	{ "0", 0, 0 },
	{ "1:30", 0, 90 * S },
	{ "90:00", 0, 90 * M },
	{ "1:30:00", 0, 90 * M },
	{ "00:00:05", 0, 5 * S },
	{ "100:00:00", 0, 100 * H },
	{ "1-0", 0, D },
	{ "1-12", 0, 36 * H },
	{ "1-12:30", 0, 36 * H + 30 * M },
	{ "7-00:00:01", 0, 7 * D + S },
	{ "unlimited", 0, GPUQ_UNLIMITED },
	{ "UNLIMITED", 0, GPUQ_UNLIMITED },
	{ "infinite", 0, GPUQ_UNLIMITED },
	{ "106751991d", 0, 106751991 * D },
	{ "", GPUQ_EINVAL, 0 },
	{ " 5", GPUQ_EINVAL, 0 },
	{ "5 ", GPUQ_EINVAL, 0 },
	{ "-5m", GPUQ_EINVAL, 0 },
	{ "-1", GPUQ_EINVAL, 0 },
	{ "+5m", GPUQ_EINVAL, 0 },
	{ "30m1h", GPUQ_EINVAL, 0 },
	{ "1h1h", GPUQ_EINVAL, 0 },
	{ "1h30", GPUQ_EINVAL, 0 },
	{ "1.5h", GPUQ_EINVAL, 0 },
	{ "5x", GPUQ_EINVAL, 0 },
	{ "5H", GPUQ_EINVAL, 0 },
	{ "h", GPUQ_EINVAL, 0 },
	{ "1-2h", GPUQ_EINVAL, 0 },
	{ "1-", GPUQ_EINVAL, 0 },
	{ ":30", GPUQ_EINVAL, 0 },
	{ "1:", GPUQ_EINVAL, 0 },
	{ "1:2:3:4", GPUQ_EINVAL, 0 },
	{ "1-2:3:4:5", GPUQ_EINVAL, 0 },
	{ "1-2-3", GPUQ_EINVAL, 0 },
	{ "1:2-3", GPUQ_EINVAL, 0 },
	{ "forever", GPUQ_EINVAL, 0 },
	{ "99999999999d", GPUQ_ERANGE, 0 },
	{ "106751992d", GPUQ_ERANGE, 0 },
	{ "9223372036854775807us", GPUQ_ERANGE, 0 },
	{ "99999999999999999999", GPUQ_ERANGE, 0 },
	{ "99999999999999999999-0", GPUQ_ERANGE, 0 },
	{ "106751991d23h59m", GPUQ_ERANGE, 0 },
};

Test(duration, parses_or_refuses)
{
	try_rows("duration", durations, N(durations), gpuq_duration_parse);
}

Test(duration, prints_what_reads_back)
{
	static const struct {
		int64_t us;
		const char *want, *clock;
	} cases[] = {
		{ 0, "0s", "0:00" },
		{ 36 * H, "1d12h", "1-12:00:00" },
		{ 90 * S, "90s", "1:30" },
		{ 90 * M, "90m", "1:30:00" },
		{ 100 * M, "1h40m", "1:40:00" },
		{ 12 * H, "12h", "12:00:00" },
		{ 400 * D, "400d", "400-00:00:00" },
		{ S / 4, "250ms", "0:00" },
		{ 1, "1us", "0:00" },
		{ D + H + M + S + 1001, "1d1h1m1s1ms1us", "1-01:01:01" },
		{ 12 * M + 5 * S, "12m5s", "12:05" },
		{ GPUQ_UNLIMITED, "unlimited", "UNLIMITED" },
		{ GPUQ_UNLIMITED - 1, "106751991d4h54s775ms806us", "106751991-04:00:54" },
	};

	for (size_t i = 0; i < N(cases); i++) {
		char text[64];
		int64_t back = LEFT;

		gpuq_duration_print(cases[i].us, text, sizeof(text));
		cr_expect_str_eq(text, cases[i].want);
		cr_expect_eq(gpuq_duration_parse(text, &back, NULL), 0, "%s", text);
		cr_expect_eq(back, cases[i].us, "%s", text);
		gpuq_duration_clock(cases[i].us, text, sizeof(text));
		cr_expect_str_eq(text, cases[i].clock);
		gpuq_duration_print(cases[i].us, text, 4);
		cr_expect_lt(strlen(text), 4);
	}
}

static const struct row sizes[] = {
	{ "512Gi", 0, INT64_C(512) << 30 },
	{ "10Gi", 0, INT64_C(10) << 30 },
	{ "100M", 0, 100000000 },
	{ "1.5Gi", 0, INT64_C(3) << 29 },
	{ "1e9", 0, 1000000000 },
	{ "1E9", 0, 1000000000 },
	{ "1E", 0, INT64_C(1000000000000000000) },
	{ "7Ei", 0, INT64_C(7) << 60 },
	{ "1073741824", 0, 1 << 30 },
	{ "1k", 0, 1000 },
	{ "1K", 0, 1000 },
	{ "1Ki", 0, 1024 },
	{ "2T", 0, INT64_C(2000000000000) },
	{ "1P", 0, INT64_C(1000000000000000) },
	{ "0", 0, 0 },
	{ "0Ei", 0, 0 },
	{ "0e99999999999999999999", 0, 0 },
	{ ".5Ki", 0, 512 },
	{ "5.", 0, 5 },
	{ "+1", 0, 1 },
	{ "0.1", 0, 1 },
	{ "100m", 0, 1 },
	{ "1500m", 0, 2 },
	{ "1n", 0, 1 },
	{ "1e-100", 0, 1 },
	{ "12e-1", 0, 2 },
	{ "1.0000000000000000000000000000001", 0, 2 },
	{ "2.0000000000000000000000000000000", 0, 2 },
	{ "9223372036854775807", 0, INT64_MAX },
	{ "9223372036854775806.5", 0, INT64_MAX },
	{ "9223372036854775808", GPUQ_ERANGE, 0 },
	{ "9223372036854775807.5", GPUQ_ERANGE, 0 },
	{ "8Ei", GPUQ_ERANGE, 0 },
	{ "10E", GPUQ_ERANGE, 0 },
	{ "1e19", GPUQ_ERANGE, 0 },
	{ "1e99999999999999999999", GPUQ_ERANGE, 0 },
	{ "99999999999999999999999999999999999999999999", GPUQ_ERANGE, 0 },
	{ "", GPUQ_EINVAL, 0 },
	{ "Gi", GPUQ_EINVAL, 0 },
	{ ".", GPUQ_EINVAL, 0 },
	{ "1.2.3", GPUQ_EINVAL, 0 },
	{ "-1", GPUQ_EINVAL, 0 },
	{ "1 Gi", GPUQ_EINVAL, 0 },
	{ "1gi", GPUQ_EINVAL, 0 },
	{ "1g", GPUQ_EINVAL, 0 },
	{ "1GB", GPUQ_EINVAL, 0 },
	{ "1ki", GPUQ_EINVAL, 0 },
	{ "1e3Ki", GPUQ_EINVAL, 0 },
	{ "1e", GPUQ_EINVAL, 0 },
	{ "1e+", GPUQ_EINVAL, 0 },
	{ "0x10", GPUQ_EINVAL, 0 },
	{ "unlimited", GPUQ_EINVAL, 0 },
};

Test(bytes, parses_or_refuses)
{
	try_rows("size", sizes, N(sizes), gpuq_bytes_parse);
}

static const struct row slurm_sizes[] = {
	{ "4000", 0, INT64_C(4000) << 20 },
	{ "512M", 0, INT64_C(512) << 20 },
	{ "512G", 0, INT64_C(512) << 30 },
	{ "64g", 0, INT64_C(64) << 30 },
	{ "2T", 0, INT64_C(2) << 40 },
	{ "8GB", 0, INT64_C(8) << 30 },
	{ "8GiB", 0, INT64_C(8) << 30 },
	{ "1024K", 0, 1 << 20 },
	{ "1025K", 0, 2 << 20 },
	{ "0", 0, 0 },
	{ "", GPUQ_EINVAL, 0 },
	{ "G", GPUQ_EINVAL, 0 },
	{ "-1G", GPUQ_EINVAL, 0 },
	{ "1.5G", GPUQ_EINVAL, 0 },
	{ "1P", GPUQ_EINVAL, 0 },
	{ "1Gx", GPUQ_EINVAL, 0 },
	{ "1 G", GPUQ_EINVAL, 0 },
	{ "9999999999999999", GPUQ_ERANGE, 0 },
	{ "99999999999999999999", GPUQ_ERANGE, 0 },
	{ "9007199254740991K", GPUQ_ERANGE, 0 },
};

Test(bytes, parses_or_refuses_as_slurm)
{
	try_rows("memory", slurm_sizes, N(slurm_sizes), gpuq_slurm_mem_parse);
}

static const struct row millis[] = {
	{ "100m", 0, 100 },
	{ "2", 0, 2000 },
	{ "0.5", 0, 500 },
	{ ".25", 0, 250 },
	{ "1500m", 0, 1500 },
	{ "0.0001", 0, 1 },
	{ "1u", 0, 1 },
	{ "1k", 0, 1000000 },
	{ "1Ki", 0, 1024000 },
	{ "1e-3", 0, 1 },
	{ "9223372036854775", 0, INT64_C(9223372036854775000) },
	{ "9223372036854776", GPUQ_ERANGE, 0 },
	{ "8Ei", GPUQ_ERANGE, 0 },
	{ "m", GPUQ_EINVAL, 0 },
	{ "-1", GPUQ_EINVAL, 0 },
	{ "half", GPUQ_EINVAL, 0 },
};

Test(milli, parses_or_refuses)
{
	try_rows("quantity", millis, N(millis), gpuq_milli_parse);
}

Test(bytes, prints_what_reads_back)
{
	static const struct {
		int64_t bytes;
		const char *want;
	} cases[] = {
		{ 0, "0" },
		{ 1, "1" },
		{ 1023, "1023" },
		{ 1024, "1Ki" },
		{ 1536, "1536" },
		{ INT64_C(512) << 30, "512Gi" },
		{ INT64_C(3) << 29, "1536Mi" },
		{ 1000, "1k" },
		{ 5000000001, "5000000001" },
		{ INT64_MAX, "9223372036854775807" },
		{ INT64_C(1) << 60, "1Ei" },
		{ 100000000, "100M" },
	};

	for (size_t i = 0; i < N(cases); i++) {
		char text[32];
		int64_t back = LEFT;

		gpuq_bytes_print(cases[i].bytes, text, sizeof(text));
		cr_expect_str_eq(text, cases[i].want);
		cr_expect_eq(gpuq_bytes_parse(text, &back, NULL), 0, "%s", text);
		cr_expect_eq(back, cases[i].bytes, "%s", text);
	}
}

Test(milli, prints_what_reads_back)
{
	static const struct {
		int64_t milli;
		const char *want;
	} cases[] = {
		{ 0, "0" },        { 2000, "2" },     { 500, "0.5" },
		{ 1250, "1.25" },  { 1, "0.001" },    { 10, "0.01" },
		{ 100000, "100" }, { 1005, "1.005" }, { INT64_MAX, "9223372036854775.807" },
	};

	for (size_t i = 0; i < N(cases); i++) {
		char text[32];
		int64_t back = LEFT;

		gpuq_milli_print(cases[i].milli, text, sizeof(text));
		cr_expect_str_eq(text, cases[i].want);
		cr_expect_eq(gpuq_milli_parse(text, &back, NULL), 0, "%s", text);
		cr_expect_eq(back, cases[i].milli, "%s", text);
	}
}

/* 2026-11-21T15:20:30.5Z, a Saturday. */
#define NOW (INT64_C(1795274430) * S + S / 2)
#define TODAY (INT64_C(1795219200) * S)

static int instant(const char *text, int64_t *at, struct gpuq_err *err)
{
	return gpuq_instant_parse(text, NOW, at, err);
}

static const struct row instants[] = {
	{ "now", 0, NOW },
	{ "now+2h", 0, NOW + 2 * H },
	{ "now+1d12h", 0, NOW + 36 * H },
	{ "now+60", 0, NOW + 60 * S }, /* seconds, as sbatch --begin */
	{ "now+1hour", 0, NOW + H },
	{ "now+3days", 0, NOW + 3 * D },
	{ "now+2weeks", 0, NOW + 14 * D },
	{ "now+5minutes", 0, NOW + 5 * M },
	{ "now+1:30:00", 0, NOW + 90 * M },
	{ "@0", 0, 0 },
	{ "@1795274430", 0, INT64_C(1795274430) * S },
	{ "1970-01-01", 0, 0 },
	{ "2026-11-21", 0, TODAY },
	{ "2026-11-21T15:20:30.5Z", 0, NOW },
	{ "2026-11-21t15:20:30.500000z", 0, NOW },
	{ "2026-11-21 15:20:30.5", 0, NOW },
	{ "2026-11-21T15:20:30.5000009Z", 0, NOW },
	{ "2026-11-21T17:20:30.5+02:00", 0, NOW },
	{ "2026-11-21T10:50:30.5-0430", 0, NOW },
	{ "2026-11-21T15:20", 0, TODAY + 15 * H + 20 * M },
	{ "2026-12-01T09:00Z", 0, TODAY + 10 * D + 9 * H },
	{ "2024-02-29", 0, INT64_C(1709164800) * S },
	{ "2000-02-29", 0, INT64_C(951782400) * S },
	{ "9999-12-31T23:59:59Z", 0, INT64_C(253402300799) * S },
	{ "2016-12-31T23:59:60Z", 0, INT64_C(1483228800) * S },
	{ "15:21", 0, TODAY + 15 * H + 21 * M },
	{ "15:20:30", 0, TODAY + D + 15 * H + 20 * M + 30 * S }, /* just over: tomorrow */
	{ "9:30", 0, TODAY + D + 9 * H + 30 * M },
	{ "00:00", 0, TODAY + D },
	{ "04:05PM", 0, TODAY + 16 * H + 5 * M },
	{ "12:05am", 0, TODAY + D + 5 * M },
	{ "12:05pm", 0, TODAY + D + 12 * H + 5 * M },
	{ "midnight", 0, TODAY + D },
	{ "noon", 0, TODAY + D + 12 * H },
	{ "teatime", 0, TODAY + 16 * H },
	{ "fika", 0, TODAY + D + 15 * H },
	{ "today", 0, TODAY },
	{ "tomorrow", 0, TODAY + D },
	{ "tomorrow 09:00", 0, TODAY + D + 9 * H },
	{ "noon tomorrow", 0, TODAY + D + 12 * H },
	{ "16:00 today", 0, TODAY + 16 * H },
	{ "12/01", 0, TODAY + 10 * D },
	{ "12.01.26", 0, TODAY + 10 * D },
	{ "120126", 0, TODAY + 10 * D },
	{ "1201 08:00", 0, TODAY + 10 * D + 8 * H },
	{ "0101", 0, INT64_C(1798761600) * S }, /* of next year */
	{ "02/29", 0, INT64_C(1835395200) * S }, /* the next one there is: 2028 */
	{ "", GPUQ_EINVAL, 0 },
	{ "soon", GPUQ_EINVAL, 0 },
	{ "now-2h", GPUQ_EINVAL, 0 },
	{ "now+", GPUQ_EINVAL, 0 },
	{ "now+x", GPUQ_EINVAL, 0 },
	{ "now+2hourss", GPUQ_EINVAL, 0 },
	{ "now+unlimited", GPUQ_EINVAL, 0 },
	{ "nowhere", GPUQ_EINVAL, 0 },
	{ "@", GPUQ_EINVAL, 0 },
	{ "@-1", GPUQ_EINVAL, 0 },
	{ "@1.5", GPUQ_EINVAL, 0 },
	{ "2026-12", GPUQ_EINVAL, 0 },
	{ "2026-12-1", GPUQ_EINVAL, 0 },
	{ "2026-12-01T", GPUQ_EINVAL, 0 },
	{ "2026-12-01T09", GPUQ_EINVAL, 0 },
	{ "2026-12-01T09:00X", GPUQ_EINVAL, 0 },
	{ "2026-12-01T09:00Zz", GPUQ_EINVAL, 0 },
	{ "2026-12-01T09:00+2", GPUQ_EINVAL, 0 },
	{ "2026-12-01T09:00:00.Z", GPUQ_EINVAL, 0 },
	{ "noon noon", GPUQ_EINVAL, 0 },
	{ "today tomorrow", GPUQ_EINVAL, 0 },
	{ "noon ", GPUQ_EINVAL, 0 },
	{ " noon", GPUQ_EINVAL, 0 },
	{ "12/1", GPUQ_EINVAL, 0 },
	{ "12/01.26", GPUQ_EINVAL, 0 },
	{ "2026-13-01", GPUQ_ERANGE, 0 },
	{ "2026-02-29", GPUQ_ERANGE, 0 },
	{ "1900-02-29", GPUQ_ERANGE, 0 },
	{ "2026-00-10", GPUQ_ERANGE, 0 },
	{ "1969-12-31", GPUQ_ERANGE, 0 },
	{ "1970-01-01T00:00+01:00", GPUQ_ERANGE, 0 },
	{ "2026-12-01T24:00Z", GPUQ_ERANGE, 0 },
	{ "25:00", GPUQ_ERANGE, 0 },
	{ "13:00PM", GPUQ_ERANGE, 0 },
	{ "13/01", GPUQ_ERANGE, 0 },
	{ "02/30", GPUQ_ERANGE, 0 },
	{ "@999999999999999", GPUQ_ERANGE, 0 },
};

Test(instant, parses_or_refuses)
{
	try_rows("instant", instants, N(instants), instant);
}

Test(instant, prints_what_reads_back)
{
	static const struct {
		int64_t us;
		const char *want;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ NOW, "2026-11-21T15:20:30.500Z" },
		{ INT64_C(951782400) * S, "2000-02-29T00:00:00.000Z" },
		{ INT64_C(253402300799) * S, "9999-12-31T23:59:59.000Z" },
	};
	char text[25];

	for (size_t i = 0; i < N(cases); i++) {
		int64_t back = LEFT;

		gpuq_instant_print(cases[i].us, text, sizeof(text));
		cr_expect_str_eq(text, cases[i].want);
		cr_expect_eq(gpuq_instant_parse(text, 0, &back, NULL), 0);
		cr_expect_eq(back, cases[i].us);
	}
	gpuq_instant_print(INT64_MAX, text, sizeof(text));
	cr_expect_str_eq(text, "9999-12-31T23:59:59.999Z");
	gpuq_instant_print(-1, text, sizeof(text));
	cr_expect_str_eq(text, "1970-01-01T00:00:00.000Z");
}

Test(instant, knows_every_day_of_the_calendar)
{
	char text[25];

	for (int64_t day = 0; day < 2932897; day += 1 + day % 7) {
		int64_t back = LEFT;

		gpuq_instant_print(day * D, text, sizeof(text));
		cr_assert_eq(gpuq_instant_parse(text, 0, &back, NULL), 0, "%s", text);
		cr_assert_eq(back, day * D, "%s", text);
	}
}

Test(signals, have_names_and_numbers)
{
	static const struct {
		const char *name;
		int number;
	} cases[] = { { "USR1", 10 }, { "SIGUSR1", 10 }, { "sigterm", 15 },
		      { "Kill", 9 },  { "10", 10 },      { "64", 64 },
		      { "65", 0 },    { "0", 0 },        { "-9", 0 },
		      { "", 0 },      { "SIG", 0 },      { "9x", 0 },
		      { "USR3", 0 },  { "CLD", 17 },     { "99999999999999999999", 0 } };

	for (size_t i = 0; i < N(cases); i++)
		cr_expect_eq(gpuq_signal_number(cases[i].name), cases[i].number, "%s",
			     cases[i].name);
	for (int n = 1; n <= 31; n++)
		cr_expect_eq(gpuq_signal_number(gpuq_signal_name(n)), n);
	cr_expect_str_eq(gpuq_signal_name(17), "CHLD");
	cr_expect_null(gpuq_signal_name(0));
	cr_expect_null(gpuq_signal_name(40));
}
