/* why_missing.h - which node, label, taint or flavor keeps a pending job off all nodes
 *
 * Owns     nothing. Touches memory only. Any thread.
 * Used by  why.c.
 */
#ifndef GPUQD_FLOW_ADVISE_WHY_MISSING_H
#define GPUQD_FLOW_ADVISE_WHY_MISSING_H

#include "gpuqd/flow/advise/why_change.h"

/* Return maps, at most 4, the nearest change first; none where some node meets all that the job asks for:
 *   what    node, exclude, label, flavor, sharing, taint
 *   object  what the job asks for, as disk=ssd; of a taint: what the nodes have, as key=value:NoSchedule
 *   there   what nodes have in its place: values of the label, flavors, kinds of devices; at most 5
 *   note    why nodes that have the label do not do; null = there are none, or nothing is known
 *   nodes   that would do without this alone, at most 5 names; n_nodes: how many they are. 0 = more
 *           than this would have to change */
struct gpuq_val *why_missing(const struct why_case *c);

#endif
