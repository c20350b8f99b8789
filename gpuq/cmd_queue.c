/* gpuq queue: one line a job, as squeue prints them. */
#include <inttypes.h>
#include <stdlib.h>

#include "gpuq/cli.h"
#include "gpuq/cols_job.h"
#include "gpuq/filter.h"
#include "gpuq/list.h"

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;

	for (int i = 0; i < c->args.n_rest; i++) {
		const char *more = c->args.rest[i], *given = c->args.val[OPT_JOBS];

		c->args.val[OPT_JOBS] = given ? gpuq_arena_printf(a, "%s,%s", given, more) : more;
	}
	if (opt_given(&c->args, OPT_ALL))
		gpuq_put(a, params, "all", gpuq_bool(a, true));
	/* The server may stop early only where the order is its own. */
	if (opt_given(&c->args, OPT_LIMIT) && opt_given(&c->args, OPT_JSON) &&
	    !opt_given(&c->args, OPT_SORT))
		gpuq_put(a, params, "limit",
			 gpuq_int(a, strtoll(c->args.val[OPT_LIMIT], NULL, 10)));
	return filter_put(c, params, err);
}

int cmd_queue(struct cli *c)
{
	return list_run(c, "job.list", &job_list,
			opt_given(&c->args, OPT_LONG) ? job_list_long : NULL, fill, NULL);
}
