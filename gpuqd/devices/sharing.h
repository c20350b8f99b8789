/* sharing.h - requests for a share of a device where a cluster's plugin shares devices
 *
 * Owns     the names and numbers of the sharing systems. Touches memory only: keys of pods
 *          are returned as data.
 * Used by  cluster/kube (reads nodes, writes pods), snapshot/snapshot_take (placement).
 *
 * A node says by the label SHARE_LABEL how its devices are allocated; the cluster's side sets
 * it, from the resources that the node allocates:
 *   whole         nvidia.com/gpu: whole devices only
 *   gpushare      aliyun.com/gpu-mem, in GiB; gpushare-mib: in MiB (Aliyun's gpushare)
 *   time-slicing, mps   replicas of a device, of which a pod gets one
 *   mig           MIG instances of one profile under the name of whole devices
 *   hami          parts that HAMi's scheduler hands out: no job stands there
 * A node without the label offers any share of a device.
 */
#ifndef GPUQD_DEVICES_SHARING_H
#define GPUQD_DEVICES_SHARING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/err.h"
#include "libgpuq/spec.h"

#define SHARE_LABEL "gpuq.io/sharing"
#define SHARE_WORD_ROOM 24
/* The label that names the resource of devices which are not NVIDIA's, set likewise. */
#define SHARE_DEVICES "gpuq.io/devices"

enum share_kind {
	SHARE_ANY,
	SHARE_WHOLE,
	SHARE_GPUSHARE,
	SHARE_GPUSHARE_MIB,
	SHARE_TIME_SLICING,
	SHARE_MPS,
	SHARE_MIG,
	SHARE_HAMI
};

/* By the label's value; SHARE_ANY for "" and for words that are not ours. */
enum share_kind sharing_kind_of(const char *word);
const char *sharing_word(enum share_kind k); /* "" for SHARE_ANY */

bool sharing_by_replica(enum share_kind k); /* parts are replicas, of one size */
bool sharing_by_memory(enum share_kind k); /* parts are memory alone */

/* Words of nodes on which a pod of g cannot stand, NULL-terminated; NULL = on any. */
const char *const *sharing_barred(const struct gpuq_group *g);

/* Words of SHARE_DEVICES on nodes where a pod of g cannot stand, NULL-terminated; NULL = on any. flavors:
 * it names the kinds of device that it takes. */
const char *const *sharing_others(const struct gpuq_group *g, bool flavors);

/* ---- gpushare ---- */

#define GPUSHARE_RESOURCE "aliyun.com/gpu-mem"
#define GPUSHARE_COUNT "aliyun.com/gpu-count"
#define GPUSHARE_INDEX "ALIYUN_COM_GPU_MEM_IDX"
#define GPUSHARE_DEVICE "ALIYUN_COM_GPU_MEM_DEV"
#define GPUSHARE_POD "ALIYUN_COM_GPU_MEM_POD"
#define GPUSHARE_ASSIGNED "ALIYUN_COM_GPU_MEM_ASSIGNED"
#define GPUSHARE_TIME "ALIYUN_COM_GPU_MEM_ASSUME_TIME"

/* Return what a node with `total` units on `count` devices offers: the memory of one device in
 * MiB and the kind. count 0 = 1. SHARE_ANY without any units. More than 1,024 units on one
 * device are read as MiB, as no device has as many GiB. */
enum share_kind sharing_gpushare(int64_t total, int64_t count, int64_t *device_mib);

struct share_ask {
	enum share_kind kind; /* what share of a device */
	int device; /* its index on the node */
	int64_t device_mib; /* of one device of the node */
	int64_t milli; /* of the device */
	int64_t memory_bytes; /* asked for; 0 = by milli */
	int64_t now_us;
	const char *resource; /* of its devices; only replicas are asked for by it */
};

struct sharing_word {
	const char *key; /* of the annotation */
	char value[SHARE_WORD_ROOM];
};

#define SHARE_WORDS_MAX 5

/* How the plugin finds the pod and its device. */
struct sharing_place {
	const char *resource; /* of the one container that has the device: a limit */
	int64_t units;
	struct sharing_word notes[SHARE_WORDS_MAX]; /* annotations */
	size_t n_notes;
};

/* Returns 0; GPUQ_EINVAL when the device cannot hold it or its memory is not known. The
 * times of places that follow one another rise, whatever the clock does. */
int sharing_place(const struct share_ask *ask, struct sharing_place *out, struct gpuq_err *err);

#endif
