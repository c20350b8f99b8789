#include "gpuqd/util/zone.h"

#include <string.h>

#include "gpuqd/util/civil.h"
#include "libgpuq/units.h"

/* A file of a zone has a table of past and coming changes, and in its last line the rule for the time
 * after the table. Tables reach to 2037, and where a clock is changed by the same rule each year
 * they say what the rule says. So the rule is enough for a calendar, which is about the future, and
 * where the table says something else the zone is refused: its clock follows the moon, or a
 * government that decides each year. */

#define DAY_S INT64_C(86400)
#define TIMES_MAX 4096
#define FAR_S (INT64_C(1) << 40) /* no date that anything is planned for */
#define OFFSET_MAX_S (26 * 3600) /* of RFC 9636, and more than any zone has had */
#define HEAD_BYTES 44

/* ---- the rule: CET-1CEST,M3.5.0,M10.5.0/3 ---- */

/* Read decimal digits, at least one; false: none, or more than `most`. */
static bool read_number(const char **p, int most, int *out)
{
	int v = 0;

	if (**p < '0' || **p > '9')
		return false;
	while (**p >= '0' && **p <= '9') {
		v = v * 10 + (*(*p)++ - '0');
		if (v > most)
			return false;
	}
	*out = v;
	return true;
}

/* Read [+-]hh[:mm[:ss]], in seconds. */
static bool read_offset(const char **p, int hours_most, int64_t *out)
{
	const int64_t sign = **p == '-' ? -1 : 1;
	int h, m = 0, s = 0;

	*p += **p == '-' || **p == '+';
	if (!read_number(p, hours_most, &h))
		return false;
	if (**p == ':') {
		(*p)++;
		if (!read_number(p, 59, &m))
			return false;
		if (**p == ':') {
			(*p)++;
			if (!read_number(p, 59, &s))
				return false;
		}
	}
	*out = sign * (h * INT64_C(3600) + m * 60 + s);
	return true;
}

/* Pass over a name: three letters or more, or any text in angle brackets, such as <+03>. */
static bool skip_name(const char **p)
{
	const char *begin = *p;

	if (*begin == '<') {
		const char *end = strchr(begin, '>');

		*p = end ? end + 1 : begin;
		return end != NULL;
	}
	while ((**p >= 'a' && **p <= 'z') || (**p >= 'A' && **p <= 'Z'))
		(*p)++;
	return *p - begin >= 3;
}

/* Read when a clock is changed: M3.5.0/2 (the last Sunday of March, at two), J60 (the 60th day, the
 * 29th of February never counted), 59 (the same from zero, counted). */
static bool read_change(const char **p, struct zone_change *c)
{
	c->at_s = 2 * 3600;
	if (**p == 'M') {
		(*p)++;
		c->kind = ZONE_WEEKDAY;
		if (!read_number(p, 12, &c->month) || c->month < 1 || *(*p)++ != '.' ||
		    !read_number(p, 5, &c->week) || c->week < 1 || *(*p)++ != '.' ||
		    !read_number(p, 6, &c->weekday))
			return false;
	} else if (**p == 'J') {
		(*p)++;
		c->kind = ZONE_DAY_NOT_LEAP;
		if (!read_number(p, 365, &c->day) || c->day < 1)
			return false;
	} else {
		c->kind = ZONE_DAY;
		if (!read_number(p, 365, &c->day))
			return false;
	}
	if (**p != '/')
		return true;
	(*p)++;
	return read_offset(p, 167, &c->at_s);
}

/* Read a rule. Offsets of POSIX count west of UTC, so that their sign is turned round. */
static bool read_rule(const char *text, struct zone *z)
{
	const char *p = text;
	int64_t west;

	*z = (struct zone){ 0 };
	if (!skip_name(&p) || !read_offset(&p, 24, &west))
		return false;
	z->standard_s = z->summer_s = -west;
	if (*p == '\0')
		return true;
	if (!skip_name(&p))
		return false;
	z->summer_s = z->standard_s + 3600;
	if (*p != ',') {
		if (!read_offset(&p, 24, &west))
			return false;
		z->summer_s = -west;
	}
	return *p++ == ',' && read_change(&p, &z->to_summer) && *p++ == ',' &&
	       read_change(&p, &z->to_standard) && *p == '\0';
}

