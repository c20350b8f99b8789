/* room.h - devices held by pods where their node's plugin chooses them
 *
 * Owns     these pods by name, and their nodes. Touches memory only.
 * Used by  cluster/kube/pods (before a pod is created on such a node).
 *
 * Among pods that wait for their turn on a node only the next one matters to the plugin: what gpuqd planned for
 * the others is not held here.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_ROOM_H
#define GPUQD_CLUSTER_KUBE_WATCH_ROOM_H

#include "gpuqd/devices/backend.h"

struct rooms;

struct rooms *rooms_new(void);
void rooms_free(struct rooms *r);

/* A pod is on a node, and holds this much of each of these devices; a part of one or all of it (milli 1000). */
void rooms_hold(struct rooms *r, const char *pod, const char *node, const int *devices, size_t n,
		int64_t milli, int64_t mib);
/* True if it held something. */
bool rooms_leave(struct rooms *r, const char *pod);

/* Fill in what is free of each of the n devices of a node with so much memory each. Returns the number of pods that
 * hold some of them. */
size_t rooms_of(const struct rooms *r, const char *node, int64_t device_mib,
		struct backend_room *out, size_t n);

#endif
