/* gpushare.h - keys and resources of Aliyun's gpushare
 *
 * Used by  cluster/kube/watch (what a node offers), tests.
 */
#ifndef GPUQD_DEVICES_GPUSHARE_H
#define GPUQD_DEVICES_GPUSHARE_H

#include "gpuqd/devices/backend.h"

#define GPUSHARE_RESOURCE "aliyun.com/gpu-mem"
#define GPUSHARE_COUNT "aliyun.com/gpu-count"
#define GPUSHARE_INDEX "ALIYUN_COM_GPU_MEM_IDX"
#define GPUSHARE_DEVICE "ALIYUN_COM_GPU_MEM_DEV"
#define GPUSHARE_POD "ALIYUN_COM_GPU_MEM_POD"
#define GPUSHARE_ASSIGNED "ALIYUN_COM_GPU_MEM_ASSIGNED"
#define GPUSHARE_TIME "ALIYUN_COM_GPU_MEM_ASSUME_TIME"

/* Return what a node with `total` units on `count` devices offers, and the memory of one device in MiB.
 * count 0 = 1. NULL without any units. More than 1,024 units on one device are read as MiB, as no
 * device has as many GiB. */
const struct backend *gpushare_offer(int64_t total, int64_t count, int64_t *device_mib);

#endif
