/* snapshot_take_calendar.h - the site's reservations, as a cycle sees them
 *
 * Owns     nothing. Touches memory only.
 * Used by  snapshot_take.c alone.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKE_CALENDAR_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKE_CALENDAR_H

#include "gpuqd/state/model.h"
#include "gpuqd/snapshot/snapshot.h"

/* Add the reservations after nodes and queues, whose handles are in node.snap_ix and queue_of (by
 * queue ix). A reservation that is over, or that has only nodes of which none is known, is left
 * out. */
void snapshot_add_calendar(const struct model *m, int64_t now_us, const uint32_t *queue_of,
			   struct snapshot *s);

#endif
