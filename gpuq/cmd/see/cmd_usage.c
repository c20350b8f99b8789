/* gpuq usage: budgets and use, one line a queue and one for each of its users. */
#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/filter.h"
#include "gpuq/job.h"
#include "gpuq/lines.h"
#include "gpuq/list.h"
#include "gpuq/out.h"
#include "gpuq/cmd/job/used.h"
#include "gpuq/view.h"

static double number(const struct row *r, const char *key)
{
	return view_number(gpuq_get(r->obj, key), 0);
}

/* GPU-minutes, all with the same decimals; --json has them as they are. */
static void minutes(struct gpuq_buf *out, const struct row *r, const char *key)
{
	if (line_says(gpuq_get(r->obj, key)))
		gpuq_buf_printf(out, "%.2f", number(r, key));
	else
		gpuq_buf_addc(out, '-');
}

static void used_text(struct gpuq_buf *out, const struct row *r)
{
	minutes(out, r, "used_gpu_minutes");
}

static double used_rank(const struct row *r)
{
	return number(r, "used_gpu_minutes");
}

static void committed_text(struct gpuq_buf *out, const struct row *r)
{
	minutes(out, r, "committed_gpu_minutes");
}

static double committed_rank(const struct row *r)
{
	return number(r, "committed_gpu_minutes");
}

static void left_text(struct gpuq_buf *out, const struct row *r)
{
	minutes(out, r, "left_gpu_minutes");
}

static double left_rank(const struct row *r)
{
	return number(r, "left_gpu_minutes");
}

static void decayed_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_printf(out, "%.2f", number(r, "decayed_gpu_seconds") / 3600);
}

static double decayed_rank(const struct row *r)
{
	return number(r, "decayed_gpu_seconds");
}

static void factor_text(struct gpuq_buf *out, const struct row *r)
{
	if (view_number(gpuq_get(r->obj, "factor"), -1) < 0)
		gpuq_buf_addc(out, '-');
	else
		gpuq_buf_printf(out, "%.6f", number(r, "factor"));
}

static double factor_rank(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "factor"), 2);
}

static void cost_text(struct gpuq_buf *out, const struct row *r)
{
	view_money(out, r->obj);
}

static double cost_rank(const struct row *r)
{
	return number(r, "cost");
}

static void reset_text(struct gpuq_buf *out, const struct row *r)
{
	view_time(out, gpuq_get(r->obj, "reset_time"));
}

/* clang-format off */
static const struct column cols[] = {
	{ "QUEUE", 'P', COL_CUT, "queue", NULL, NULL, "the queue" },
	{ "USER", 'u', COL_CUT, "user", NULL, NULL, "the user; - for the queue and all below it" },
	{ "BUDGET", 0, COL_RIGHT, "budget_gpu_minutes", NULL, NULL, "GPU-minutes of the period" },
	{ "GRANTED", 0, COL_RIGHT, "granted_gpu_minutes", NULL, NULL, "GPU-minutes granted in addition" },
	{ "USED", 0, COL_RIGHT, "used_gpu_minutes", used_text, used_rank, "GPU-minutes charged, less refunds" },
	{ "COMMITTED", 0, COL_RIGHT, "committed_gpu_minutes", committed_text, committed_rank, "GPU-minutes that running jobs may still use; - without a time limit" },
	{ "LEFT", 0, COL_RIGHT, "left_gpu_minutes", left_text, left_rank, "GPU-minutes left; negative when overdrawn" },
	{ "MODE", 0, 0, "mode", NULL, NULL, "soft: exhausted, it lowers the entitlement; hard: no start beyond it" },
	{ "PERIOD", 0, 0, "period", NULL, NULL, "period after which the budget is reset" },
	{ "HALF_LIFE", 0, COL_RIGHT, "half_life_s", NULL, NULL, "half-life of use, in seconds" },
	{ "RESET", 0, 0, NULL, reset_text, NULL, "start of the next period" },
	{ "DECAYED", 0, COL_RIGHT, NULL, decayed_text, decayed_rank, "GPU-hours after decay, as fair share counts them" },
	{ "FACTOR", 0, COL_RIGHT, NULL, factor_text, factor_rank, "fair-share factor of the user; 1 is highest" },
	{ "COST", 0, COL_RIGHT, NULL, cost_text, cost_rank, "cost of the use in the period, or in this month without one" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};
/* clang-format on */

static const struct out_def usage_list = {
	.cols = cols,
	.usual = "QUEUE,USER,BUDGET,USED,COMMITTED,LEFT,MODE,DECAYED,FACTOR,COST",
	.spare = "FACTOR,DECAYED,MODE,COST",
	.sort = NULL,
};

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	(void)err;
	list_names(c, OPT_QUEUES, params);
	list_users(c, params);
	return 0;
}

/* ---- of jobs ---- */

struct of_jobs {
	bool json;
	struct gpuq_buf text;
};

static int print_job(void *arg, const struct gpuq_val *job)
{
	struct of_jobs *o = arg;

	if (o->json) {
		out_json(job);
		return 0;
	}
	view_job_id(&o->text, job);
	line_print("Job", &o->text);
	line_value("State", job, "state", &o->text);
	line_value("GPU seconds", job, "gpu_seconds", &o->text);
	used_lines(job, &o->text);
	return 0;
}

static int of_jobs(struct cli *c, const char *jobs)
{
	struct of_jobs o = { opt_given(&c->args, OPT_JSON), GPUQ_BUF_INIT };
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *ids = gpuq_list(&c->arena);
	int rc = filter_ids(&c->arena, jobs, ids, &err);

	for (size_t i = 0; rc == 0 && i < ids->n; i++) {
		int64_t id, index;

		rc = filter_id(ids->items[i]->s, &id, &index, &err);
		if (rc == 0)
			rc = job_for_each(c, id, index, print_job, &o, &err);
	}
	gpuq_buf_done(&o.text);
	return rc < 0 ? cli_fail(&err, true) : EXIT_DONE;
}

int cmd_usage(struct cli *c)
{
	if (opt_given(&c->args, OPT_JOBS))
		return of_jobs(c, c->args.val[OPT_JOBS]);
	return list_run(c, "usage.list", &usage_list, NULL, fill, NULL);
}
