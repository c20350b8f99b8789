/* devices.h - parts of devices
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  nodes.c, nominated.c, pack.c, reasons.c, score.c and others.
 */
#ifndef GPUQD_SCHED_PLACE_DEVICES_H
#define GPUQD_SCHED_PLACE_DEVICES_H

#include "gpuqd/sched/place/nodes.h"
#include "gpuqd/sched/quota/cycle.h"

/* Return the thousandths that a part costs on that node; above 1000: it fits on none of its
 * devices. */
int32_t devices_part(const struct cycle *c, uint32_t node, const struct need *n);
/* Return the memory that goes with that many thousandths of a device (numbered over all nodes):
 * what was requested in units of its node, or in proportion, in whole units, when that is 0. */
int64_t devices_bytes(const struct cycle *c, uint32_t device, int32_t milli, int64_t asked);
/* Release (1) or take (-1) a part. The caller keeps the node's counts right. */
void devices_shift(struct cycle *c, uint32_t device, int32_t milli, int64_t asked, int sign);
/* As nodes_room, counting devices only. */
uint32_t devices_room(const struct cycle *c, uint32_t node, const struct need *n, uint32_t max);
/* Return the device that the next part goes to: the fullest with room that is not among those the
 * pod has already. SNAP_NONE: no device has room. */
uint32_t devices_pick(const struct cycle *c, uint32_t node, const struct need *n,
		      const uint32_t *taken, uint32_t n_taken);
/* Compute the state of the devices with the pod's parts on them; false: they have no room. */
bool devices_parts(const struct cycle *c, uint32_t node, const struct need *n, struct parts *out);

#endif
