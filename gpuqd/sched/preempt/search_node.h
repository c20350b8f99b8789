/* search_node.h - nodes that are cleared for a gang, the cheapest first
 *
 * Touches  memory only.
 * Used by  search.c.
 */
#ifndef GPUQD_SCHED_PREEMPT_SEARCH_NODE_H
#define GPUQD_SCHED_PREEMPT_SEARCH_NODE_H

#include "gpuqd/sched/preempt/preempt_int.h"

/* Clear nodes for all pods of the gang, the cheapest first. */
bool search_clear_nodes(struct cycle *c, struct claim *k);
/* Return the level that requires its pods in one domain; NULL = none. */
const char *search_required_level(const struct snap_request *r);

#endif
