/* gpuq hold and gpuq release: the stop sign on waiting jobs. */
#include "gpuq/act.h"

int cmd_hold(struct cli *c)
{
	return act(c, "job.hold", NULL, "Held", "Would hold");
}

int cmd_release(struct cli *c)
{
	return act(c, "job.release", NULL, "Released", "Would release");
}
