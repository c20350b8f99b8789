/* snapshot_build.h - what a snapshot keeps while it is being built
 *
 * Owns     the growing tables' room, interned contents, and lists that were copied.
 * Used by  snapshot.c and snapshot_seal.c only.
 */
#ifndef GPUQD_CORE_SNAPSHOT_BUILD_H
#define GPUQD_CORE_SNAPSHOT_BUILD_H

#include "gpuqd/core/intern.h"
#include "gpuqd/core/snapshot.h"
#include "libgpuq/buf.h"

struct snap_builder {
	uint32_t room_flavors, room_nodes, room_devices, room_queues, room_shares, room_licenses,
		room_requests, room_jobs, room_allocs, room_users;
	struct intern requests, users; /* keys live in `keys` */
	struct gpuq_arena keys;
	struct gpuq_buf blob; /* of the request being added */
	bool failed; /* memory ran out at some point */
};

#endif
