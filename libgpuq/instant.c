#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libgpuq/units.h"

#define DAY_S INT64_C(86400)
#define YEAR_MIN 1970
#define YEAR_MAX 9999

/* Days since 1970-01-01 of a date of the proleptic Gregorian calendar, and back.
 * Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
static int64_t days_from_civil(int64_t y, int m, int d)
{
	int64_t era, yoe, doy;

	y -= m <= 2;
	era = (y >= 0 ? y : y - 399) / 400;
	yoe = y - era * 400;
	doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static void civil_from_days(int64_t days, int *y, int *m, int *d)
{
	int64_t z = days + 719468;
	int64_t era = (z >= 0 ? z : z - 146096) / 146097;
	int64_t doe = z - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153;

	*d = (int)(doy - (153 * mp + 2) / 5 + 1);
	*m = (int)(mp < 10 ? mp + 3 : mp - 9);
	*y = (int)(yoe + era * 400 + (*m <= 2));
}

/* The parts read so far; -1 = not given. */
struct when {
	const char *text;
	int64_t now_us;
	int64_t day; /* since 1970 */
	int64_t of_day_us;
	bool yearless; /* the date named no year: it is the next such one */
	int month, mday;
};

static int no_instant(struct gpuq_err *err, const char *text)
{
	return gpuq_fail(
		err, GPUQ_EINVAL,
		"'%.64s' is not a time: expected 2026-12-01T09:00Z, 17:30, tomorrow, now+2h "
		"or @SECONDS",
		text);
}

static int no_such_date(struct gpuq_err *err, const char *text)
{
	return gpuq_fail(err, GPUQ_ERANGE, "'%.64s': there is no such date or time", text);
}

static bool date_exists(int64_t y, int m, int d)
{
	static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	const bool leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);

	return y >= YEAR_MIN && y <= YEAR_MAX && m >= 1 && m <= 12 && d >= 1 &&
	       d <= lengths[m - 1] + (leap && m == 2);
}

/* Exactly n digits at *p. */
static bool digits(const char **p, int n, int *out)
{
	int v = 0;

	for (int i = 0; i < n; i++) {
		if (!isdigit((unsigned char)(*p)[i]))
			return false;
		v = v * 10 + ((*p)[i] - '0');
	}
	*p += n;
	*out = v;
	return true;
}

