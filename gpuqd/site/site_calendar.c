/* Reservations: how a site file writes them, and when they are. */
#include <string.h>

#include "gpuqd/site/site.h"
#include "gpuqd/util/amount.h"
#include "libgpuq/units.h"

#define DAY_US (86400 * GPUQ_US_PER_S)
#define SITE_DAYS_MAX 366
#define RELEASE_US (15 * 60 * GPUQ_US_PER_S)
#define GRACE_US (2 * 60 * GPUQ_US_PER_S)
#define GRACE_LEAST_US (30 * GPUQ_US_PER_S)
#define EXTERNAL_DAYS_MAX 90

const char *const site_reservation_flags[] = { "maintenance", "daily",          "weekly",
					       "recurring",   "release-unused", NULL };

const char *const site_at_ends[] = { "evict", "keep", NULL };

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

int64_t site_reservation_clears(const struct site_reservation *r)
{
	return amount_less(amount_sum(r->start_us, r->duration_us), r->grace_us);
}

struct recur site_reservation_when(const struct site_reservation *r)
{
	return (struct recur){ .start_us = r->start_us,
			       .duration_us = r->duration_us,
			       .every_us = site_reservation_every_us(r),
			       .until_us = r->until_us,
			       .zone = r->timezone.name ? &r->timezone.zone : NULL,
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

/* ---- a time zone: Europe/Berlin, {name: Europe/Berlin, rule: "CET-1CEST,..."} ---- */

static int read_zone(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	const char *name = v->type == GPUQ_STR ? v->s : gpuq_get_str(v, "name", "");
	const char *rule = v->type == GPUQ_STR ? v->s : gpuq_get_str(v, "rule", name);
	struct site_zone *z = out;

	memset(z, 0, sizeof(*z));
	if (strcmp(name, "UTC") == 0)
		return 0;
	if (!*name || !zone_read(rule, &z->zone))
		return gpuq_reader_fail(
			r, v, GPUQ_EINVAL,
			"expected a time zone that is known here and changes its clock by the same "
			"rule each year, such as Europe/Berlin, or a rule such as "
			"CET-1CEST,M3.5.0,M10.5.0/3");
	z->name = gpuq_arena_strdup(r->arena, name);
	z->rule = gpuq_arena_strdup(r->arena, rule);
	return z->name && z->rule ? 0 : gpuq_no_memory(r->err);
}

static struct gpuq_val *write_zone(struct gpuq_arena *mem, const void *in)
{
	const struct site_zone *z = in;
	struct gpuq_val *v;

	if (!z->name)
		return NULL;
	if (strcmp(z->name, z->rule) == 0)
		return gpuq_str(mem, z->name);
	v = gpuq_map(mem);
	gpuq_put(mem, v, "name", gpuq_str(mem, z->name));
	gpuq_put(mem, v, "rule", gpuq_str(mem, z->rule));
	return v;
}

static const struct gpuq_custom zone_custom = { read_zone, write_zone };

/* Read an instant anew that was written as a clock of the zone shows it. */
static int read_wall(struct gpuq_reader *r, const struct gpuq_val *v, const struct zone *z,
		     int64_t *us)
{
	int64_t wall;
	int rc;

	if (!v || v->type != GPUQ_STR || !gpuq_instant_is_wall(v->s))
		return 0;
	rc = gpuq_instant_parse(v->s, zone_wall(z, r->now_us), &wall, r->err);
	if (rc == 0)
		*us = zone_instant(z, wall);
	return rc;
}

/* ---- a user's right to reserve: true, or {gpu_hours: 100, ahead: 14d} ---- */

#define R(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct site_reserve, member_),  \
		__VA_ARGS__                                                                        \
	}

static const struct gpuq_field reserve_fields[] = {
	R("gpu_hours", GPUQ_K_LIMIT, gpu_hours, .max = 1000000000,
	  .doc = "maximum of all reservations of the user that are not over"),
	R("ahead", GPUQ_K_DURATION, ahead_us, .doc = "maximum time until the start"),
	{ .key = NULL },
};

static void reserve_defaults(void *obj)
{
	*(struct site_reserve *)obj = (struct site_reserve){
		.may = true, .gpu_hours = 100, .ahead_us = 14 * 86400 * GPUQ_US_PER_S
	};
}

static const struct gpuq_schema reserve_schema = { .name = "reserve",
						   .size = sizeof(struct site_reserve),
						   .fields = reserve_fields,
						   .defaults = reserve_defaults };

/* Read true, false or the limits. */
static int read_reserve(struct gpuq_reader *r, const struct gpuq_val *v, void *out)
{
	if (v->type == GPUQ_MAP)
		return gpuq_schema_read(r, &reserve_schema, v, out);
	if (v->type != GPUQ_BOOL)
		return gpuq_reader_fail(r, v, GPUQ_EINVAL,
					"expected true, false or {gpu_hours: 100, ahead: 14d}");
	reserve_defaults(out);
	((struct site_reserve *)out)->may = v->b;
	return 0;
}

static struct gpuq_val *write_reserve(struct gpuq_arena *mem, const void *in)
{
	const struct site_reserve *x = in;
	char text[32];
	struct gpuq_val *v;

