/* gpu_manager.h - keys and resources of Tencent's gpu-manager
 *
 * Used by  cluster/kube/watch (what a node offers), tests.
 */
#ifndef GPUQD_DEVICES_GPU_MANAGER_H
#define GPUQD_DEVICES_GPU_MANAGER_H

#include <stdint.h>

#define VCUDA_CORE "tencent.com/vcuda-core"
#define VCUDA_MEMORY "tencent.com/vcuda-memory"
#define VCUDA_INDEX "tencent.com/predicate-gpu-idx-" /* and a container's number */
#define VCUDA_NODE "tencent.com/predicate-node"
#define VCUDA_TIME "tencent.com/predicate-time"
#define VCUDA_ASSIGNED "tencent.com/gpu-assigned"
#define VCUDA_LIMIT "tencent.com/vcuda-core-limit"
#define VCUDA_BLOCK_MIB 256
#define VCUDA_CORES 100 /* of a device */

/* Return the number of devices of a node with this many cores and blocks of memory, and the memory of
 * each in MiB: whole blocks. 0 = it has none. */
int64_t gpu_manager_offer(int64_t cores, int64_t blocks, int64_t *device_mib);

#endif
