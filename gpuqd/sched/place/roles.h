/* roles.h - groups of one job that share a domain
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  pack.c.
 */
#ifndef GPUQD_SCHED_PLACE_ROLES_H
#define GPUQD_SCHED_PLACE_ROLES_H

#include "gpuqd/sched/place/topology.h"

/* Order the groups of one job for placement: the one with the fewest places to choose from first,
 * in proportion to its pods; by_size: the one with the largest pods. order has room for all of
 * them. */
void roles_order(struct cycle *c, uint32_t job, uint32_t flavor, bool by_size, uint32_t *order);

/* As pack_groups; all groups that require or prefer one level share a domain of it. */
bool roles_pack(struct cycle *c, uint32_t job, uint32_t flavor);

#endif