static bool take(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

/* HH:MM[:SS[.fraction]]. Returns 1; 0 = no such form; GPUQ_ERANGE. */
static int read_clock(const char **p, int *hour, int64_t *of_day_us)
{
	int minute, second = 0;
	int64_t part = 0, scale = GPUQ_US_PER_S;

	if (isdigit((unsigned char)(*p)[0]) && (*p)[1] == ':') {
		*hour = *(*p)++ - '0'; /* "9:30" */
	} else if (!digits(p, 2, hour)) {
		return 0;
	}
	if (!take(p, ':') || !digits(p, 2, &minute))
		return 0;
	if (take(p, ':')) {
		if (!digits(p, 2, &second))
			return 0;
		if (take(p, '.')) {
			if (!isdigit((unsigned char)**p))
				return 0;
			for (; isdigit((unsigned char)**p); (*p)++) {
				scale /= 10;
				part += (**p - '0') * scale; /* beyond a microsecond: nothing */
			}
		}
	}
	/* 60 is a leap second, and becomes the one after it. */
	if (*hour > 23 || minute > 59 || second > 60)
		return GPUQ_ERANGE;
	*of_day_us = (*hour * INT64_C(3600) + minute * 60 + second) * GPUQ_US_PER_S + part;
	return 1;
}

/* "Z", "+02:00" or nothing (UTC). */
static bool read_zone(const char **p, int64_t *offset_us)
{
	int sign, h, m;

	*offset_us = 0;
	if (take(p, 'Z') || take(p, 'z') || **p == '\0')
		return true;
	sign = take(p, '+') ? 1 : take(p, '-') ? -1 : 0;
	if (!sign || !digits(p, 2, &h))
		return false;
	take(p, ':');
	if (!digits(p, 2, &m) || h > 23 || m > 59)
		return false;
	*offset_us = sign * (h * INT64_C(3600) + m * 60) * GPUQ_US_PER_S;
	return true;
}

/* YYYY-MM-DD[THH:MM[:SS[.f]][zone]]. */
static int parse_iso(const char *text, int64_t *at_us, struct gpuq_err *err)
{
	const char *p = text;
	int64_t of_day = 0, offset = 0, at;
	int y, m, d, hour, rc;

	if (!digits(&p, 4, &y) || !take(&p, '-') || !digits(&p, 2, &m) || !take(&p, '-') ||
	    !digits(&p, 2, &d))
		return no_instant(err, text);
	if (*p) {
		if (!take(&p, 'T') && !take(&p, 't') && !take(&p, ' '))
			return no_instant(err, text);
		rc = read_clock(&p, &hour, &of_day);
		if (rc == 0 || (rc == 1 && (!read_zone(&p, &offset) || *p)))
			return no_instant(err, text);
		if (rc < 0)
			return no_such_date(err, text);
	}
	if (!date_exists(y, m, d))
		return no_such_date(err, text);
	at = days_from_civil(y, m, d) * DAY_S * GPUQ_US_PER_S + of_day - offset;
	if (at < 0)
		return no_such_date(err, text);
	*at_us = at;
	return 0;
}

/* "now", "now+2h", and Slurm's "now+60" (seconds), "now+3days". */
static int parse_now(const char *text, int64_t now_us, int64_t *at_us, struct gpuq_err *err)
{
	static const struct {
		const char *word;
		int64_t s;
	} words[] = { { "", 1 },        { "second", 1 },  { "minute", 60 },
		      { "hour", 3600 }, { "day", DAY_S }, { "week", 7 * DAY_S } };
	const char *p = text + strlen("now");
	int64_t delta;
	size_t n;

	if (*p == '\0') {
		*at_us = now_us;
		return 0;
	}
	if (!take(&p, '+'))
		return no_instant(err, text);
	n = strspn(p, "0123456789");
	for (size_t i = 0; n > 0 && n < 12 && i < sizeof(words) / sizeof(words[0]); i++) {
		const size_t len = strlen(words[i].word);

		if (strncasecmp(p + n, words[i].word, len) != 0 ||
		    strcasecmp(p + n + len, len && p[n + len] ? "s" : "") != 0)
			continue;
		if (__builtin_mul_overflow(strtoll(p, NULL, 10), words[i].s * GPUQ_US_PER_S,
					   &delta) ||
		    __builtin_add_overflow(now_us, delta, &delta))
			return no_such_date(err, text);
		*at_us = delta;
		return 0;
	}
	if (gpuq_duration_parse(p, &delta, NULL) < 0 || delta == GPUQ_UNLIMITED)
		return no_instant(err, text);
	if (__builtin_add_overflow(now_us, delta, &delta))
		return no_such_date(err, text);
	*at_us = delta;
	return 0;
}

/* "@1764579600" */
static int parse_unix(const char *text, int64_t *at_us, struct gpuq_err *err)
{
	const char *p = text + 1;

	if (!*p || p[strspn(p, "0123456789")])
		return no_instant(err, text);
	if (strlen(p) > 12 || strtoll(p, NULL, 10) >= days_from_civil(YEAR_MAX + 1, 1, 1) * DAY_S)
		return no_such_date(err, text);
	*at_us = strtoll(p, NULL, 10) * GPUQ_US_PER_S;
	return 0;
}

static bool set_day(struct when *w, int64_t day)
{
	if (w->day >= 0 || w->yearless)
		return false;
	w->day = day;
	return true;
}

static bool set_of_day(struct when *w, int64_t of_day_us)
{
	if (w->of_day_us >= 0)
		return false;
	w->of_day_us = of_day_us;
	return true;
}

/* MMDD[YY], MM/DD[/YY], MM.DD[.YY]. Returns 1, 0 = another form, GPUQ_ERANGE. */
static int read_slurm_date(struct when *w, const char *p)
{
	char sep = '\0';
	int m, d, y = -1;

	if (!digits(&p, 2, &m))
		return 0;
	if (*p == '/' || *p == '.')
		sep = *p++;
	if (!digits(&p, 2, &d))
		return 0;
	if (*p && ((sep && !take(&p, sep)) || !digits(&p, 2, &y) || *p))
		return 0;
	if (w->day >= 0 || w->yearless)
		return 0;
	if (y >= 0) {
		if (!date_exists(2000 + y, m, d))
			return GPUQ_ERANGE;
		w->day = days_from_civil(2000 + y, m, d);
		return 1;
	}
	if (!date_exists(2000, m, d)) /* a leap year: 29 February may be */
		return GPUQ_ERANGE;
	w->yearless = true;
	w->month = m;
	w->mday = d;
	return 1;
}

/* A time with "AM" or "PM" behind it; suffix may be empty. */
static int read_slurm_clock(struct when *w, const char *p)
{
	int64_t of_day;
	int hour, rc = read_clock(&p, &hour, &of_day);

	if (rc != 1)
		return rc;
	if (strcasecmp(p, "am") == 0 || strcasecmp(p, "pm") == 0) {
		if (hour < 1 || hour > 12)
			return GPUQ_ERANGE;
		if (hour == 12)
			of_day -= INT64_C(12) * 3600 * GPUQ_US_PER_S;
		if (tolower((unsigned char)*p) == 'p')
			of_day += INT64_C(12) * 3600 * GPUQ_US_PER_S;
	} else if (*p) {
		return 0;
	}
	return set_of_day(w, of_day);
}

static int read_token(struct when *w, const char *token)
{
	static const struct {
		const char *word;
		int day, hour; /* day from today, -1 = none; hour, -1 = none */
	} words[] = { { "today", 0, -1 },   { "tomorrow", 1, -1 },   { "midnight", -1, 0 },
		      { "noon", -1, 12 },   { "elevenses", -1, 11 }, { "fika", -1, 15 },
		      { "teatime", -1, 16 } };
	int rc;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(token, words[i].word) != 0)
			continue;
		if (words[i].day >= 0)
			return set_day(w, w->now_us / GPUQ_US_PER_S / DAY_S + words[i].day);
		return set_of_day(w, words[i].hour * INT64_C(3600) * GPUQ_US_PER_S);
	}
	rc = read_slurm_clock(w, token);
	return rc ? rc : read_slurm_date(w, token);
}

