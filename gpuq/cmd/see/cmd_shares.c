/* gpuq shares: what queues and their users are due and have used, as sshare prints it. */
#include <inttypes.h>
#include <stdio.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/filter.h"
#include "gpuq/list.h"
#include "gpuq/view.h"

/* The tree of queues: two blanks a level. */
static void queue_text(struct gpuq_buf *out, const struct row *r)
{
	const bool user = gpuq_get_str(r->obj, "user", NULL) != NULL;
	const int64_t depth = gpuq_get_int(r->obj, "depth", 0) - user;

	for (int64_t i = 0; i < depth && i < 32; i++)
		gpuq_buf_adds(out, "  ");
	gpuq_buf_adds(out, gpuq_get_str(r->obj, "queue", "-"));
}

static void user_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_adds(out, gpuq_get_str(r->obj, "user", ""));
}

static void fixed_text(struct gpuq_buf *out, const struct row *r, const char *key, int digits)
{
	const struct gpuq_val *v = gpuq_get(r->obj, key);

	if (!v || v->type == GPUQ_NULL)
		return;
	gpuq_buf_printf(out, "%.*f", digits, view_number(v, 0));
}

#define FIXED(key, digits)                                                                         \
	static void key##_text(struct gpuq_buf *out, const struct row *r)                          \
	{                                                                                          \
		fixed_text(out, r, #key, digits);                                                  \
	}                                                                                          \
	static double key##_rank(const struct row *r)                                              \
	{                                                                                          \
		return view_number(gpuq_get(r->obj, #key), 0);                                     \
	}
FIXED(norm_shares, 6)
FIXED(raw_usage, 0)
FIXED(norm_usage, 6)
FIXED(effective_usage, 6)
FIXED(fair_share_factor, 6)

/* A user without any use has an infinite level. */
static void level_fs_text(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *v = gpuq_get(r->obj, "level_fs");

	if (!v || v->type == GPUQ_NULL)
		gpuq_buf_adds(out, "inf");
	else
		gpuq_buf_printf(out, "%.6f", view_number(v, 0));
}

static double level_fs_rank(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "level_fs"), 1e300);
}

/* Most amounts do not apply to a user: an empty cell, as in sshare. */
static void amount_text(struct gpuq_buf *out, const struct row *r, const char *key)
{
	const struct gpuq_val *v = gpuq_get(r->obj, key);

	if (v && v->type != GPUQ_NULL)
		view_cell(out, v);
}

#define AMOUNT(key)                                                                                \
	static void key##_text(struct gpuq_buf *out, const struct row *r)                          \
	{                                                                                          \
		amount_text(out, r, #key);                                                         \
	}
AMOUNT(quota)
AMOUNT(limit)
AMOUNT(lend)
AMOUNT(rank)
AMOUNT(fair_share)
AMOUNT(allocated)
AMOUNT(demand)
AMOUNT(budget_gpu_minutes)
AMOUNT(used_gpu_minutes)

/* clang-format off */
static const struct column cols[] = {
	{ "QUEUE", 'P', COL_CUT, "queue", queue_text, NULL, "queue, below its parent" },
	{ "USER", 'u', COL_CUT, "user", user_text, NULL, "user; empty for the queue itself" },
	{ "RAWSHARES", 0, COL_RIGHT, "raw_shares", NULL, NULL, "weight" },
	{ "NORMSHARES", 0, COL_RIGHT, NULL, norm_shares_text, norm_shares_rank, "weight divided by the sum of its siblings' weights" },
	{ "RAWUSAGE", 0, COL_RIGHT, NULL, raw_usage_text, raw_usage_rank, "GPU-seconds used, after decay" },
	{ "NORMUSAGE", 0, COL_RIGHT, NULL, norm_usage_text, norm_usage_rank, "portion of all use" },
	{ "EFFECTVUSAGE", 0, COL_RIGHT, NULL, effective_usage_text, effective_usage_rank, "portion of its siblings' use" },
	{ "LEVELFS", 0, COL_RIGHT, NULL, level_fs_text, level_fs_rank, "NORMSHARES / EFFECTVUSAGE; above 1: used less than its share" },
	{ "FAIRSHARE", 0, COL_RIGHT, NULL, fair_share_factor_text, fair_share_factor_rank, "rank of the user in the Fair Tree traversal; 1 is highest" },
	{ "QUOTA", 0, COL_RIGHT, NULL, quota_text, NULL, "guaranteed devices" },
	{ "LIMIT", 0, COL_RIGHT, NULL, limit_text, NULL, "hard limit on devices" },
	{ "LEND", 0, COL_RIGHT, NULL, lend_text, NULL, "devices of its idle quota that others may use" },
	{ "RANK", 0, COL_RIGHT, "rank", rank_text, NULL, "order in which idle capacity is offered" },
	{ "FAIR_SHARE", 0, COL_RIGHT, NULL, fair_share_text, NULL, "devices of its current fair share" },
	{ "ALLOCATED", 0, COL_RIGHT, NULL, allocated_text, NULL, "devices allocated to its jobs" },
	{ "DEMAND", 0, COL_RIGHT, NULL, demand_text, NULL, "devices its jobs hold and request" },
	{ "BUDGET", 0, COL_RIGHT, NULL, budget_gpu_minutes_text, NULL, "GPU-minutes of the period" },
	{ "USED", 0, COL_RIGHT, NULL, used_gpu_minutes_text, NULL, "GPU-minutes used of the budget" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};
/* clang-format on */

static const struct out_def share_list = {
	.cols = cols,
	.usual = "QUEUE,USER,RAWSHARES,NORMSHARES,RAWUSAGE,EFFECTVUSAGE,FAIRSHARE,QUOTA,LIMIT,"
		 "FAIR_SHARE,ALLOCATED",
	.spare = "LIMIT,QUOTA,RAWSHARES,RAWUSAGE,ALLOCATED",
	.sort = NULL,
};

static const char shown_long[] =
	"QUEUE,USER,RAWSHARES,NORMSHARES,RAWUSAGE,NORMUSAGE,EFFECTVUSAGE,LEVELFS,FAIRSHARE,QUOTA,"
	"LIMIT,LEND,RANK,FAIR_SHARE,ALLOCATED,DEMAND,BUDGET,USED";

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	for (int i = 0; i < c->args.n_rest; i++) {
		const char *more = c->args.rest[i], *given = c->args.val[OPT_QUEUES];

		c->args.val[OPT_QUEUES] =
			given ? gpuq_arena_printf(&c->arena, "%s,%s", given, more) : more;
	}
	return filter_put(c, params, err);
}

static bool queues_only(const struct cli *c, const struct gpuq_val *obj)
{
	(void)c;
	return gpuq_get_str(obj, "user", NULL) == NULL;
}

int cmd_shares(struct cli *c)
{
	return list_run(c, "shares.list", &share_list,
			opt_given(&c->args, OPT_LONG) ? shown_long : NULL, fill,
			opt_given(&c->args, OPT_SUMMARY) ? queues_only : NULL);
}
