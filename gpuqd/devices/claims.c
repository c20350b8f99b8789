/* Devices that Kubernetes has as objects: a pod gets them by ResourceClaims, which gpuqd allocates (dra/). Their parts are
 * MIG instances, and others whose driver keeps them apart. */
#include "gpuqd/devices/backend_int.h"

static bool takes(const struct gpuq_group *g)
{
	return gpuq_group_claimed(g);
}

const struct backend backend_dra = { .word = "dra",
				     .pool = "dra",
				     .title = "devices of ResourceClaims",
				     .takes = takes,
				     .isolates = GPUQ_ISOLATION_MIG };
