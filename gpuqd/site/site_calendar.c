/* Reservations: how a site file writes them, and when they are. */
#include <string.h>

#include "gpuqd/site/site.h"
#include "libgpuq/units.h"

#define DAY_US (86400 * GPUQ_US_PER_S)
#define SITE_DAYS_MAX 366
#define RELEASE_US (15 * 60 * GPUQ_US_PER_S)

const char *const site_reservation_flags[] = { "maintenance", "daily",          "weekly",
					       "recurring",   "release-unused", NULL };

bool site_reservation_has(const struct site_reservation *r, const char *flag)
{
	return gpuq_strlist_has(&r->flags, flag);
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

struct recur site_reservation_when(const struct site_reservation *r)
{
	return (struct recur){ .start_us = r->start_us,
			       .duration_us = r->duration_us,
			       .every_us = site_reservation_every_us(r),
			       .until_us = r->until_us,
			       .except_us = r->except.begins_us,
			       .n_except = r->except.n };
}

int64_t site_reservation_start(const struct site_reservation *r, int64_t now_us)
{
	struct recur when = site_reservation_when(r);
	const int64_t next = recur_at(&when, now_us);

	if (next != GPUQ_UNLIMITED)
		return next;
	/* All of it is over. The last began before its end, if that has come. */
	if (when.every_us > 0 && when.until_us > when.start_us)
		return when.start_us +
		       (when.until_us - 1 - when.start_us) / when.every_us * when.every_us;
	return when.start_us;
}

/* ---- days ---- */

/* Read a day, midnight UTC. */
static int read_day(struct gpuq_reader *r, const struct gpuq_val *v, int64_t *begin_us)
{
	static const char shape[] = "expected a day such as 2026-12-24";

	if (v->type != GPUQ_STR || v->n != 10 ||
	    gpuq_instant_parse(v->s, r->now_us, begin_us, NULL) < 0 || *begin_us % DAY_US != 0)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, shape);
	return 0;
}

/* Read the days that a recurring reservation leaves out. */
static int read_days(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	struct site_days *days = out;

	if (v->type != GPUQ_LIST)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL, "expected a list of days");
	if (v->n > SITE_DAYS_MAX)
		return gpuq_reader_fail(r, v, GPUQ_ELIMIT, "expected at most %d days",
					SITE_DAYS_MAX);
	days->begins_us = gpuq_arena_calloc(r->arena, v->n + 1, sizeof(*days->begins_us));
	if (!days->begins_us)
		return gpuq_no_memory(r->err);
	for (uint32_t i = 0; i < v->n; i++) {
		const size_t mark = gpuq_reader_enter_item(r, i);
		const int rc = read_day(r, v->items[i], &days->begins_us[i]);

		gpuq_reader_leave(r, mark);
		if (rc < 0)
			return rc;
	}
	days->n = v->n;
	return 0;
}

/* Print days without a time. */
static struct gpuq_val *write_days(struct gpuq_arena *mem, const void *in)
{
	const struct site_days *days = in;
	struct gpuq_val *v = gpuq_list(mem);

	for (size_t i = 0; i < days->n; i++) {
		char text[64];

		gpuq_instant_print(days->begins_us[i], text, sizeof(text));
		gpuq_add(mem, v, gpuq_strn(mem, text, 10));
	}
	return days->n ? v : NULL;
}

const struct gpuq_custom site_days_custom = { read_days, write_days };

/* ---- a reservation in a site file ---- */

#define F(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_),                                                    \
		.offset = offsetof(struct site_reservation, member_), __VA_ARGS__                  \
	}

static const struct gpuq_field reservation_fields[] = {
	F("name", GPUQ_K_NAME, name, .flags = GPUQ_F_REQUIRED | GPUQ_F_KEY,
	  .doc = "name of the reservation"),
	F("start", GPUQ_K_INSTANT, start_us, .flags = GPUQ_F_REQUIRED,
	  .doc = "start of the reservation"),
	F("duration", GPUQ_K_DURATION, duration_us, .flags = GPUQ_F_REQUIRED,
	  .doc = "duration of the reservation"),
	F("every", GPUQ_K_DURATION, every_us, .doc = "period of repetition"),
	F("until", GPUQ_K_INSTANT, until_us,
	  .doc = "end of the repetition: none begins then or later"),
	F("except", GPUQ_K_CUSTOM, except, .custom = &site_days_custom, .form = "dates",
	  .doc = "days (UTC) on which none begins, such as [2026-12-24]"),
	F("release_after", GPUQ_K_DURATION, release_after_us,
	  .doc = "time after the start when unused devices are released; 15 minutes with the flag "
		 "release-unused"),
	F("gpus", GPUQ_K_MILLI, gpus_milli, .doc = "number of devices, on any nodes"),
	F("nodes", GPUQ_K_STRLIST, nodes, .doc = "whole nodes"),
	F("flavor", GPUQ_K_NAME, flavor, .doc = "flavor of the devices"),
	F("pool", GPUQ_K_NAME, pool, .doc = "pool of the devices"),
	F("queue", GPUQ_K_NAME, queue, .doc = "queue whose jobs may use it"),
	F("users", GPUQ_K_STRLIST, users, .doc = "users whose jobs may use it"),
	F("flags", GPUQ_K_STRLIST, flags,
	  .doc = "flags: maintenance (no job may use it), daily, weekly or recurring (repeats each "
		 "day or each seven days), release-unused"),
	{ .key = NULL },
};

const struct gpuq_schema site_reservation_schema = { .name = "reservation",
						     .size = sizeof(struct site_reservation),
						     .fields = reservation_fields };
