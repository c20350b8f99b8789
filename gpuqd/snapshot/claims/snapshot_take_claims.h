/* snapshot_take_claims.h - where claims of devices fit, as amounts
 *
 * Owns     for one snapshot: the groups of requests that have claims, and how often each fits on a node.
 * Touches  memory only.
 * Used by  snapshot_take.c, snapshot_take_objects.c.
 *
 * The scheduler counts. For each group with claims, and each choice of their alternatives, there is a
 * resource of its own, of which a pod takes one, and a node has as many as devices of it match and are
 * free, with those that its own pods have. Which devices these are is decided when a pod is bound.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKE_CLAIMS_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKE_CLAIMS_H

#include "gpuqd/snapshot/snapshot.h"
#include "gpuqd/snapshot/snapshot_take_objects.h"
#include "gpuqd/state/model.h"

struct snap_claims;

/* NULL: no memory. All but a table lives in mem. */
struct snap_claims *snapshot_claims_new(const struct model *m, struct gpuq_arena *mem);
void snapshot_claims_done(struct snap_claims *c); /* NULL is fine */

/* Note what keeps the claims of a group from being served anywhere. isolated: its devices are to be apart from those of
 * other pods. */
void snapshot_claims_gate(struct snap_claims *c, const char *namespace_, const struct gpuq_group *g,
			  bool isolated, struct snap_variant *v);
/* Add what a pod of the group takes, with that choice of alternatives: of group ix of a request, r NULL = of one that
 * is not kept. together: pods that share a claim are to be one. */
void snapshot_claims_group(struct snap_claims *c, const char *namespace_, const struct request *r,
			   uint32_t ix, const struct gpuq_group *g, struct gpuq_alternatives choice,
			   bool together, struct snap_group *out);
/* Add what the node has of these. */
void snapshot_claims_node(struct snap_claims *c, const struct node *n, struct snap_node *sn);

#endif
