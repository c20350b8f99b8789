/* links.h - which free devices of a node should go to one pod
 *
 * Owns     a table per kind of node.
 * Touches  memory only.
 * Used by  nodes.c, tests.
 *
 * Devices of a node are joined by links of different speed (NVLink, a PCIe switch, the
 * CPU). The slowest link of a pod's devices bounds their speed: of all free sets of its
 * size it gets the one whose slowest link is the fastest; among those one on the fewest NUMA
 * nodes; then the one that leaves the most link speed, in sum, among the devices that stay
 * free; then the lowest devices.
 */
#ifndef GPUQD_SNAPSHOT_LINKS_H
#define GPUQD_SNAPSHOT_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/arena.h"

#define LINKS_DEVICES_MAX 64u /* devices of a node beyond which links are ignored */
#define LINKS_TABLE_DEVICES 8u /* maximum for comparing every set; greedy above */

struct links {
	uint32_t n_devices;
	const uint8_t *classes; /* n_devices x n_devices, larger = faster; NULL = all alike */
	const uint8_t *numa; /* n_devices; NULL = all on one */
	uint8_t (*best)[LINKS_TABLE_DEVICES + 1]; /* by free mask and size; NULL = greedy */
};

/* Make the table for n_devices (1..LINKS_DEVICES_MAX) in mem. classes and numa are borrowed; the
 * class of a device with itself is ignored, and where the two directions of a pair differ the
 * slower counts. False: no memory. */
bool links_init(struct links *l, struct gpuq_arena *mem, uint32_t n_devices, const uint8_t *classes,
		const uint8_t *numa);

/* Return the best k of the free devices, as a mask; 0 <= k <= members of free. */
uint64_t links_choose(const struct links *l, uint64_t free, uint32_t k);

#endif
