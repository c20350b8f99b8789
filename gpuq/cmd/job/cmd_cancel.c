/* gpuq cancel: end jobs, or send them a signal. */
#include "gpuq/cmd/job/act.h"
#include "gpuq/command.h"
#include "libgpuq/units.h"

int cmd_cancel(struct cli *c)
{
	const char *name = c->args.val[OPT_SIGNAL];
	struct gpuq_val *extra;
	int number;

	if (!name)
		return act(c, "job.cancel", NULL, "Cancelled", "Would cancel");
	number = gpuq_signal_number(name);
	if (number == 0)
		return cli_usage(c, "--signal %s: expected a signal such as USR1 or 10", name);
	extra = gpuq_map(&c->arena);
	gpuq_put(&c->arena, extra, "signal", gpuq_int(&c->arena, number));
	return act(c, "job.cancel", extra, "Signalled", "Would signal");
}
