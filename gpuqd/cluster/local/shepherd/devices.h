/* devices.h - NVIDIA devices of this machine
 *
 * Owns     nothing. Touches the driver: libnvidia-ml.so.1 when it can be loaded, else
 *          /proc/driver/nvidia.
 * Used by  the shepherd program in a process of its own (--shepherd --devices): a
 *          driver that hangs or crashes must not take the daemon along.
 *
 * One line a device, in the order in which CUDA_DEVICE_ORDER=PCI_BUS_ID numbers them:
 *   uuid TAB product TAB memory in MiB (0 unknown) TAB 1 healthy or 0 not TAB links TAB minor
 * links: how fast it is joined to device 0, 1, ...: a digit each, larger = faster, 9 NVLink,
 * 5 one PCIe switch, 1 across the machine, 0 itself or unknown; empty if none is known.
 * minor: the N of /dev/nvidiaN, which differs from its index in this order; -1 unknown.
 */
#ifndef GPUQD_CLUSTER_LOCAL_SHEPHERD_DEVICES_H
#define GPUQD_CLUSTER_LOCAL_SHEPHERD_DEVICES_H

#include <stdint.h>
#include <stdio.h>

#define DEVICES_LINKED_MAX 64 /* links are not read beyond this number */

/* Print all devices to out. Returns how many; 0 also when there is no driver. */
int devices_print(FILE *out);

/* Print utilization repeatedly until the reader is gone: for each device that answers its uuid,
 * a TAB and its maximum since the last report, in thousandths (below 0: not measured), a TAB and the most
 * bytes of its memory that were taken then (0: not measured), then an empty line. Returns -1 at once when the driver is not available. every_us: 1 ms or more. */
int devices_watch(FILE *out, int64_t every_us);

/* The list of devices from a directory like /proc/driver/nvidia/gpus alone. */
int devices_print_proc(const char *dir, FILE *out);

#endif