static bool is_leap(int64_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Return the day, since 1970, on which the clock is changed in that year. */
static int64_t day_of_change(const struct zone_change *c, int64_t year)
{
	const int64_t first = civil_from_date((struct civil_date){ year, 1, 1 });
	const int64_t month = civil_from_date((struct civil_date){ year, c->month, 1 });
	int64_t next, day;

	switch (c->kind) {
	case ZONE_DAY:
		return first + c->day;
	case ZONE_DAY_NOT_LEAP:
		return first + c->day - 1 + (is_leap(year) && c->day >= 60);
	default:
		break;
	}
	/* 1970-01-01 was a Thursday. */
	day = month + ((c->weekday - (month + 4)) % 7 + 7) % 7 + 7 * (c->week - 1);
	next = c->month == 12 ? civil_from_date((struct civil_date){ year + 1, 1, 1 })
			      : civil_from_date((struct civil_date){ year, c->month + 1, 1 });
	return day < next ? day : day - 7;
}

/* Return whole seconds, rounded down. */
static int64_t floor_s(int64_t us)
{
	return us / GPUQ_US_PER_S - (us % GPUQ_US_PER_S < 0);
}

/* Return the offset by the rule. */
static int64_t rule_offset(const struct zone *z, int64_t t_s)
{
	const int64_t wall = t_s + z->standard_s;
	int64_t year, summer, standard;
	bool is_summer;

	if (z->to_summer.kind == ZONE_NEVER)
		return z->standard_s;
	year = civil_date(civil_day(wall * GPUQ_US_PER_S)).year;
	summer = day_of_change(&z->to_summer, year) * DAY_S + z->to_summer.at_s - z->standard_s;
	standard = day_of_change(&z->to_standard, year) * DAY_S + z->to_standard.at_s - z->summer_s;
	is_summer = summer < standard ? t_s >= summer && t_s < standard
				      : t_s >= summer || t_s < standard;
	return is_summer ? z->summer_s : z->standard_s;
}

/* ---- the table ---- */

struct head {
	uint32_t n_ut, n_std, n_leap, n_times, n_types, n_chars;
};

static uint32_t word(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Read the counts at the head of a part of a file; each has a bound, so that what follows can be
 * measured without overflow. */
static bool read_head(const unsigned char *p, const unsigned char *end, struct head *h)
{
	if (end - p < HEAD_BYTES || memcmp(p, "TZif", 4) != 0 || p[4] < '2')
		return false;
	*h = (struct head){ word(p + 20), word(p + 24), word(p + 28),
			    word(p + 32), word(p + 36), word(p + 40) };
	return h->n_times <= TIMES_MAX && h->n_types <= 256 && h->n_types > 0 &&
	       h->n_chars <= 4096 && h->n_leap <= 4096 && h->n_ut <= 256 && h->n_std <= 256;
}

/* Return the bytes that follow the head; wide: those of a time. */
static size_t body_bytes(const struct head *h, size_t wide)
{
	return h->n_times * (wide + 1) + h->n_types * 6 + h->n_chars + h->n_leap * (wide + 4) +
	       h->n_std + h->n_ut;
}

/* Read the offset of a type of local time; false: there is no such type, or no clock has it. */
static bool read_type(const unsigned char *types, const struct head *h, uint32_t type, int64_t *out)
{
	if (type >= h->n_types)
		return false;
	*out = (int32_t)word(types + 6 * type);
	return *out >= -OFFSET_MAX_S && *out <= OFFSET_MAX_S;
}

/* True if the clock does after t_s what the rule says, by the table. */
static bool is_yearly(const unsigned char *p, const struct head *h, const struct zone *z,
		      int64_t t_s)
{
	const unsigned char *type_of = p + 8 * (size_t)h->n_times, *types = type_of + h->n_times;
	int64_t offset_s = 0;

	for (uint32_t i = 0; i < h->n_times; i++) {
		const unsigned char *at = p + 8 * (size_t)i;
		const int64_t since_s = (int64_t)((uint64_t)word(at) << 32 | word(at + 4));

		if (!read_type(types, h, type_of[i], &offset_s))
			return false;
		if (since_s >= t_s && since_s < FAR_S && offset_s != rule_offset(z, since_s))
			return false;
	}
	return true;
}

/* Take the line behind the table. */
static bool read_footer(const unsigned char *p, const unsigned char *end, char out[ZONE_RULE_MAX])
{
	const unsigned char *stop = p < end && *p == '\n' ? memchr(p + 1, '\n', end - p - 1) : NULL;

	if (!stop || stop - p > ZONE_RULE_MAX)
		return false;
	memcpy(out, p + 1, stop - p - 1);
	out[stop - p - 1] = '\0';
	return true;
}

int zone_rule(const void *bytes, size_t n, int64_t now_us, char out[ZONE_RULE_MAX],
	      struct gpuq_err *err)
{
	static const char wrong[] = "not a file of a time zone (TZif of version 2 or later)";
	const unsigned char *p = bytes, *end = p + n;
	char rule[ZONE_RULE_MAX];
	struct zone z;
	struct head h;

	if (!read_head(p, end, &h) || (size_t)(end - p) < HEAD_BYTES + body_bytes(&h, 4))
		return gpuq_fail(err, GPUQ_EINVAL, wrong);
	p += HEAD_BYTES + body_bytes(&h, 4);
	if (!read_head(p, end, &h) || (size_t)(end - p) < HEAD_BYTES + body_bytes(&h, 8) ||
	    !read_footer(p + HEAD_BYTES + body_bytes(&h, 8), end, rule) || !read_rule(rule, &z))
		return gpuq_fail(err, GPUQ_EINVAL, wrong);
	if (!is_yearly(p + HEAD_BYTES, &h, &z, floor_s(now_us)))
		return gpuq_fail(err, GPUQ_ERANGE,
				 "its clock is not changed by the same rule each year");
	memcpy(out, rule, sizeof(rule));
	return 0;
}

bool zone_read(const char *rule, struct zone *out)
{
	struct zone z;

	if (strlen(rule) >= ZONE_RULE_MAX || !read_rule(rule, &z))
		return false;
	*out = z;
	return true;
}

/* ---- asking ---- */

static int64_t offset_us(const struct zone *z, int64_t us)
{
	return rule_offset(z, floor_s(us)) * GPUQ_US_PER_S;
}

/* True for what is no date: these stay as they are. */
static bool is_far(int64_t us)
{
	return us > GPUQ_UNLIMITED / 2 || us < -(GPUQ_UNLIMITED / 2);
}

int64_t zone_wall(const struct zone *z, int64_t us)
{
	return is_far(us) ? us : us + offset_us(z, us);
}

int64_t zone_instant(const struct zone *z, int64_t wall_us)
{
	/* The offsets a day before and after: those before and after a change in between. */
	const int64_t day_us = DAY_S * GPUQ_US_PER_S;
	int64_t before, after;

	if (is_far(wall_us))
		return wall_us;
	before = offset_us(z, wall_us - day_us);
	after = offset_us(z, wall_us + day_us);
	if (offset_us(z, wall_us - before) == before)
		return wall_us - before;
	if (offset_us(z, wall_us - after) == after)
		return wall_us - after;
	return wall_us - before;
}
