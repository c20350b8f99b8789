/* gpuq reservations: the calendar. */
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/cmd/site/calendar.h"
#include "gpuq/command.h"
#include "gpuq/list.h"
#include "gpuq/view.h"
#include "libgpuq/units.h"

static void cell_start(struct gpuq_buf *out, const struct row *r)
{
	view_time(out, gpuq_get(r->obj, "start_time"));
}

static void cell_end(struct gpuq_buf *out, const struct row *r)
{
	view_time(out, gpuq_get(r->obj, "end_time"));
}

static double rank_start(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "start_time"), 0);
}

static double rank_end(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "end_time"), 0);
}

static void cell_span(struct gpuq_buf *out, const struct row *r, const char *key)
{
	const int64_t s = gpuq_get_int(r->obj, key, 0);
	char text[32] = "-";

	if (s)
		gpuq_duration_print(s * GPUQ_US_PER_S, text, sizeof(text));
	gpuq_buf_adds(out, text);
}

static void cell_duration(struct gpuq_buf *out, const struct row *r)
{
	cell_span(out, r, "duration_s");
}

static void cell_every(struct gpuq_buf *out, const struct row *r)
{
	cell_span(out, r, "every_s");
}

static void cell_nodes(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *nodes = gpuq_get(r->obj, "nodes");
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const char **names = gpuq_arena_calloc(&a, nodes ? nodes->n + 1 : 1, sizeof(*names));
	size_t n = 0;

	for (uint32_t i = 0; names && nodes && nodes->type == GPUQ_LIST && i < nodes->n; i++)
		if (nodes->items[i]->type == GPUQ_STR)
			names[n++] = nodes->items[i]->s;
	if (n == 0)
		gpuq_buf_addc(out, '-');
	else
		view_fold(out, names, n);
	gpuq_arena_done(&a);
}

/* clang-format off */
static const struct column cols[] = {
	{ "NAME", 0, COL_CUT, "name", NULL, NULL, "the reservation" },
	{ "STATE", 0, COL_STATE, "state", NULL, NULL, "planned, active, late (external nodes are not all there) or over" },
	{ "START", 0, 0, NULL, cell_start, rank_start, "start; for a recurring one, the current or next start" },
	{ "END", 0, 0, NULL, cell_end, rank_end, "end" },
	{ "DURATION", 0, COL_RIGHT, NULL, cell_duration, NULL, "duration" },
	{ "EVERY", 0, COL_RIGHT, NULL, cell_every, NULL, "how often it comes again; - for once" },
	{ "GPUS", 0, COL_RIGHT, "gpus", NULL, NULL, "reserved devices" },
	{ "FLAVOR", 0, 0, "flavor", NULL, NULL, "flavor of the devices" },
	{ "POOL", 0, 0, "pool", NULL, NULL, "pool of the devices" },
	{ "NODES", 0, COL_CUT, NULL, cell_nodes, NULL, "reserved nodes" },
	{ "QUEUE", 0, COL_CUT, "queue", NULL, NULL, "queue whose jobs may use it" },
	{ "USERS", 0, COL_CUT, "users", NULL, NULL, "users whose jobs may use it" },
	{ "TIMEZONE", 0, COL_CUT, "timezone", NULL, NULL, "time zone whose wall clock it keeps" },
	{ "FLAGS", 0, COL_CUT, "flags", NULL, NULL, "maintenance, daily, weekly, release-unused" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};
/* clang-format on */

static const struct out_def reservation_list = {
	.cols = cols,
	.usual = "NAME,STATE,START,DURATION,GPUS,NODES,QUEUE,USERS,FLAGS,EVERY",
	.spare = "USERS,QUEUE,FLAGS,EVERY",
	.sort = "START",
};

/* A number of days is one of the calendar. */
static bool wants_calendar(const struct cli *c)
{
	return opt_given(&c->args, OPT_CALENDAR) || opt_given(&c->args, OPT_DAYS);
}

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	(void)err;
	list_names(c, OPT_NAMES, params);
	if (wants_calendar(c))
		gpuq_put(&c->arena, params, "days", gpuq_int(&c->arena, calendar_days(c)));
	return 0;
}

static bool keep(const struct cli *c, const struct gpuq_val *obj)
{
	return opt_given(&c->args, OPT_ALL) || c->args.n_rest > 0 ||
	       strcmp(gpuq_get_str(obj, "state", ""), "over") != 0;
}

int cmd_reservations(struct cli *c)
{
	const int days = calendar_days(c);

	if (days < 0)
		return EXIT_USAGE;
	if (wants_calendar(c) && !opt_given(&c->args, OPT_JSON))
		return calendar_print(c, days);
	return list_run(c, "reservation.list", &reservation_list, NULL, fill, keep);
}
