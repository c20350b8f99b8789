/* HAMi: its own scheduler hands out parts of the devices of its nodes, so no pod is placed there. */
#include "gpuqd/devices/backend_int.h"

static bool takes(const struct gpuq_group *g)
{
	(void)g;
	return false;
}

const struct backend backend_hami = {
	.word = "hami", .pool = "hami", .title = "HAMi", .takes = takes
};
