/* gpuq queues: quota, fair share and use, one line a queue. */
#include "gpuq/cmd/see/cmd_queues.h"

#include <inttypes.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/cmd/site/queues_grant.h"
#include "gpuq/cols_job.h"
#include "gpuq/command.h"
#include "gpuq/list.h"
#include "gpuq/cmd/site/queues_act.h"
#include "gpuq/view.h"
#include "libgpuq/units.h"

/* "20 each": a number that is that of each flavor */
static void amount_text(struct gpuq_buf *out, const struct row *r, const char *key)
{
	const struct gpuq_val *v = gpuq_get(r->obj, key);

	view_cell(out, v);
	if (v && (v->type == GPUQ_INT || v->type == GPUQ_REAL) && view_number(v, 0) > 0 &&
	    gpuq_get_bool(r->obj, "each_flavor", false))
		gpuq_buf_adds(out, " each");
}

static void quota_text(struct gpuq_buf *out, const struct row *r)
{
	amount_text(out, r, "quota");
}

static void limit_text(struct gpuq_buf *out, const struct row *r)
{
	amount_text(out, r, "limit");
}

static double quota_rank(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "quota"), 0);
}

static double limit_rank(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "limit"), 0);
}

/* clang-format off */
static const struct column cols[] = {
	{ "NAME", 'P', COL_CUT, "name", NULL, NULL, "the queue" },
	{ "PARENT", 0, COL_CUT, "parent", NULL, NULL, "parent queue" },
	{ "QUOTA", 0, COL_RIGHT, NULL, quota_text, quota_rank, "guaranteed devices" },
	{ "LIMIT", 0, COL_RIGHT, NULL, limit_text, limit_rank, "hard limit on devices" },
	{ "WEIGHT", 0, COL_RIGHT, "weight", NULL, NULL, "weight when dividing idle capacity" },
	{ "FAIR_SHARE", 0, COL_RIGHT, "fair_share", NULL, NULL, "devices of its current fair share" },
	{ "ALLOCATED", 0, COL_RIGHT, "allocated", NULL, NULL, "devices allocated to its jobs" },
	{ "HELD", 0, COL_RIGHT, "held", NULL, NULL, "devices kept for start reservations" },
	{ "RESOURCES", 0, COL_CUT, "resources", NULL, NULL, "countable resources and MIG instances its jobs hold" },
	{ "PENDING", 0, COL_RIGHT, "pending_jobs", NULL, NULL, "pending jobs, array elements counted" },
	{ "RUNNING", 0, COL_RIGHT, "running_jobs", NULL, NULL, "running jobs" },
	{ "BUDGET", 0, COL_RIGHT, "budget_gpu_minutes", NULL, NULL, "GPU-minutes of the period" },
	{ "USED", 0, COL_RIGHT, "used_gpu_minutes", NULL, NULL, "GPU-minutes used of the budget" },
	{ "ISOLATION", 0, 0, "isolation", NULL, NULL, "minimum isolation of its jobs' devices, its own or inherited" },
	{ "NAMESPACE", 0, COL_CUT, "namespace", NULL, NULL, "namespace of its pods" },
	{ "STATE", 't', 0, "state", NULL, NULL, "open, stopped, closed, or both" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};
/* clang-format on */

const struct out_def queue_list = {
	.cols = cols,
	.usual = "NAME,PARENT,QUOTA,LIMIT,FAIR_SHARE,ALLOCATED,HELD,PENDING,RUNNING",
	.spare = "HELD,LIMIT,PARENT",
	.sort = NULL,
};

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	(void)err;
	list_names(c, OPT_QUEUES, params);
	return 0;
}

int queues_print(struct cli *c)
{
	static const struct args none;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct out *out;
	int rc = out_new(&queue_list, NULL, &none, &out, &err);

	if (rc == 0) {
		rc = list_once(c, "queue.list", NULL, out, NULL, &err);
		if (rc == 0)
			rc = out_flush(out);
		out_free(out);
	}
	return rc < 0 ? cli_fail(&err, false) : EXIT_DONE;
}

int cmd_queues(struct cli *c)
{
	if (c->args.n_rest > 0 && strcmp(c->args.rest[0], "grant") == 0)
		return queues_grant(c);
	if (c->args.n_rest > 0 && queues_is_verb(c->args.rest[0]))
		return queues_act(c);
	return list_run(c, "queue.list", &queue_list, NULL, fill, NULL);
}
