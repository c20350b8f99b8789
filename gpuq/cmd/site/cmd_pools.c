/* gpuq pools: the pools of nodes, and what was requested for those that grow. */
#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/list.h"
#include "gpuq/view.h"

static void cell_failed(struct gpuq_buf *out, const struct row *r)
{
	view_time(out, gpuq_get(r->obj, "failed_time"));
}

static double rank_failed(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "failed_time"), 0);
}

/* "12:03:10 QUOTA_EXCEEDED: ..." */
static void cell_last_failure(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *f = gpuq_get(r->obj, "last_failure");

	view_time(out, gpuq_get(f, "time"));
	if (!f || f->type != GPUQ_MAP)
		return;
	gpuq_buf_addc(out, ' ');
	view_cell(out, gpuq_get(f, "message"));
}

static void cell_closed(struct gpuq_buf *out, const struct row *r)
{
	view_time(out, gpuq_get(r->obj, "closed_until_time"));
}

/* clang-format off */
static const struct column cols[] = {
	{ "NAME", 0, COL_CUT, "name", NULL, NULL, "the pool" },
	{ "FLAVOR", 0, COL_CUT, "flavor", NULL, NULL, "flavor of its devices" },
	{ "STATE", 0, COL_STATE, "state", NULL, NULL, "fixed (does not grow), open, full, failing or off" },
	{ "NODES", 0, COL_RIGHT, "nodes", NULL, NULL, "nodes that are there" },
	{ "ASKED", 0, COL_RIGHT, "asked", NULL, NULL, "nodes that were requested and are not there" },
	{ "MAX", 0, COL_RIGHT, "max_nodes", NULL, NULL, "maximum number of nodes" },
	{ "GPUS", 0, COL_RIGHT, "gpus_per_node", NULL, NULL, "devices of a node that is requested" },
	{ "REQUESTS", 0, COL_RIGHT, "requests", NULL, NULL, "requests under way" },
	{ "PRICE", 0, COL_RIGHT, "price", NULL, NULL, "price of a device and hour" },
	{ "CLASS", 0, COL_CUT, "class", NULL, NULL, "class of its requests" },
	{ "MEDIAN", 0, COL_RIGHT, "wait_median_s", NULL, NULL, "median of the seconds until a request was served" },
	{ "FAILED", 0, 0, NULL, cell_failed, rank_failed, "last failure of a request" },
	{ "LAST_FAILURE", 0, COL_CUT, NULL, cell_last_failure, rank_failed, "time and message of the last failure" },
	{ "UNTIL", 0, 0, NULL, cell_closed, NULL, "end of the pause after failures" },
	{ "FAILURE", 0, COL_CUT, "failure", NULL, NULL, "message of the last failure" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};
/* clang-format on */

static const struct out_def pool_list = {
	.cols = cols,
	.usual = "NAME,FLAVOR,STATE,NODES,ASKED,MAX,REQUESTS,PRICE,FAILED,FAILURE",
	.spare = "PRICE,FAILED,FAILURE",
	.sort = "NAME",
};

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	(void)err;
	list_names(c, OPT_NAMES, params);
	return 0;
}

int cmd_pools(struct cli *c)
{
	return list_run(c, "pool.list", &pool_list, NULL, fill, NULL);
}