/* Days and times in any order, as sbatch --begin takes them. */
static int parse_words(const char *text, int64_t now_us, int64_t *at_us, struct gpuq_err *err)
{
	struct when w = { .text = text, .now_us = now_us, .day = -1, .of_day_us = -1 };
	const int64_t today = now_us / GPUQ_US_PER_S / DAY_S;
	char token[32];
	int y, m, d, rc;
	int64_t at;

	if (!*text)
		return no_instant(err, text);
	for (const char *p = text; *p;) {
		size_t n = strcspn(p, " ");

		if (n == 0 || n >= sizeof(token))
			return no_instant(err, text);
		memcpy(token, p, n);
		token[n] = '\0';
		rc = read_token(&w, token);
		if (rc < 0)
			return no_such_date(err, text);
		if (rc == 0)
			return no_instant(err, text);
		p += n;
		if (*p && !*++p)
			return no_instant(err, text);
	}
	if (w.day < 0 && !w.yearless) {
		at = today * DAY_S * GPUQ_US_PER_S + w.of_day_us;
		*at_us = at > now_us ? at : at + DAY_S * GPUQ_US_PER_S;
		return 0;
	}
	if (w.of_day_us < 0)
		w.of_day_us = 0;
	if (w.day >= 0) {
		*at_us = w.day * DAY_S * GPUQ_US_PER_S + w.of_day_us;
		return 0;
	}
	civil_from_days(today, &y, &m, &d);
	for (int years = 0; years <= 8; years++) {
		if (!date_exists(y + years, w.month, w.mday))
			continue;
		at = days_from_civil(y + years, w.month, w.mday) * DAY_S * GPUQ_US_PER_S +
		     w.of_day_us;
		if (at > now_us) {
			*at_us = at;
			return 0;
		}
	}
	return no_such_date(err, text);
}

int gpuq_instant_parse(const char *text, int64_t now_us, int64_t *at_us, struct gpuq_err *err)
{
	if (strncmp(text, "now", 3) == 0)
		return parse_now(text, now_us, at_us, err);
	if (text[0] == '@')
		return parse_unix(text, at_us, err);
	if (strlen(text) > 4 && text[4] == '-' && strspn(text, "0123456789") == 4)
		return parse_iso(text, at_us, err);
	return parse_words(text, now_us, at_us, err);
}

bool gpuq_instant_is_wall(const char *text)
{
	if (strncmp(text, "now", 3) == 0 || text[0] == '@')
		return false;
	/* Behind the day of 2026-12-01T09:00Z only a zone has these. */
	return strlen(text) <= 10 || text[4] != '-' || strpbrk(text + 10, "Zz+-") == NULL;
}

void gpuq_instant_print(int64_t at_us, char *out, size_t room)
{
	const int64_t last = days_from_civil(YEAR_MAX + 1, 1, 1) * DAY_S * GPUQ_US_PER_S - 1;
	int64_t s, ms;
	int y, m, d;

	/* An instant beyond the calendar prints as the end of the calendar, so that the width
	 * holds. */
	if (at_us < 0)
		at_us = 0;
	if (at_us > last)
		at_us = last;
	s = at_us / GPUQ_US_PER_S;
	ms = at_us / 1000 % 1000;
	civil_from_days(s / DAY_S, &y, &m, &d);
	snprintf(out, room, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", y, m, d, (int)(s % DAY_S / 3600),
		 (int)(s % 3600 / 60), (int)(s % 60), (int)ms);
}
