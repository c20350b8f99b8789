/* hami.h - keys of HAMi, and the words in which its parts keep devices
 *
 * Used by  cluster/kube/watch (nodes and pods), cluster/kube/pods (the lock of a node), tests.
 */
#ifndef GPUQD_DEVICES_HAMI_H
#define GPUQD_DEVICES_HAMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/arena.h"

#define HAMI_REGISTER "hami.io/node-nvidia-register" /* of a node: its cards */
#define HAMI_LABEL "gpu" /* of a node: its plugin runs where it is so */
#define HAMI_LABEL_VALUE "on"
#define HAMI_CORDON "hami.io/device-cordon" /* of a node: UUIDs of cards that get no new pods */
#define HAMI_LOCK "hami.io/mutex.lock" /* of a node: "RFC3339,NAMESPACE,POD" */
#define HAMI_NODE "hami.io/vgpu-node"
#define HAMI_TIME "hami.io/vgpu-time"
#define HAMI_TO_ALLOCATE "hami.io/vgpu-devices-to-allocate"
#define HAMI_ALLOCATED "hami.io/vgpu-devices-allocated"
#define HAMI_PHASE "hami.io/bind-phase"
#define HAMI_BIND_TIME "hami.io/bind-time"

#define HAMI_REGISTER_MAX (256u << 10) /* bytes: all annotations of an object together */

/* Devices of one pod: of each container, init containers first, "UUID,TYPE,MIB,CORES:" for each device,
 * and ";". The amounts are the largest of any of them. */
struct hami_devices {
	const char **uuids; /* each once; in the arena */
	size_t n;
	int64_t mib, cores;
};

/* Read them, at most GPUQ_GPUS_PER_POD_MAX. n 0: it is no such text, or names none. Returns 0; GPUQ_ENOMEM. */
int hami_devices_read(const char *text, struct gpuq_arena *a, struct hami_devices *out);

#endif
