/* HAMi: its own scheduler allocates parts of the devices of its nodes, so gpuqd places no pod on them. */
#include "gpuqd/devices/backend_int.h"

const struct backend backend_hami = { .word = "hami",
				      .pool = "hami",
				      .title = "HAMi",
				      .closed = true,
				      .isolates = GPUQ_ISOLATION_MEMORY_LIMITED };
