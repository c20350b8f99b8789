/* resource.h - names of the resources that nodes offer and pods request
 *
 * Owns     the table of names with a meaning of their own: devices, words of a dialect.
 * Touches  memory only.
 * Used by  spec/ (job files, manifests), cluster/kube (nodes, pods), the daemon's ledger.
 *
 * A resource that is no device, no word of a dialect and none of the pod's own (cpu, memory)
 * is countable: a node has so many, a pod takes so many, and they are compared by name.
 */
#ifndef LIBGPUQ_SPEC_RESOURCE_H
#define LIBGPUQ_SPEC_RESOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/err.h"
#include "libgpuq/schema.h"
#include "libgpuq/spec/profile.h"

#define GPUQ_RESOURCE_GPU "nvidia.com/gpu"
#define GPUQ_RESOURCE_SHARED "nvidia.com/gpu.shared"
#define GPUQ_RESOURCE_MIG "nvidia.com/mig-" /* and a profile */
#define GPUQ_RESOURCE_STORAGE "ephemeral-storage"
#define GPUQ_RESOURCE_GRES "gres/" /* and a name that the site maps to a resource */

#define GPUQ_PART_MIN_MILLI 10 /* the least part of a device that can be requested */
#define GPUQ_RESOURCES_MAX 16 /* different ones of one pod */
#define GPUQ_RESOURCE_NAME_MAX 317 /* bytes: a domain of 253, '/', a name of 63 */

#define GPUQ_RESOURCE_COUNT_MAX INT64_C(100000000) /* of one in a pod */
/* The same of those in bytes: less than what a node has that does not count the resource. */
#define GPUQ_RESOURCE_BYTES_MAX (INT64_MAX / 8)

enum gpuq_resource_kind {
	GPUQ_RESOURCE_COUNTED, /* extended resources, hugepages-SIZE, ephemeral-storage */
	GPUQ_RESOURCE_DEVICE, /* whole devices: nvidia.com/gpu, amd.com/gpu */
	GPUQ_RESOURCE_REPLICA, /* a replica of a device: nvidia.com/gpu.shared */
	GPUQ_RESOURCE_INSTANCE, /* a MIG instance: nvidia.com/mig-1g.10gb */
	GPUQ_RESOURCE_MAPPED, /* gres/NAME: what the site says it is */
	GPUQ_RESOURCE_WORD, /* of a dialect that shares devices: nvidia.com/gpumem */
	GPUQ_RESOURCE_OWN, /* cpu, memory, pods: counted by themselves */
	GPUQ_RESOURCE_UNKNOWN, /* no name that Kubernetes accepts */
};

enum gpuq_resource_kind gpuq_resource_kind(const char *name);
bool gpuq_resource_is_bytes(const char *name);
/* Return why no node can offer a resource of that name to pods, although it looks like one; NULL = it can. */
const char *gpuq_resource_never(const char *name);
/* Check that a pod can request so much of it: GPUQ_EINVAL or GPUQ_ERANGE, and what is expected. */
int gpuq_amount_check(const struct gpuq_amount *amount, struct gpuq_err *err);
/* Words that request nothing by themselves: nvidia.com/priority, aliyun.com/gpu-count. */
bool gpuq_resource_is_remark(const char *name);

/* Devices of which a job asks by flavor or by name alone: no GPUs. */
bool gpuq_resource_is_accelerator(const char *name);
/* Names of all devices but NVIDIA's, NULL-terminated; the accelerators among them last. */
extern const char *const gpuq_resource_others[];
extern const char *const *const gpuq_resource_accelerators;
/* Words of the dialects that share devices, NULL-terminated. */
extern const char *const gpuq_resource_words[];

/* Sort by name, and add up equal ones. Returns how many are left; those of 0 are not. */
size_t gpuq_amounts_sort(struct gpuq_amount *items, size_t n);
bool gpuq_amounts_same(const struct gpuq_amount *a, size_t n_a, const struct gpuq_amount *b,
		       size_t n_b);
/* The count of a name; 0 = not among them. */
int64_t gpuq_amounts_get(const struct gpuq_amount *items, size_t n, const char *name);

#endif
