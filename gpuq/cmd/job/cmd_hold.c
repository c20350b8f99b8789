/* gpuq hold, gpuq release: the stop sign on pending jobs; gpuq requeue: back to waiting. */
#include "gpuq/cmd/job/act.h"
#include "gpuq/command.h"

int cmd_hold(struct cli *c)
{
	return act(c, "job.hold", NULL, "Held", "Would hold");
}

int cmd_release(struct cli *c)
{
	return act(c, "job.release", NULL, "Released", "Would release");
}

int cmd_requeue(struct cli *c)
{
	struct gpuq_val *extra = gpuq_map(&c->arena);

	if (opt_given(&c->args, OPT_HOLD))
		gpuq_put(&c->arena, extra, "hold", gpuq_bool(&c->arena, true));
	return act(c, "job.requeue", extra, "Requeued", "Would requeue");
}