	if (!x->may)
		return NULL;
	v = gpuq_map(mem);
	gpuq_duration_print(x->ahead_us, text, sizeof(text));
	gpuq_put(mem, v, "gpu_hours",
		 x->gpu_hours == GPUQ_UNLIMITED ? gpuq_str(mem, "unlimited")
						: gpuq_int(mem, x->gpu_hours));
	gpuq_put(mem, v, "ahead", gpuq_str(mem, text));
	return v;
}

const struct gpuq_custom site_reserve_custom = { read_reserve, write_reserve };

/* ---- a reservation in a site file ---- */

/* Check a window of a cloud. It needs a pool, a number of nodes and an owner, and 1 to 90 days as
 * clouds lend them; it does not repeat. */
static int check_external(struct gpuq_reader *r, const struct gpuq_val *v,
			  const struct site_reservation *x)
{
	if (!x->external && x->count)
		return gpuq_reader_fail_key(
			r, v, "count", "expected external: true beside it; else gpus or nodes");
	if (!x->external && x->grace_us)
		return gpuq_reader_fail_key(r, v, "grace", "expected external: true beside it");
	if (!x->external)
		return 0;
	if (x->duration_us < DAY_US || x->duration_us > EXTERNAL_DAYS_MAX * DAY_US)
		return gpuq_reader_fail_key(r, v, "duration",
					    "expected 1 to 90 days: the window is external");
	if (!x->pool)
		return gpuq_reader_fail_key(r, v, "pool",
					    "expected the pool that the external nodes join");
	if (x->count < 1)
		return gpuq_reader_fail_key(r, v, "count", "expected the number of external nodes");
	if (x->gpus_milli || x->nodes.n)
		return gpuq_reader_fail_key(
			r, v, x->gpus_milli ? "gpus" : "nodes",
			"expected a pool and a count alone: the window is external");
	if (!x->queue && x->users.n == 0)
		return gpuq_reader_fail_key(r, v, "queue",
					    "expected a queue or users, whose jobs may use it");
	if (site_reservation_every_us(x))
		return gpuq_reader_fail_key(r, v, x->every_us ? "every" : "flags",
					    "expected no repetition: the window is external");
	if (x->grace_us && (x->grace_us < GRACE_LEAST_US || x->grace_us > x->duration_us / 2))
		return gpuq_reader_fail_key(r, v, "grace", "expected 30 s to half of the duration");
	return 0;
}

/* Check the key at_end: jobs of others end before a maintenance, and a cloud takes its nodes away. */
static int check_at_end(struct gpuq_reader *r, const struct gpuq_val *v,
			const struct site_reservation *x)
{
	if (x->at_end != SITE_AT_END_KEEP)
		return 0;
	if (x->external)
		return gpuq_reader_fail_key(r, v, "at_end",
					    "expected evict: the nodes are external");
	if (site_reservation_has(x, "maintenance") || (!x->queue && x->users.n == 0))
		return gpuq_reader_fail_key(
			r, v, "at_end", "expected a queue or users: no job runs in a maintenance");
	return 0;
}

/* Remove flags of a list. */
static void drop_flags(struct gpuq_strlist *flags, const char *const *names)
{
	size_t n = 0;

	for (size_t i = 0; i < flags->n; i++) {
		const char *const *name = names;

		while (*name && strcmp(*name, flags->items[i]) != 0)
			name++;
		if (!*name)
			flags->items[n++] = flags->items[i];
	}
	flags->n = n;
}

/* Leave out of a stored reservation what had no effect and is refused now (site_names.c). */
static void settle_stored(struct site_reservation *x)
{
	static const char *const repeats[] = { "daily", "weekly", "recurring", NULL };
	const bool flagged = site_reservation_has(x, "daily") ||
			     site_reservation_has(x, "weekly") ||
			     site_reservation_has(x, "recurring");

	if (x->release_after_us > x->duration_us)
		x->release_after_us = x->duration_us;
	if (site_reservation_has(x, "daily"))
		drop_flags(&x->flags, repeats + 1);
	if (!flagged || x->every_us > 0 || site_reservation_every_us(x) > 0)
		return;
	drop_flags(&x->flags, repeats);
	x->until_us = 0;
	x->except.n = 0;
}

/* Check across keys, and read instants anew that are by the clock of its zone. */
static int reservation_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	struct site_reservation *x = obj;
	int rc;

