/* gpuq resubmit: submit jobs again as they were; the old ones do not change. */
#include "gpuq/cli.h"
#include "gpuq/cmd/job/again.h"
#include "gpuq/command.h"

int cmd_resubmit(struct cli *c)
{
	const bool failed = opt_given(&c->args, OPT_FAILED);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct submission all = { .jobs = NULL }, one;
	size_t n = 0;

	all.specs.items =
		gpuq_arena_calloc(&c->arena, (size_t)c->args.n_rest, sizeof(*all.specs.items));
	if (!all.specs.items || submission_output(c, &err) < 0)
		return cli_usage(c, "out of memory");
	for (int i = 0; i < c->args.n_rest; i++) {
		if (again_read(c, c->args.rest[i], failed, &one, &err) < 0)
			return cli_fail(&err, true);
		if (one.specs.n)
			all.specs.items[n++] = one.specs.items[0];
		else
			cli_say("job %s: nothing of it has failed", c->args.rest[i]);
	}
	all.specs.n = n;
	all.specs.form = GPUQ_FORM_JOB;
	return n ? submission_go(c, &all) : EXIT_DONE;
}
