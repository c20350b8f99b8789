/* gpuq report: use between two instants, by user, queue and flavor. */
#include <string.h>
#include <strings.h>

#include "gpuq/cli.h"
#include "gpuq/cols_job.h"
#include "gpuq/command.h"
#include "gpuq/filter.h"
#include "gpuq/list.h"
#include "gpuq/view.h"

static double seconds(const struct row *r, const char *key)
{
	return view_number(gpuq_get(r->obj, key), 0);
}

static double wasted(const struct row *r, const char *key)
{
	return view_number(gpuq_path(r->obj, "wasted_gpu_seconds", key, NULL), 0);
}

static void hours(struct gpuq_buf *out, double s)
{
	gpuq_buf_printf(out, "%.2f", s / 3600);
}

#define HOURS(name, from, key)                                                                     \
	static double name##_rank(const struct row *r)                                             \
	{                                                                                          \
		return from(r, key);                                                               \
	}                                                                                          \
	static void name##_text(struct gpuq_buf *out, const struct row *r)                         \
	{                                                                                          \
		hours(out, from(r, key));                                                          \
	}

HOURS(used, seconds, "gpu_seconds")
HOURS(refunded, seconds, "refunded_gpu_seconds")
HOURS(evicted, wasted, "evicted")
HOURS(starting, wasted, "starting")
HOURS(held, wasted, "held")
HOURS(stranded, wasted, "stranded")
HOURS(fragmented, wasted, "fragmented")

static double waste_rank(const struct row *r)
{
	return wasted(r, "evicted") + wasted(r, "starting") + wasted(r, "held") +
	       wasted(r, "stranded") + wasted(r, "fragmented");
}

static void waste_text(struct gpuq_buf *out, const struct row *r)
{
	hours(out, waste_rank(r));
}

static double share_rank(const struct row *r)
{
	return seconds(r, "share");
}

static void share_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_printf(out, "%.1f%%", 100 * seconds(r, "share"));
}

static double cost_rank(const struct row *r)
{
	return seconds(r, "cost");
}

static void cost_text(struct gpuq_buf *out, const struct row *r)
{
	view_money(out, r->obj);
}

/* "rdma/hca=12.50,nvidia.com/mig-1g.10gb=3.00" */
static void resources_text(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *map = gpuq_get(r->obj, "resource_seconds");

	for (size_t i = 0; map && map->type == GPUQ_MAP && i < map->n; i++) {
		gpuq_buf_printf(out, "%s%s=", i ? "," : "", map->pairs[i].key);
		hours(out, view_number(map->pairs[i].val, 0));
	}
	if (!map || map->type != GPUQ_MAP || map->n == 0)
		gpuq_buf_addc(out, '-');
}

/* ---- what its pods used ---- */

static double cpu_rank(const struct row *r)
{
	return (double)view_used(r->obj, "cpu_ms");
}

static void cpu_text(struct gpuq_buf *out, const struct row *r)
{
	if (cpu_rank(r) < 0)
		gpuq_buf_addc(out, '-');
	else
		hours(out, cpu_rank(r) / 1000);
}

