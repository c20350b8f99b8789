/* gpuq queue: one line a job, as squeue prints them. */
#include <inttypes.h>
#include <stdlib.h>

#include "gpuq/cli.h"
#include "gpuq/cols_job.h"
#include "gpuq/filter.h"
#include "gpuq/job.h"
#include "gpuq/list.h"

#define CHECKED_MAX 64 /* ids that are asked for one by one */

static int ignore(void *arg, const struct gpuq_val *job)
{
	(void)arg;
	(void)job;
	return 1;
}

/* A list of nothing does not tell a job that has ended from one that never was. */
static int check_ids(struct cli *c, const struct gpuq_val *ids, struct gpuq_err *err)
{
	for (size_t i = 0; ids && i < ids->n && i < CHECKED_MAX; i++) {
		int64_t id, index;
		int rc = filter_id(ids->items[i]->s, &id, &index, err);

		if (rc == 0)
			rc = job_each(c, id, index, ignore, NULL, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;
	int rc;

	for (int i = 0; i < c->args.n_rest; i++) {
		const char *more = c->args.rest[i], *given = c->args.val[OPT_JOBS];

		c->args.val[OPT_JOBS] = given ? gpuq_arena_printf(a, "%s,%s", given, more) : more;
	}
	if (opt_given(&c->args, OPT_ALL))
		gpuq_set(a, params, "all", gpuq_bool(a, true));
	/* The server may stop early only where the order is its own. */
	if (opt_given(&c->args, OPT_LIMIT) && opt_given(&c->args, OPT_JSON) &&
	    !opt_given(&c->args, OPT_SORT))
		gpuq_put(a, params, "limit",
			 gpuq_int(a, strtoll(c->args.val[OPT_LIMIT], NULL, 10)));
	rc = filter_put(c, params, err);
	return rc < 0 ? rc : check_ids(c, gpuq_get(params, "ids"), err);
}

int cmd_queue(struct cli *c)
{
	return list_run(c, "job.list", &job_list,
			opt_given(&c->args, OPT_LONG) ? job_list_long : NULL, fill, NULL);
}
