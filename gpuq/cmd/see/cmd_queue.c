/* gpuq queue: one line a job, as squeue prints them. */
#include <stdlib.h>

#include "gpuq/cli.h"
#include "gpuq/cols_job.h"
#include "gpuq/command.h"
#include "gpuq/filter.h"
#include "gpuq/list.h"

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;

	if (opt_given(&c->args, OPT_ALL))
		gpuq_set(a, params, "all", gpuq_bool(a, true));
	/* The server may stop early only where the order is its own. */
	if (opt_given(&c->args, OPT_LIMIT) && opt_given(&c->args, OPT_JSON) &&
	    !opt_given(&c->args, OPT_SORT))
		gpuq_put(a, params, "limit",
			 gpuq_int(a, strtoll(c->args.val[OPT_LIMIT], NULL, 10)));
	return filter_put_jobs(c, params, err);
}

int cmd_queue(struct cli *c)
{
	return list_run(c, "job.list", &job_list,
			opt_given(&c->args, OPT_LONG) ? job_list_long : NULL, fill, NULL);
}
