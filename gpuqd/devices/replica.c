/* NVIDIA's device plugin with time-slicing or MPS: a device is offered in replicas, and a pod gets one
 * of one size. */
#include "gpuqd/devices/backend_int.h"

static int place(const struct backend *b, const struct backend_ask *ask, struct gpuq_arena *a,
		 struct backend_place *out, struct gpuq_err *err)
{
	(void)b;
	(void)a;
	if (ask->n_devices != 1)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "it requests several replicas, which may be of one device");
	out->limits[out->n_limits++] = (struct gpuq_amount){ ask->resource, 1 };
	return 0;
}

const struct backend backend_time_slicing = { .word = "time-slicing",
					      .pool = "time-slicing",
					      .title = "time-slicing",
					      .by_replica = true,
					      .parts = true,
					      .isolates = GPUQ_ISOLATION_TIME_SLICE,
					      .place = place };
const struct backend backend_mps = { .word = "mps",
				     .pool = "mps",
				     .title = "MPS",
				     .by_replica = true,
				     .parts = true,
				     .isolates = GPUQ_ISOLATION_MPS,
				     .place = place };
