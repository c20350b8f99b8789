#include "gpuq/cmd/site/calendar.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpuq/list.h"
#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/buf.h"
#include "libgpuq/client.h"
#include "libgpuq/units.h"

/* A row is a name and a cell for each day; what has no room beside one another comes in blocks
 * below one another. A cell is the number of devices, marked where it is not all of the day. */
#define WIDTH 80
#define NAME_WIDE 20
#define CELL_LEAST 4 /* " Mon", " ~16" */

struct picture {
	struct cli *c;
	struct gpuq_val *reservations; /* with occurrences */
	struct gpuq_val *pools; /* name: devices of its nodes */
	int64_t begins_us[CALENDAR_DAYS_MAX + 1]; /* of the days, in local time */
	int days, cell; /* cell: its columns */
};

int calendar_days(const struct cli *c)
{
	const char *text = c->args.val[OPT_DAYS];
	char *end;
	long n = CALENDAR_DAYS;

	if (text)
		n = strtol(text, &end, 10);
	if (text && (end == text || *end || n < 1 || n > CALENDAR_DAYS_MAX)) {
		cli_usage(c, "--days: expected a number from 1 to %d", CALENDAR_DAYS_MAX);
		return -1;
	}
	return (int)n;
}

/* A pool with reservations is drawn even while it has no node. */
static int on_reservation(void *arg, const struct gpuq_val *item)
{
	struct picture *p = arg;
	struct gpuq_arena *a = &p->c->arena;
	const struct gpuq_val *pools = item ? gpuq_get(item, "pools") : NULL;

	if (!item)
		return 0;
	gpuq_add(a, p->reservations, gpuq_val_copy(a, item));
	for (uint32_t i = 0; pools && pools->type == GPUQ_MAP && i < pools->n; i++)
		if (*pools->pairs[i].key)
			gpuq_set(a, p->pools, gpuq_arena_strdup(a, pools->pairs[i].key),
				 gpuq_int(a, 0));
	return 0;
}

static int on_node(void *arg, const struct gpuq_val *item)
{
	struct picture *p = arg;
	struct gpuq_arena *a = &p->c->arena;
	const char *pool = item ? gpuq_get_str(item, "pool", "") : "";

	if (*pool)
		gpuq_set(a, p->pools, gpuq_arena_strdup(a, pool),
			 gpuq_int(a,
				  gpuq_get_int(p->pools, pool, 0) + gpuq_get_int(item, "gpus", 0)));
	return 0;
}

/* Midnights of the local time zone: a day may have 23 or 25 hours. */
static void set_days(struct picture *p)
{
	const time_t now = (time_t)(cli_now_us() / GPUQ_US_PER_S);
	struct tm today;

	localtime_r(&now, &today);
	for (int i = 0; i <= p->days; i++) {
		struct tm day = { .tm_year = today.tm_year,
				  .tm_mon = today.tm_mon,
				  .tm_mday = today.tm_mday + i,
				  .tm_isdst = -1 };

		p->begins_us[i] = (int64_t)mktime(&day) * GPUQ_US_PER_S;
	}
}

/* Append the head: month, where one begins, weekday and day. */
static void put_head(struct gpuq_buf *out, const struct picture *p, int from, int to)
{
	for (int row = 0; row < 3; row++) {
		gpuq_buf_printf(out, "%*s", NAME_WIDE, "");
		for (int i = from; i < to; i++) {
			const time_t begin = (time_t)(p->begins_us[i] / GPUQ_US_PER_S);
			char text[32] = "";
			struct tm day;

			localtime_r(&begin, &day);
			if (row == 0 && (i == from || day.tm_mday == 1))
				strftime(text, sizeof(text), "%b", &day);
			else if (row == 1)
				strftime(text, sizeof(text), "%a", &day);
			else if (row == 2)
				snprintf(text, sizeof(text), "%d", day.tm_mday);
			gpuq_buf_printf(out, "%*s", p->cell, text);
		}
		while (out->len > 0 && out->data[out->len - 1] == ' ')
			out->len--;
		gpuq_buf_addc(out, '\n');
	}
}

/* Append the cell of a day: the amount, if it is reserved at any time of that day. */
static void put_cell(struct gpuq_buf *out, const struct picture *p, const struct gpuq_val *times,
		     const char *amount, int day)
{
	const int64_t from = p->begins_us[day], to = p->begins_us[day + 1];
	int64_t covered = 0;
	char text[32];

	for (uint32_t i = 0; times && i < times->n; i++) {
		int64_t start = gpuq_get_int(times->items[i], "start_time", 0);
		int64_t end = gpuq_get_int(times->items[i], "end_time", GPUQ_UNLIMITED);

		start = start > from ? start : from;
		end = end < to ? end : to;
		covered += end > start ? end - start : 0;
	}
	snprintf(text, sizeof(text), "%s%s", covered > 0 && covered < to - from ? "~" : "",
		 covered > 0 ? amount : ".");
	gpuq_buf_printf(out, "%*s", p->cell, text);
}

static void put_name(struct gpuq_buf *out, const char *indent, const char *name, size_t wide)
{
	struct gpuq_buf clean = GPUQ_BUF_INIT;

	gpuq_buf_adds(out, indent);
	term_clean_str(&clean, name);
	term_fit(out, gpuq_buf_str(&clean), wide - strlen(indent), false);
	gpuq_buf_done(&clean);
}

