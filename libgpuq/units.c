#include "libgpuq/units.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MINUTE_US (60 * GPUQ_US_PER_S)
#define HOUR_US (60 * MINUTE_US)
#define DAY_US (24 * HOUR_US)

static int no_duration(struct gpuq_err *err, const char *text)
{
	return gpuq_fail(
		err, GPUQ_EINVAL,
		"'%.64s' is not a duration: expected 90m, 1d12h, 2:30:00 or a number of minutes",
		text);
}

static int duration_too_long(struct gpuq_err *err, const char *text)
{
	return gpuq_fail(err, GPUQ_ERANGE, "the duration '%.64s' is too long; unlimited is a word",
			 text);
}

/* Read digits at *p; false when there are none. Too large a number saturates at a
 * value that no further arithmetic here can take for a fitting one. */
static bool read_number(const char **p, int64_t *out)
{
	int64_t v = 0;

	if (!isdigit((unsigned char)**p))
		return false;
	for (; isdigit((unsigned char)**p); (*p)++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, **p - '0', &v))
			v = INT64_MAX;
	*out = v;
	return true;
}

/* *sum += n * unit, false when that leaves the range (INT64_MAX means unlimited). */
static bool add_times(int64_t *sum, int64_t n, int64_t unit)
{
	int64_t part;

	return !__builtin_mul_overflow(n, unit, &part) &&
	       !__builtin_add_overflow(*sum, part, sum) && *sum != GPUQ_UNLIMITED;
}

/* Largest first: the order in which they may follow each other. `most`: up to how
 * many a duration is printed in this unit alone ("90m" rather than "1h30m"). */
static const struct unit {
	const char *word;
	int64_t us, most;
} units[] = {
	{ "w", 7 * DAY_US, 0 }, { "d", DAY_US, INT64_MAX }, { "h", HOUR_US, 23 },
	{ "m", MINUTE_US, 99 }, { "s", GPUQ_US_PER_S, 99 }, { "ms", 1000, 999 },
	{ "us", 1, 999 },
};

#define N_UNITS (sizeof(units) / sizeof(units[0]))

/* "1d12h": numbers with units, each smaller than the one before. */
static int parse_units(const char *text, int64_t *us, struct gpuq_err *err)
{
	const char *p = text;
	int64_t sum = 0, n;
	bool fits = true;
	size_t next = 0;

	while (*p) {
		size_t len, i = next;

		if (!read_number(&p, &n))
			return no_duration(err, text);
		len = strspn(p, "abcdefghijklmnopqrstuvwxyz");
		while (i < N_UNITS &&
		       (strlen(units[i].word) != len || memcmp(units[i].word, p, len) != 0))
			i++;
		if (i == N_UNITS)
			return no_duration(err, text);
		fits = fits && add_times(&sum, n, units[i].us);
		next = i + 1;
		p += len;
	}
	if (!fits)
		return duration_too_long(err, text);
	*us = sum;
	return 0;
}

/* Slurm's forms. Fields may be larger than a clock shows ("90:00"), as in Slurm. */
static int parse_clock(const char *text, int64_t *us, struct gpuq_err *err)
{
	static const int64_t with_days[] = { DAY_US, HOUR_US, MINUTE_US, GPUQ_US_PER_S };
	static const int64_t plain[3][3] = { { MINUTE_US },
					     { MINUTE_US, GPUQ_US_PER_S },
					     { HOUR_US, MINUTE_US, GPUQ_US_PER_S } };
	const char *p = text;
	const int64_t *scale;
	int64_t v[4], sum = 0;
	bool days = false;
	size_t n = 0;

	for (;;) {
		if (n == 4 || !read_number(&p, &v[n]))
			return no_duration(err, text);
		n++;
		if (*p == '\0')
			break;
		if (*p == '-' && n == 1)
			days = true;
		else if (*p != ':' || (n == 1 && days))
			return no_duration(err, text);
		p++;
	}
	if (!days && n == 4)
		return no_duration(err, text);
	scale = days ? with_days : plain[n - 1];
	for (size_t i = 0; i < n; i++)
		if (!add_times(&sum, v[i], scale[i]))
			return duration_too_long(err, text);
	*us = sum;
	return 0;
}

