/* gpuq queues grant: GPU-minutes beside the budget of a queue, for its current period. */
#include "gpuq/cmd/site/queues_grant.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpuq/cli.h"
#include "gpuq/out.h"
#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/limits.h"

int queues_grant(struct cli *c)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *reply;
	struct gpuq_buf text = GPUQ_BUF_INIT, clean = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	const bool dry_run = opt_given(&c->args, OPT_DRY_RUN);
	long long minutes;
	char *end;

	if (c->args.n_rest != 3)
		return cli_usage(c, "expected grant QUEUE MINUTES");
	errno = 0;
	minutes = strtoll(c->args.rest[2], &end, 10);
	if (errno || *end || end == c->args.rest[2] || minutes == 0 ||
	    minutes > GPUQ_GRANT_MINUTES_MAX || minutes < -GPUQ_GRANT_MINUTES_MAX)
		return cli_usage(c,
				 "%s: expected a number of GPU-minutes, such as 300, or -300 to "
				 "take them back",
				 c->args.rest[2]);
	gpuq_put(a, params, "name", gpuq_str(a, c->args.rest[1]));
	gpuq_put(a, params, "gpu_minutes", gpuq_int(a, minutes));
	if (opt_given(&c->args, OPT_REASON))
		gpuq_put(a, params, "why", gpuq_str(a, c->args.val[OPT_REASON]));
	if (dry_run)
		gpuq_put(a, params, "dry_run", gpuq_bool(a, true));
	if (cli_connect(c, &err) < 0)
		return cli_fail(&err, false);
	if (cli_call(c, "queue.grant", params, dry_run ? "" : NULL, &reply, &err) < 0)
		return cli_fail(&err, false);
	if (opt_given(&c->args, OPT_JSON))
		return out_json(reply) < 0 ? EXIT_REFUSED : EXIT_DONE;
	gpuq_buf_printf(&text, "%s%s: budget %" PRId64 ", granted ", dry_run ? "Would be " : "",
			c->args.rest[1], gpuq_get_int(reply, "budget_gpu_minutes", 0));
	view_cell(&text, gpuq_get(reply, "granted_gpu_minutes"));
	gpuq_buf_adds(&text, ", used ");
	view_cell(&text, gpuq_get(reply, "used_gpu_minutes"));
	term_clean_str(&clean, gpuq_buf_str(&text));
	printf("%s GPU-minutes\n", gpuq_buf_str(&clean));
	gpuq_buf_done(&text);
	gpuq_buf_done(&clean);
	return EXIT_DONE;
}
