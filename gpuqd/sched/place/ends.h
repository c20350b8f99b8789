/* ends.h - nodes that are taken away before a job could end on them
 *
 * Owns     the order in which they are taken away.
 * Touches  memory only.
 * Used by  pack.c, reasons.c, provision.c, sched.c.
 *
 * The nodes of a request run for a time (snap_node.run_us). A job whose time limit and grace period are longer
 * is kept off them, and one without a time limit off those that do not run as long as their pool lets any;
 * unless the job is preemptible, and the pool lets it be cut short. The time that a node booted is not counted for the
 * jobs that it was requested for: they start with what is left. Nothing starts with less left, before the attempt is told
 * to end, than a tenth of its time limit, which is a minute at least and 10 minutes at most, or all of it. */
#ifndef GPUQD_SCHED_PLACE_ENDS_H
#define GPUQD_SCHED_PLACE_ENDS_H

#include "gpuqd/sched/quota/cycle.h"

void ends_init(struct cycle *c);
/* Return the nodes that the job is kept off, until the next call; NULL = none. */
const uint64_t *ends_of(struct cycle *c, uint32_t job);
/* Add the nodes that last longer than the job needs by more than a node may boot: they are left to jobs that need
 * them, where others will do. False: none was added. */
bool ends_longer(const struct cycle *c, uint32_t job, uint64_t *set);
/* True if it is kept off that one. */
bool ends_bars(const struct cycle *c, uint32_t job, uint32_t node);

#endif