int gpuq_duration_parse(const char *text, int64_t *us, struct gpuq_err *err)
{
	if (strcasecmp(text, "unlimited") == 0 || strcasecmp(text, "infinite") == 0) {
		*us = GPUQ_UNLIMITED;
		return 0;
	}
	if (text[0] == '-')
		return gpuq_fail(err, GPUQ_EINVAL,
				 "a duration must not be negative ('%.64s'); without end it is "
				 "'unlimited'",
				 text);
	if (*text && text[strcspn(text, "abcdefghijklmnopqrstuvwxyz")])
		return parse_units(text, us, err);
	return parse_clock(text, us, err);
}

void gpuq_duration_print(int64_t us, char *out, size_t room)
{
	size_t used = 0;

	if (us == GPUQ_UNLIMITED) {
		snprintf(out, room, "unlimited");
		return;
	}
	if (us <= 0) {
		snprintf(out, room, "0s");
		return;
	}
	/* Weeks are read but not printed: people count days. */
	for (size_t i = 1; i < N_UNITS; i++) {
		if (us % units[i].us == 0 && us / units[i].us <= units[i].most) {
			snprintf(out, room, "%lld%s", (long long)(us / units[i].us), units[i].word);
			return;
		}
	}
	out[0] = '\0';
	for (size_t i = 1; i < N_UNITS && us > 0 && used < room; i++) {
		int64_t n = us / units[i].us;
		int k;

		if (n == 0)
			continue;
		us -= n * units[i].us;
		k = snprintf(out + used, room - used, "%lld%s", (long long)n, units[i].word);
		used += k > 0 ? (size_t)k : 0;
	}
}

/* "5" or, where something stands before it, ":05". */
static char *clock_part(char *p, const char *start, int n)
{
	if (p > start)
		*p++ = ':';
	if (p > start || n >= 10)
		*p++ = (char)('0' + n / 10);
	*p++ = (char)('0' + n % 10);
	return p;
}

void gpuq_duration_clock(int64_t us, char *out, size_t room)
{
	const int64_t s = us < 0 ? 0 : us / GPUQ_US_PER_S;
	const int h = (int)(s / 3600 % 24);
	char text[16], *p = text;

	if (us == GPUQ_UNLIMITED) {
		snprintf(out, room, "UNLIMITED");
		return;
	}
	if (s >= 86400) {
		snprintf(out, room, "%lld-%02d:%02d:%02d", (long long)(s / 86400), h,
			 (int)(s / 60 % 60), (int)(s % 60));
		return;
	}
	if (h)
		p = clock_part(p, text, h);
	p = clock_part(p, text, (int)(s / 60 % 60));
	p = clock_part(p, text, (int)(s % 60));
	*p++ = '\0';
	if ((size_t)(p - text) <= room)
		memcpy(out, text, (size_t)(p - text));
	else
		snprintf(out, room, "%s", text);
}

static const struct {
	const char *name;
	int number;
} signals[] = {
	/* Linux on x86 and ARM; the first name of a number is the one printed. */
	{ "HUP", 1 },   { "INT", 2 },     { "QUIT", 3 },    { "ILL", 4 },   { "TRAP", 5 },
	{ "ABRT", 6 },  { "IOT", 6 },     { "BUS", 7 },     { "FPE", 8 },   { "KILL", 9 },
	{ "USR1", 10 }, { "SEGV", 11 },   { "USR2", 12 },   { "PIPE", 13 }, { "ALRM", 14 },
	{ "TERM", 15 }, { "STKFLT", 16 }, { "CHLD", 17 },   { "CLD", 17 },  { "CONT", 18 },
	{ "STOP", 19 }, { "TSTP", 20 },   { "TTIN", 21 },   { "TTOU", 22 }, { "URG", 23 },
	{ "XCPU", 24 }, { "XFSZ", 25 },   { "VTALRM", 26 }, { "PROF", 27 }, { "WINCH", 28 },
	{ "IO", 29 },   { "POLL", 29 },   { "PWR", 30 },    { "SYS", 31 },
};

int gpuq_signal_number(const char *name)
{
	const char *p = name;
	int64_t n;

	if (read_number(&p, &n))
		return *p == '\0' && n >= 1 && n <= 64 ? (int)n : 0;
	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (strcasecmp(name, signals[i].name) == 0)
			return signals[i].number;
	return 0;
}

const char *gpuq_signal_name(int number)
{
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (signals[i].number == number)
			return signals[i].name;
	return NULL;
}
