#include "gpuqd/flow/copies/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuqd/util/civil.h"
#include "libgpuq/units.h"

#define STAMP_LEN (sizeof(struct stamp) - 1)
#define HOUR_LEN 11 /* of a stamp, up to its hour */
#define DAY_LEN 8
#define SEGMENT_END ".seg"
#define AHEAD_US (60 * GPUQ_US_PER_S) /* a clock that is slewed is no step */

void stamp_write(int64_t us, struct stamp *out)
{
	const int64_t day = civil_day(us);
	const struct civil_date d = civil_date(day);
	const unsigned s = (unsigned)((us - day * CIVIL_DAY_US) / GPUQ_US_PER_S);

	snprintf(out->text, sizeof(out->text), "%04u%02u%02uT%02u%02u%02uZ",
		 (unsigned)d.year % 10000, (unsigned)d.month % 100, (unsigned)d.day % 100,
		 s / 3600 % 100, s / 60 % 60, s % 60);
}

static int digits(const char *s, size_t n)
{
	int v = 0;

	for (size_t i = 0; i < n; i++)
		v = v * 10 + (s[i] - '0');
	return v;
}

int64_t stamp_us(const struct stamp *s)
{
	const char *t = s->text;
	const struct civil_date d = { digits(t, 4), digits(t + 4, 2), digits(t + 6, 2) };

	return civil_from_date(d) * CIVIL_DAY_US +
	       (digits(t + 9, 2) * 3600 + digits(t + 11, 2) * 60 + digits(t + 13, 2)) *
		       GPUQ_US_PER_S;
}

static bool stamp_read(const char *s, struct stamp *out)
{
	for (size_t i = 0; i < STAMP_LEN; i++)
		if (i == 8 ? s[i] != 'T' : i == 15 ? s[i] != 'Z' : s[i] < '0' || s[i] > '9')
			return false;
	memcpy(out->text, s, STAMP_LEN);
	out->text[STAMP_LEN] = '\0';
	return true;
}

void names_prefix(const char *cluster_id, char out[NAMES_PREFIX_BYTES])
{
	snprintf(out, NAMES_PREFIX_BYTES, "gpuq-%s-", cluster_id);
}

void names_copy(const char *prefix, const struct stamp *s, char out[NAMES_BYTES])
{
	snprintf(out, NAMES_BYTES, "%s%s" NAMES_COPY, prefix, s->text);
}

bool names_read_copy(const char *prefix, const char *name, struct stamp *out)
{
	const size_t n = strlen(prefix);

	return strncmp(name, prefix, n) == 0 &&
	       strlen(name + n) == STAMP_LEN + strlen(NAMES_COPY) &&
	       strcmp(name + n + STAMP_LEN, NAMES_COPY) == 0 && stamp_read(name + n, out);
}

void names_segment(const char *prefix, const struct segment_name *s, char out[NAMES_BYTES])
{
	snprintf(out, NAMES_BYTES, "%s%s-%s-%010" PRIu32 "-%020" PRIu64 "-%020" PRIu64 SEGMENT_END,
		 prefix, s->stamp.text, s->store, s->span.epoch, s->span.first, s->span.last);
}

bool names_read_segment(const char *prefix, const char *name, struct segment_name *out)
{
	const size_t n = strlen(prefix);
	char again[NAMES_BYTES];
	struct segment_name s;

	if (strncmp(name, prefix, n) != 0 || strlen(name) < n + STAMP_LEN ||
	    !stamp_read(name + n, &s.stamp))
		return false;
	if (sscanf(name + n + STAMP_LEN, "-%8[0-9a-f]-%10" SCNu32 "-%20" SCNu64 "-%20" SCNu64,
		   s.store, &s.span.epoch, &s.span.first, &s.span.last) != 4)
		return false;
	names_segment(prefix, &s, again);
	if (strcmp(again, name) != 0)
		return false;
	*out = s;
	return true;
}

/* ---- which stay ---- */

/* Counts the hours, or the days, of which a copy was kept, from the newest on. */
struct count {
	size_t len;
	int64_t n, most;
};

static bool is_last(const struct names_copy *all, size_t i, size_t len)
{
	for (size_t k = i; k-- > 0 && strncmp(all[k].stamp.text, all[i].stamp.text, len) == 0;)
		if (strcmp(all[k].store, all[i].store) == 0)
			return false;
	return true;
}

static bool is_kept(struct count *c, const struct names_copy *all, size_t i)
{
	return is_last(all, i, c->len) && c->n++ < c->most;
}

void names_keep(const struct names_copy *all, size_t n, int64_t now_us, size_t ours,
		const struct backup_keeps *keep, bool *stays)
{
	struct count hours = { .len = HOUR_LEN, .most = keep->hourly };
	struct count days = { .len = DAY_LEN, .most = keep->daily };

	for (size_t i = 0; i < n; i++) {
		bool hour, day;

		stays[i] = i == ours || stamp_us(&all[i].stamp) > now_us + AHEAD_US;
		if (stays[i] && i != ours)
			continue;
		hour = is_kept(&hours, all, i);
		day = is_kept(&days, all, i);
		stays[i] |= hour || day;
	}
}
