/* ends.h - nodes that are taken away before a job could end on them
 *
 * Owns     the order in which they are taken away.
 * Touches  memory only.
 * Used by  pack.c, reasons.c, provision.c, sched.c.
 *
 * The nodes of a request run for a time (snap_node.run_us). A job whose time limit and grace period are longer
 * is kept off them, and one without a time limit off those that do not run as long as their pool lets any;
 * unless the job is preemptible, and the pool lets it be cut short. */
#ifndef GPUQD_SCHED_PLACE_ENDS_H
#define GPUQD_SCHED_PLACE_ENDS_H

#include "gpuqd/sched/quota/cycle.h"

void ends_init(struct cycle *c);
/* Return the nodes that the job is kept off, until the next call; NULL = none. */
const uint64_t *ends_of(struct cycle *c, uint32_t job);
/* True if it is kept off that one. */
bool ends_bars(const struct cycle *c, uint32_t job, uint32_t node);

#endif