/* clang-format off */
static const struct column cols[] = {
	{ "USER", 'u', COL_CUT, "user", NULL, NULL, "user" },
	{ "QUEUE", 'P', COL_CUT, "queue", NULL, NULL, "queue" },
	{ "FLAVOR", 'f', COL_CUT, "flavor", NULL, NULL, "flavor" },
	{ "ISOLATION", 0, 0, "isolation", NULL, NULL, "isolation of its devices from other pods" },
	{ "DAY", 0, 0, "day", NULL, NULL, "the day, in UTC" },
	{ "GPU_HOURS", 0, COL_RIGHT, NULL, used_text, used_rank, "devices x hours, from start to end of each pod" },
	{ "SHARE", 0, COL_RIGHT, NULL, share_text, share_rank, "share of the sum of all rows" },
	{ "REFUNDED", 0, COL_RIGHT, NULL, refunded_text, refunded_rank, "hours refunded to budgets" },
	{ "EVICTED", 0, COL_RIGHT, NULL, evicted_text, evicted_rank, "hours of work lost to evictions since the last checkpoint" },
	{ "STARTING", 0, COL_RIGHT, NULL, starting_text, starting_rank, "hours from placement until all pods ran" },
	{ "HELD", 0, COL_RIGHT, NULL, held_text, held_rank, "hours kept free for nominated placements" },
	{ "STRANDED", 0, COL_RIGHT, NULL, stranded_text, stranded_rank, "hours free on nodes without free cores, memory or pod slots" },
	{ "FRAGMENTED", 0, COL_RIGHT, NULL, fragmented_text, fragmented_rank, "hours free but fragmented while jobs were pending" },
	{ "WASTE", 0, COL_RIGHT, NULL, waste_text, waste_rank, "sum of evicted, starting, held, stranded, fragmented" },
	{ "RESOURCES", 0, COL_CUT, NULL, resources_text, NULL, "countable resources x hours, MIG instances too" },
	{ "PODS", 0, COL_RIGHT, "pods", NULL, NULL, "pods that ended" },
	{ "CPU_TIME", 0, COL_RIGHT, "used", cpu_text, cpu_rank, "CPU hours used by pods that ended" },
	{ "MAX_MEMORY", 0, COL_RIGHT, "used", cols_max_memory_text, cols_max_memory_rank, "memory high-water of a pod that ended" },
	{ "GPU_BUSY", 0, COL_RIGHT, "used", cols_gpu_busy_text, cols_gpu_busy_rank, "use of their devices, in percent, by time" },
	{ "COST", 0, COL_RIGHT, NULL, cost_text, cost_rank, "cost at the prices of the time" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};
/* clang-format on */

static const struct out_def report = {
	.cols = cols,
	.usual = "USER,QUEUE,FLAVOR,GPU_HOURS,SHARE,REFUNDED,WASTE,PODS,COST",
	.spare = "PODS,SHARE,REFUNDED",
	.sort = NULL,
};

/* ---- by reservation ---- */

HOURS(reserved, seconds, "reserved_gpu_seconds")
HOURS(unused, seconds, "unused_gpu_seconds")

static void use_text(struct gpuq_buf *out, const struct row *r)
{
	const double all = seconds(r, "reserved_gpu_seconds");

	if (all > 0)
		gpuq_buf_printf(out, "%.1f%%", 100 * seconds(r, "gpu_seconds") / all);
	else
		gpuq_buf_addc(out, '-');
}

static double use_rank(const struct row *r)
{
	const double all = seconds(r, "reserved_gpu_seconds");

	return all > 0 ? seconds(r, "gpu_seconds") / all : 0;
}

/* clang-format off */
static const struct column reserved_cols[] = {
	{ "RESERVATION", 0, COL_CUT, "reservation", NULL, NULL, "the reservation" },
	{ "QUEUE", 'P', COL_CUT, "queue", NULL, NULL, "queue whose jobs may use it" },
	{ "TIMES", 0, COL_RIGHT, "windows", NULL, NULL, "number of times that it was in effect" },
	{ "NO_SHOWS", 0, COL_RIGHT, "no_shows", NULL, NULL, "times that are over and in which nothing was used" },
	{ "RESERVED", 0, COL_RIGHT, NULL, reserved_text, reserved_rank, "reserved devices x hours" },
	{ "USED", 0, COL_RIGHT, NULL, used_text, used_rank, "part that its queue and users used" },
	{ "UNUSED", 0, COL_RIGHT, NULL, unused_text, unused_rank, "part that they did not use" },
	{ "USE", 0, COL_RIGHT, NULL, use_text, use_rank, "used part" },
	{ "COST", 0, COL_RIGHT, NULL, cost_text, cost_rank, "cost of what was reserved, at the present price" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};
/* clang-format on */

static const struct out_def of_reservations = {
	.cols = reserved_cols,
	.usual = "RESERVATION,QUEUE,TIMES,NO_SHOWS,RESERVED,USED,UNUSED,USE,COST",
	.spare = "UNUSED,USE",
	.sort = NULL,
};

static int fill_times(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	return filter_put_times(&c->arena, params, &c->args, err);
}

static int report_reservations(struct cli *c)
{
	if (opt_given(&c->args, OPT_QUEUES) || opt_given(&c->args, OPT_USERS) ||
	    opt_given(&c->args, OPT_ISOLATION) || opt_given(&c->args, OPT_ME))
		return cli_usage(c, "--by reservation: expected no --queues, --users, --isolation "
				    "or --me");
	return list_run(c, "reservation.report", &of_reservations, NULL, fill_times, NULL);
}

static const char *const what[] = { "user", "queue", "flavor", "isolation", "day" };
#define N_WHAT (sizeof(what) / sizeof(what[0]))

static int check_by(const char *words, struct gpuq_err *err)
{
	for (size_t n; *words; words += n + (words[n] == ',')) {
		size_t i = 0;

		n = strcspn(words, ",");
		while (n && i < N_WHAT &&
		       (strlen(what[i]) != n || strncasecmp(what[i], words, n) != 0))
			i++;
		if (i == N_WHAT)
			return gpuq_fail(
				err, GPUQ_EINVAL,
				"--by %.*s: expected user, queue, flavor, isolation or day, or "
				"reservation alone",
				(int)n, words);
	}
	return 0;
}

/* A column that rows are not grouped by would have nothing in any row. */
static int check_columns(const char *names, const char *by, struct gpuq_err *err)
{
	static const char *const more[] = { "isolation", "day" }; /* beside those of all reports */

	names += *names == '+';
	for (size_t n; *names; names += n + (names[n] == ',')) {
		const size_t len = strcspn(names, ",:");

		n = strcspn(names, ",");
		for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
			if (strlen(more[i]) == len && strncasecmp(more[i], names, len) == 0 &&
			    !list_has(by, more[i]))
				return gpuq_fail(
					err, GPUQ_EINVAL,
					"-o %.*s: rows are not grouped by it: expected --by "
					"%s,%s",
					(int)len, names, by, more[i]);
	}
	return 0;
}

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	const bool grouped = opt_given(&c->args, OPT_BY);
	int rc = filter_put_times(&c->arena, params, &c->args, err);

	if (rc == 0 && grouped)
		rc = check_by(c->args.val[OPT_BY], err);
	if (rc == 0 && opt_given(&c->args, OPT_FORMAT))
		rc = check_columns(c->args.val[OPT_FORMAT],
				   grouped ? c->args.val[OPT_BY] : "user,queue,flavor", err);
	list_put(c, OPT_BY, params, "by");
	list_put(c, OPT_ISOLATION, params, "isolations");
	list_put(c, OPT_QUEUES, params, "queues");
	list_users(c, params);
	return rc;
}

/* Return the columns that rows are grouped by, followed by the figures. */
static const char *shown(struct cli *c)
{
	static const char *const names[][2] = { { "user", "USER," },
						{ "queue", "QUEUE," },
						{ "flavor", "FLAVOR," },
						{ "isolation", "ISOLATION," },
						{ "day", "DAY," } };
	struct gpuq_buf out = GPUQ_BUF_INIT;
	const char *text;

	if (!opt_given(&c->args, OPT_BY))
		return NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (list_has(c->args.val[OPT_BY], names[i][0]))
			gpuq_buf_adds(&out, names[i][1]);
	gpuq_buf_adds(&out, "GPU_HOURS,SHARE,REFUNDED,WASTE,PODS,COST");
	text = gpuq_arena_strdup(&c->arena, gpuq_buf_str(&out));
	gpuq_buf_done(&out);
	return text;
}

int cmd_report(struct cli *c)
{
	const char *by = c->args.val[OPT_BY];

	if (by && strcasecmp(by, "reservation") == 0)
		return report_reservations(c);
	return list_run(c, "report.get", &report, shown(c), fill, NULL);
}
