/* gpuq prio: the terms of the priorities of pending jobs, as sprio prints them. */
#include <inttypes.h>
#include <stdio.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/filter.h"
#include "gpuq/list.h"
#include "gpuq/out.h"
#include "gpuq/view.h"

static void id_text(struct gpuq_buf *out, const struct row *r)
{
	view_job_id(out, r->obj);
}

static double id_rank(const struct row *r)
{
	return (double)gpuq_get_int(r->obj, "id", 0) +
	       (double)(gpuq_get_int(r->obj, "array_index", -1) + 1) / 8388608.0;
}

/* Number of pending jobs, after the rank. */
static void place_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_printf(out, "%" PRId64 "/%" PRId64, gpuq_get_int(r->obj, "place", 0),
			gpuq_get_int(r->obj, "waiting", 0));
}

static double place_rank(const struct row *r)
{
	return (double)gpuq_get_int(r->obj, "place", 0);
}

/* Print the points that nice subtracts, as sprio does. */
static void nice_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_printf(out, "%" PRId64, gpuq_get_int(r->obj, "nice", 0));
}

/* clang-format off */
static const struct column cols[] = {
	{ "JOBID", 'i', COL_RIGHT, NULL, id_text, id_rank, "17, 17_3 or 17_[4-99%10]" },
	{ "QUEUE", 'r', COL_CUT, "queue", NULL, NULL, "queue" },
	{ "USER", 'u', COL_CUT, "user", NULL, NULL, "owner" },
	{ "NAME", 0, COL_CUT, "name", NULL, NULL, "name" },
	{ "PLACE", 0, COL_RIGHT, NULL, place_text, place_rank, "rank in its queue, and number of pending jobs" },
	{ "PRIORITY", 'Y', COL_RIGHT, "priority", NULL, NULL, "sum of the terms; larger is sooner" },
	{ "SITE", 'S', COL_RIGHT, "boost", NULL, NULL, "points added by the site" },
	{ "AGE", 'A', COL_RIGHT, "age", NULL, NULL, "points for age" },
	{ "FAIRSHARE", 'F', COL_RIGHT, "fairshare", NULL, NULL, "points for its user's rank in the fair tree" },
	{ "JOBSIZE", 'J', COL_RIGHT, "size", NULL, NULL, "points for the devices it requests" },
	{ "QOS", 'Q', COL_RIGHT, "qos", NULL, NULL, "points for its quality of service" },
	{ "STRETCH", 0, COL_RIGHT, "stretch", NULL, NULL, "points for pending longer than its time limit" },
	{ "NICE", 'N', COL_RIGHT, "nice", nice_text, NULL, "points subtracted by its owner" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};

/* -w: one line of weights under the names of the terms. */
static const struct column weight_cols[] = {
	{ "JOBID", 'i', 0, "what", NULL, NULL, "" },
	{ "AGE", 'A', COL_RIGHT, "age", NULL, NULL, "" },
	{ "FAIRSHARE", 'F', COL_RIGHT, "fairshare", NULL, NULL, "" },
	{ "JOBSIZE", 'J', COL_RIGHT, "size", NULL, NULL, "" },
	{ "QOS", 'Q', COL_RIGHT, "qos", NULL, NULL, "" },
	{ "STRETCH", 0, COL_RIGHT, "stretch", NULL, NULL, "" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};
/* clang-format on */

static const struct out_def prio_list = {
	.cols = cols,
	.usual = "JOBID,QUEUE,USER,PLACE,PRIORITY,SITE,AGE,FAIRSHARE,JOBSIZE,QOS,STRETCH,NICE",
	.spare = "QUEUE,USER,PLACE,SITE",
	.sort = NULL,
};

static const struct out_def weight_list = {
	.cols = weight_cols,
	.usual = "JOBID,AGE,FAIRSHARE,JOBSIZE,QOS,STRETCH",
	.sort = NULL,
};

static int weights(struct cli *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *v;
	struct out *out;
	int rc;

	if (out_new(&weight_list, NULL, &c->args, &out, &err) < 0)
		return cli_usage(c, "%s", err.text);
	rc = cli_call(c, "prio.weights", NULL, "", &v, &err);
	if (rc == 0) {
		if (!opt_given(&c->args, OPT_JSON))
			gpuq_put(&c->arena, v, "what", gpuq_str(&c->arena, "Weights"));
		rc = out_add(out, v, cli_now_us());
	}
	if (rc >= 0)
		rc = out_flush(out);
	out_free(out);
	return rc < 0 ? cli_fail(&err, false) : EXIT_DONE;
}

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	for (int i = 0; i < c->args.n_rest; i++) {
		const char *more = c->args.rest[i], *given = c->args.val[OPT_JOBS];

		c->args.val[OPT_JOBS] =
			given ? gpuq_arena_printf(&c->arena, "%s,%s", given, more) : more;
	}
	return filter_put(c, params, err);
}

int cmd_prio(struct cli *c)
{
	if (opt_given(&c->args, OPT_WEIGHTS))
		return weights(c);
	return list_run(c, "prio.list", &prio_list, NULL, fill, NULL);
}
