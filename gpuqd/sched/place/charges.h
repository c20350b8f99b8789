/* charges.h - what parts of devices are charged on the nodes where they may be
 *
 * Owns     the least charges that were found, and what limits leave to the current job.
 * Touches  memory only.
 * Used by  elastic.c, emit.c, pack.c, reasons.c. */
#ifndef GPUQD_SCHED_PLACE_CHARGES_H
#define GPUQD_SCHED_PLACE_CHARGES_H

#include "gpuqd/sched/quota/cycle.h"

/* The same part of a device, or the same memory, is charged more on one node than on another: on one it is a replica,
 * on another the device has less memory. A limit refuses the nodes where it would be too much, and no others. */
void charges_init(struct cycle *c);
/* Return the least charge of a start, all groups at their minimum: limits ask for it, see holdings.h. */
int64_t charges_of_start(struct cycle *c, uint32_t job, uint32_t flavor);
/* Return the least that a pod of the group is charged on the nodes of the flavor where it may run, whatever runs
 * there. */
int64_t charges_least(struct cycle *c, uint32_t request, uint32_t group, uint32_t flavor);
/* Compute what limits leave to the job beyond its least charge, for the functions below. */
void charges_begin(struct cycle *c, uint32_t job, uint32_t flavor);
/* The same with what they leave to pods beyond its minimum. */
void charges_begin_with(struct cycle *c, int64_t spare);
/* Return what is left of it beside the places of the job; GPUQ_UNLIMITED = limits are not in the way on any node. */
int64_t charges_left(struct cycle *c, uint32_t request, uint32_t flavor);
/* Return how much more than at least a pod of the group is charged on the node. */
int64_t charges_extra(struct cycle *c, uint32_t request, uint32_t group, uint32_t node);
/* Return the nodes where a pod of the group would be charged more than with `left` beyond the least; NULL = there are
 * none. The set is valid until the next call. */
const uint64_t *charges_dear(struct cycle *c, uint32_t request, uint32_t group, uint32_t flavor,
			     int64_t left);
/* Return what the places of the job are charged; -1 = it does not depend on them. */
int64_t charges_of_places(struct cycle *c, uint32_t job);

#endif
