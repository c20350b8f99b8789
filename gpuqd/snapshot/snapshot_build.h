/* snapshot_build.h - data of a snapshot while it is being built
 *
 * Owns     the capacity of growing tables, interned contents, and lists that were copied.
 * Used by  snapshot*.c only.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_BUILD_H
#define GPUQD_SNAPSHOT_SNAPSHOT_BUILD_H

#include "gpuqd/util/intern.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/util/sort.h"
#include "libgpuq/buf.h"

struct seal;

struct snap_builder {
	uint32_t room_flavors, room_nodes, room_joints, room_devices, room_queues, room_shares,
		room_licenses, room_caps, room_capsets, room_requests, room_jobs, room_allocs,
		room_promises, room_users, room_usages, room_losses, room_reservations, room_extras;
	struct intern requests, users, wheres, joints, usages; /* keys live in `keys` */
	struct gpuq_arena keys;
	struct gpuq_buf blob; /* of the request being added */
	const struct snap_group **where_first; /* by constraints: the first group that has them */
	uint32_t room_where_first;
	uint32_t last_user, last_usage; /* of the previous job: most jobs have the same */
	bool failed; /* memory ran out at some point */
	bool kept; /* users are looked up after sealing, too */
	struct seal *seal; /* NULL before sealing begins */
	uint32_t n_sealed; /* sealing steps that are done */
};

/* Intermediate data of sealing. map_X[handle] is the index after sorting. */
struct seal {
	struct snapshot *s;
	struct gpuq_err *err;
	struct gpuq_arena mem; /* until it is sealed */
	uint32_t *map_flavor, *map_node, *map_queue, *map_job, *map_usage;
};

/* Free what finds equal contents: nothing is added any more. */
void snapshot_forget_keys(struct snapshot *s);

/* Return the usage entry of a queue and a user, all by handle. SNAP_NONE: no memory. */
uint32_t snapshot_usage(struct snapshot *s, uint32_t queue, uint32_t user);

#endif
