/* links.h - which free devices of a node should go to one pod
 *
 * Owns     a table per kind of node.
 * Touches  memory only.
 * Used by  nodes.c, tests.
 *
 * Devices of a node are joined by links of different speed (NVLink, a PCIe switch, the
 * CPU). A pod's devices talk as slowly as their slowest link: of all free sets of its size
 * it gets one whose slowest link is the fastest; among those one on the fewest NUMA nodes;
 * then one that leaves the others the most speed in sum; then the lowest devices.
 */
#ifndef GPUQD_SNAPSHOT_LINKS_H
#define GPUQD_SNAPSHOT_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/arena.h"

#define LINKS_DEVICES_MAX 64u /* of a node whose links are looked at */
#define LINKS_TABLE_DEVICES 8u /* up to so many every set is compared, above it is greedy */

struct links {
	uint32_t n_devices;
	const uint8_t *classes; /* n_devices x n_devices, larger = faster; NULL = all alike */
	const uint8_t *numa; /* n_devices; NULL = all on one */
	uint8_t (*best)[LINKS_TABLE_DEVICES + 1]; /* by free mask and size; NULL = greedy */
};

/* Make the table for n_devices (1..LINKS_DEVICES_MAX) in mem. classes and numa are borrowed;
 * what classes says of a device and itself means nothing, and of two that disagree in the
 * two directions the slower counts. False: no memory. */
bool links_init(struct links *l, struct gpuq_arena *mem, uint32_t n_devices, const uint8_t *classes,
		const uint8_t *numa);

/* The best k of the free devices, as a mask; 0 <= k <= members of free. */
uint64_t links_choose(const struct links *l, uint64_t free, uint32_t k);

#endif
