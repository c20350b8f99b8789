/* NVIDIA's device plugin, and those of other vendors: whole devices, which the kubelet chooses. */
#include "gpuqd/devices/backend_int.h"

static bool takes(const struct gpuq_group *g)
{
	return !backend_shares(g);
}

const struct backend backend_whole = { .word = "whole",
				       .pool = "whole",
				       .title = "whole devices",
				       .takes = takes,
				       .isolates = GPUQ_ISOLATION_EXCLUSIVE };
