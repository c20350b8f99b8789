/* snapshot_build.h - what a snapshot keeps while it is being built
 *
 * Owns     the growing tables' room, interned contents, and lists that were copied.
 * Used by  snapshot*.c only.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_BUILD_H
#define GPUQD_SNAPSHOT_SNAPSHOT_BUILD_H

#include "gpuqd/util/intern.h"
#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/util/sort.h"
#include "libgpuq/buf.h"

struct snap_builder {
	uint32_t room_flavors, room_nodes, room_joints, room_devices, room_queues, room_shares,
		room_licenses, room_caps, room_capsets, room_requests, room_jobs, room_allocs,
		room_promises, room_users, room_usages, room_losses, room_reservations,
		room_profiles;
	struct intern requests, users, wheres, joints, usages; /* keys live in `keys` */
	struct gpuq_arena keys;
	struct gpuq_buf blob; /* of the request being added */
	uint32_t last_user, last_usage; /* that were asked for: most jobs are like the one before */
	bool failed; /* memory ran out at some point */
};

/* What sealing needs on the way. map_X[handle] is the index after sorting. */
struct seal {
	struct snapshot *s;
	struct gpuq_err *err;
	struct gpuq_arena mem;
	uint32_t *map_flavor, *map_node, *map_queue, *map_job, *map_usage;
};

/* The order of n items under cmp in *order, and where each went in *map. */
int snapshot_seal_sorted(struct seal *w, uint32_t n, sort_cmp_fn cmp, const void *ctx,
			 uint32_t **order, uint32_t **map);

/* Bring a malloc'ed table into that order. table is the address of its pointer. */
int snapshot_seal_permute(struct seal *w, void *table, uint32_t n, size_t size,
			  const uint32_t *order);

/* Of a queue and a user, by handle: the entry of their usage. SNAP_NONE: no memory. */
uint32_t snapshot_usage(struct snapshot *s, uint32_t queue, uint32_t user);

/* snapshot_devices.c: a step; then all instances as free; the memory that an alloc takes of its devices, where its
 * job asked for some, and what a node's MIG instances count as capacity. */
int snapshot_seal_devices(struct seal *w);
void snapshot_seal_instances(struct snapshot *s);
void snapshot_seal_share(const struct snapshot *s, struct snap_alloc *a);
int64_t snapshot_seal_mig_capacity(const struct snapshot *s, uint32_t node);

/* snapshot_past.c: a step. */
int snapshot_seal_losses(struct seal *w);

/* Steps of snapshot_jobs.c and snapshot_usage.c, in this order. */
int snapshot_seal_requests(struct seal *w);
int snapshot_seal_usages(struct seal *w);
int snapshot_seal_jobs(struct seal *w);
int snapshot_seal_allocs(struct seal *w);
int snapshot_seal_capacity(struct seal *w);

/* What is free on nodes and devices, from what there is and what is held. */
void snapshot_derive_free(struct snapshot *s);
int snapshot_seal_calendar(struct seal *w);
int snapshot_seal_lines(struct seal *w); /* snapshot_lines.c */

#endif
