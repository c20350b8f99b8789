/* topology_why.h - why pods do not fit into domains
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  reasons.c.
 */
#ifndef GPUQD_SCHED_PLACE_TOPOLOGY_WHY_H
#define GPUQD_SCHED_PLACE_TOPOLOGY_WHY_H

#include "gpuqd/sched/place/topology.h"

/* Make a measure of all that a group requires of domains, to be filled node by node and summed up.
 * False, and `failed` is set, without memory. */
bool topology_survey(struct cycle *c, const struct snap_group *g, struct measure *out);
/* True if its pods do not fit, all in one domain where it requires that, each slice in one of its
 * own. Then *why says how many slices fit on the widest level that lacks some (pods, where it
 * requests no slices); more: reasons for the other such levels follow in c->plan.reasons. */
bool topology_lacks(struct cycle *c, const struct snap_group *g, const struct measure *m,
		    enum gpuq_reason code, struct plan_reason *why, bool more);

#endif
