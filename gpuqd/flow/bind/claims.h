/* claims.h - claims of devices: made, allocated, reserved for a pod, and given back
 *
 * Owns     decisions that are not seen in the claim yet.
 * Touches  the cluster: ResourceClaims.
 * Used by  bind.c.
 *
 * A claim is allocated and reserved in one write, which holds only while the claim is as it was seen. If
 * it is not, the cluster refuses the write, the claim is seen anew, and it is decided anew. All that a pod
 * that has gone left behind is given back, whoever deleted it: its place among the consumers of a claim;
 * the allocation, where no consumer is left and gpuqd made it; the claim, where gpuqd made that.
 */
#ifndef GPUQD_FLOW_BIND_CLAIMS_H
#define GPUQD_FLOW_BIND_CLAIMS_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/flow/journal.h"
#include "gpuqd/state/model.h"

struct claims;

enum progress { SETTLED, WAITS, ELSEWHERE, GONE };

struct claims *claims_new(struct journal *j); /* NULL: no memory */
void claims_free(struct claims *c); /* NULL is fine */
void claims_set_cluster(struct claims *c, struct cluster *to);

/* Go on with the claims of a pod that waits for its node. ask: what was asked for before may be asked for
 * again; *asked is set if anything was. ELSEWHERE: they do not fit on its node, *which is the claim. */
enum progress claims_settle(struct claims *c, const struct pod *p, const struct pod_ref *ref,
			    bool ask, bool *asked, const char **which);

#endif
