/* MIG instances of one profile under the name of whole devices: the single strategy. Those of the mixed
 * strategy have a name by their profile, and are beside the devices of a node. */
#include "gpuqd/devices/backend_int.h"

const struct backend backend_mig = {
	.word = "mig", .pool = "mig", .title = "MIG instances", .isolates = GPUQ_ISOLATION_MIG
};
