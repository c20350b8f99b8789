/* devices.h - which NVIDIA devices this machine has
 *
 * Owns     nothing. Touches the driver: libnvidia-ml.so.1 when it can be loaded, else
 *          /proc/driver/nvidia.
 * Used by  the shepherd program in a process of its own (--shepherd --devices): a
 *          driver that hangs or crashes must not take the daemon along.
 *
 * One line a device, in the order in which CUDA_DEVICE_ORDER=PCI_BUS_ID numbers them:
 *   uuid TAB product TAB memory in MiB (0 unknown) TAB 1 healthy or 0 not
 */
#ifndef GPUQD_CLUSTER_LOCAL_DEVICES_H
#define GPUQD_CLUSTER_LOCAL_DEVICES_H

#include <stdio.h>

/* Print all devices to out. Returns how many; 0 also when there is no driver. */
int devices_print(FILE *out);

/* The same from a directory like /proc/driver/nvidia/gpus alone. */
int devices_print_proc(const char *dir, FILE *out);

#endif