static bool is_maintenance(const struct gpuq_val *r)
{
	const struct gpuq_val *flags = gpuq_get(r, "flags"), *users = gpuq_get(r, "users");

	for (uint32_t i = 0; flags && flags->type == GPUQ_LIST && i < flags->n; i++)
		if (strcmp(flags->items[i]->s, "maintenance") == 0)
			return true;
	return !*gpuq_get_str(r, "queue", "") && (!users || users->n == 0);
}

/* True if none of its nodes is there. */
static bool is_unknown(const struct gpuq_val *devices)
{
	return devices->type == GPUQ_INT && devices->i == 0;
}

static void put_amount(struct gpuq_buf *out, const struct gpuq_val *r,
		       const struct gpuq_val *devices)
{
	if (is_maintenance(r))
		gpuq_buf_addc(out, 'm');
	if (is_unknown(devices))
		gpuq_buf_addc(out, '?');
	else
		view_cell(out, devices);
}

/* Columns of a cell: the widest amount with its mark, and a space. */
static int cell_of(const struct picture *p)
{
	int cell = CELL_LEAST;

	for (uint32_t i = 0; i < p->reservations->n; i++) {
		const struct gpuq_val *r = p->reservations->items[i], *pools = gpuq_get(r, "pools");

		for (uint32_t k = 0; pools && pools->type == GPUQ_MAP && k < pools->n; k++) {
			struct gpuq_buf amount = GPUQ_BUF_INIT;

			put_amount(&amount, r, pools->pairs[k].val);
			if ((int)amount.len + 2 > cell)
				cell = (int)amount.len + 2;
			gpuq_buf_done(&amount);
		}
	}
	return cell;
}

/* Append those of one pool, "" being any; true if there are some. */
static bool put_pool(struct gpuq_buf *out, const struct picture *p, const char *pool, int from,
		     int to)
{
	bool any = false;

	for (uint32_t i = 0; i < p->reservations->n; i++) {
		const struct gpuq_val *r = p->reservations->items[i];
		const struct gpuq_val *devices = gpuq_get(gpuq_get(r, "pools"), pool);
		struct gpuq_buf amount = GPUQ_BUF_INIT;

		if (!devices)
			continue;
		if (!any && *pool) {
			gpuq_buf_adds(out, "pool ");
			put_name(out, "", pool, term_columns(pool));
			gpuq_buf_printf(out, ", %" PRId64 " GPUs\n",
					gpuq_get_int(p->pools, pool, 0));
		} else if (!any) {
			gpuq_buf_adds(out, "any pool\n");
		}
		any = true;
		put_amount(&amount, r, devices);
		put_name(out, "  ", gpuq_get_str(r, "name", ""), NAME_WIDE);
		for (int day = from; day < to; day++)
			put_cell(out, p, gpuq_get(r, "occurrences"), gpuq_buf_str(&amount), day);
		gpuq_buf_addc(out, '\n');
		gpuq_buf_done(&amount);
	}
	return any;
}

static void put_block(struct gpuq_buf *out, const struct picture *p, int from, int to)
{
	put_head(out, p, from, to);
	for (uint32_t i = 0; i < p->pools->n; i++)
		put_pool(out, p, p->pools->pairs[i].key, from, to);
	put_pool(out, p, "", from, to);
}

static bool some_is_unknown(const struct picture *p)
{
	for (uint32_t i = 0; i < p->reservations->n; i++) {
		const struct gpuq_val *pools = gpuq_get(p->reservations->items[i], "pools");

		for (uint32_t k = 0; pools && pools->type == GPUQ_MAP && k < pools->n; k++)
			if (is_unknown(pools->pairs[k].val))
				return true;
	}
	return false;
}

static int draw(struct picture *p)
{
	const int width = term_width(stdout) ? term_width(stdout) : WIDTH;
	struct gpuq_buf out = GPUQ_BUF_INIT;
	int fit, n;

	if (p->reservations->n == 0) {
		puts("No reservations.");
		return EXIT_DONE;
	}
	p->cell = cell_of(p);
	fit = (width - NAME_WIDE) / p->cell;
	fit = fit < 1 ? 1 : fit;
	/* Blocks of whole weeks where there is room for a week. */
	n = fit >= p->days ? p->days : fit > 7 ? fit / 7 * 7 : fit;
	for (int from = 0; from < p->days; from += n) {
		if (from > 0)
			gpuq_buf_addc(&out, '\n');
		put_block(&out, p, from, from + n < p->days ? from + n : p->days);
	}
	gpuq_buf_printf(&out, "GPUs reserved on each day; ~ part of the day; m maintenance%s\n",
			some_is_unknown(p) ? "; ? not known before its nodes are there" : "");
	fputs(gpuq_buf_str(&out), stdout);
	gpuq_buf_done(&out);
	return EXIT_DONE;
}

int calendar_print(struct cli *c, int days)
{
	struct gpuq_arena *a = &c->arena;
	struct picture p = {
		.c = c, .reservations = gpuq_list(a), .pools = gpuq_map(a), .days = days
	};
	struct gpuq_val *params = gpuq_map(a), *reply;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = cli_connect(c, &err);

	set_days(&p);
	gpuq_put(a, params, "days", gpuq_int(a, days));
	list_names(c, OPT_NAMES, params);
	if (rc == 0)
		rc = gpuq_stream(c->conn, "reservation.list", params, 0, on_reservation, &p, a,
				 &reply, &err);
	if (rc == 0)
		rc = gpuq_stream(c->conn, "node.list", NULL, 0, on_node, &p, a, &reply, &err);
	return rc < 0 ? cli_fail(&err, false) : draw(&p);
}
