/* devices.h - parts of devices
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  nodes.c, nominated.c, pack.c, reasons.c, score.c and others.
 */
#ifndef GPUQD_SCHED_PLACE_DEVICES_H
#define GPUQD_SCHED_PLACE_DEVICES_H

#include "gpuqd/sched/quota/cycle.h"

/* Parts of devices. Thousandths that a part costs on that node; above 1000: it
 * fits on none of its devices. */
int32_t devices_part(const struct cycle *c, uint32_t node, const struct need *n);
/* Memory that goes with so many thousandths of a device (a number over all nodes): what was
 * asked for, or in proportion when that is 0. */
int64_t devices_bytes(const struct cycle *c, uint32_t device, int32_t milli, int64_t asked);
/* Give that back (1) or take it (-1). The caller keeps the node's counts right. */
void devices_shift(struct cycle *c, uint32_t device, int32_t milli, int64_t asked, int sign);
/* As nodes_room, by devices alone. */
uint32_t devices_room(const struct cycle *c, uint32_t node, const struct need *n, uint32_t max);
/* The device that the next part goes to: the fullest with room that is not among those the
 * pod has already. SNAP_NONE: there is none. */
uint32_t devices_pick(const struct cycle *c, uint32_t node, const struct need *n,
		      const uint32_t *taken, uint32_t n_taken);
/* What would become of the devices; false: they have no room. */
bool devices_parts(const struct cycle *c, uint32_t node, const struct need *n, struct parts *out);

#endif
