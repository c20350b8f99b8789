/* feasibility.h - on which nodes a group may stand, by its own wishes
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  minimise.c, pack.c, reasons.c, relocate.c, score.c and others.
 */
#ifndef GPUQD_SCHED_PLACE_FEASIBILITY_H
#define GPUQD_SCHED_PLACE_FEASIBILITY_H

#include "gpuqd/sched/quota/cycle.h"

const struct group_fit *feasibility_of(struct cycle *c, uint32_t request, uint32_t group);
/* Free devices where a group may stand, counted again only after something was started.
 * To be asked between jobs alone: not while one is being placed. */
const struct glance *feasibility_glance(struct cycle *c, uint32_t request, uint32_t group,
					uint32_t flavor);
int64_t feasibility_glance_bound(const struct cycle *c, uint32_t request, uint32_t group,
				 uint32_t flavor);
bool feasibility_tolerates(const struct snap_group *g, const struct snap_taint *t);

/* Has no node that was seen then enough cpu and memory beside the devices for one pod? These only
 * become fewer as well. */
bool feasibility_glance_rules_out(const struct cycle *c, uint32_t request, uint32_t group,
				  uint32_t flavor, const struct need *one);

#endif
