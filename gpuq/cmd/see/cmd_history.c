/* gpuq history: jobs that have ended, the newest first. */
#include <stdlib.h>

#include "gpuq/cli.h"
#include "gpuq/cols_job.h"
#include "gpuq/command.h"
#include "gpuq/filter.h"
#include "gpuq/list.h"

/* Without a filter the table would list every job that ever ran. */
#define LINES_MAX 1000

static size_t n_seen;

static bool few(const struct cli *c, const struct gpuq_val *job)
{
	(void)c, (void)job;
	return ++n_seen <= LINES_MAX;
}

static bool asked_for_all(const struct args *args)
{
	return !opt_given(args, OPT_LIMIT) && !opt_given(args, OPT_SORT) &&
	       !opt_given(args, OPT_JSON) && !opt_given(args, OPT_WATCH) && args->n_rest == 0 &&
	       !filter_given(args);
}

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;
	const char *limit = c->args.val[OPT_LIMIT];

	/* One more, to detect that there are more. */
	if (asked_for_all(&c->args))
		gpuq_put(a, params, "limit", gpuq_int(a, LINES_MAX + 1));
	else if (limit && !opt_given(&c->args, OPT_SORT))
		gpuq_put(a, params, "limit", gpuq_int(a, strtoll(limit, NULL, 10)));
	return filter_put_jobs(c, params, err);
}

int cmd_history(struct cli *c)
{
	const bool all = asked_for_all(&c->args);
	const int code = list_run(c, "history.list", &job_history,
				  opt_given(&c->args, OPT_LONG) ? job_history_long : NULL, fill,
				  all ? few : NULL);

	if (all && n_seen > LINES_MAX)
		cli_say("only the newest %d are shown; --since, --limit and the like show others",
			LINES_MAX);
	return code;
}