	if (r->stored)
		settle_stored(x);
	rc = check_external(r, v, x);
	if (rc == 0)
		rc = check_at_end(r, v, x);
	if (x->external && x->grace_us == 0)
		x->grace_us = GRACE_US;
	if (rc < 0 || !x->timezone.name)
		return rc;
	rc = read_wall(r, gpuq_get(v, "start"), &x->timezone.zone, &x->start_us);
	return rc < 0 ? rc : read_wall(r, gpuq_get(v, "until"), &x->timezone.zone, &x->until_us);
}

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
	  .doc = "end of the repetition: no occurrence begins then or later"),
	F("except", GPUQ_K_CUSTOM, except, .custom = &site_days_custom, .form = "dates",
	  .doc = "days on which no occurrence begins, such as [2026-12-24]"),
	F("timezone", GPUQ_K_CUSTOM, timezone, .custom = &zone_custom, .form = "name",
	  .doc = "time zone, such as Europe/Berlin, for except and for start and until without a "
		 "zone of their own; periods of whole days follow its wall clock; default: UTC"),
	F("release_after", GPUQ_K_DURATION, release_after_us,
	  .doc = "time after the start at which unused devices are released; 15 minutes with the "
		 "flag "
		 "release-unused"),
	F("at_end", GPUQ_K_ENUM, at_end, .names = site_at_ends,
	  .doc = "fate of jobs that still run in it when it ends: evict (they are "
		 "signalled their grace period before, and requeued) or keep (they keep running)"),
	F("gpus", GPUQ_K_MILLI, gpus_milli, .doc = "number of devices, on any nodes"),
	F("nodes", GPUQ_K_STRLIST, nodes, .doc = "whole nodes"),
	F("flavor", GPUQ_K_NAME, flavor, .doc = "flavor of the devices"),
	F("pool", GPUQ_K_NAME, pool, .doc = "pool of the devices"),
	F("external", GPUQ_K_BOOL, external,
	  .doc = "whether a cloud provides the nodes, for 1 to 90 days: they join the pool, and "
		 "jobs on them end before they are taken away"),
	F("count", GPUQ_K_INT, count, .max = 100000, .doc = "external: number of nodes"),
	F("grace", GPUQ_K_DURATION, grace_us,
	  .doc = "external: time before the end at which jobs there are signalled; default: 2m"),
	F("queue", GPUQ_K_NAME, queue, .doc = "queue whose jobs may use it"),
	F("users", GPUQ_K_STRLIST, users, .doc = "users whose jobs may use it"),
	F("flags", GPUQ_K_STRLIST, flags,
	  .doc = "flags: maintenance (no job may use it), daily, weekly or recurring (repeats each "
		 "day or each seven days), release-unused"),
	{ .key = NULL },
};

const struct gpuq_schema site_reservation_schema = { .name = "reservation",
						     .size = sizeof(struct site_reservation),
						     .fields = reservation_fields,
						     .check = reservation_check };
