/* snapshot_take_pools.h - nodes of a pool that grows, and do not exist yet; nodes that may be cut
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  snapshot_take.c.
 *
 * A pool with `provisioning: {kind: request}` adds a node for each that was asked for and has not come,
 * and for each that could be asked for: no more than max_nodes in all, than a new request is allowed
 * (max_requests), and than all pending jobs together could use. While its requests fail, while there are
 * max_requests of them, and while none can be made at all, those that could be asked for are down. */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKE_POOLS_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKE_POOLS_H

#include "gpuqd/site/site.h"
#include "gpuqd/snapshot/snapshot_taking.h"

/* Find out for which of the asks nodes have come. */
void snapshot_pools_begin(struct taking *t);
/* Set for how long jobs may run on a node that is taken away. */
void snapshot_pools_end(const struct taking *t, const struct node *n, struct snap_node *sn);
/* Set what a node that has come for an ask is: open to jobs, or not yet. */
void snapshot_pools_node(const struct taking *t, const struct node *n, struct snap_node *sn);
/* Leave out the taints that pods on nodes of the pool, NULL = of none, tolerate since they are there. */
void snapshot_pools_tolerate(const struct site_pool *p, struct snap_taint *taints, uint32_t *n);
/* Add the nodes that do not exist. */
void snapshot_pools_add(struct taking *t);
/* Note of which flavors, now that all nodes are added, none is there and none may be requested for now. */
void snapshot_pools_close(struct taking *t);

/* Which flavors, prices and kinds of nodes a job may use. Nodes of spot pools, and nodes where something has
 * a price, have labels of gpuqd's own in a snapshot, so that the scheduler knows of terms over labels alone. */

#define SPOT_LABEL "gpuq.io/spot" /* of nodes that their cloud may take away */
#define OFFER_LABEL "gpuq.io/offer" /* the pool and the flavor: POOL/FLAVOR */

/* Note what the site has of both. */
void snapshot_pools_offers(struct taking *t);
/* Add the labels of a node of the pool. False: no memory. */
bool snapshot_pools_label(const struct site *s, const char *pool, const char *flavor,
			  struct gpuq_arena *mem, struct gpuq_strmap *labels);
/* Keep the group off nodes that are too dear, and off spot nodes or on them. */
void snapshot_pools_bar(struct taking *t, const struct request_spec *spec, enum gpuq_spot spot,
			struct snap_group *out);
/* Return how long a job waits for each flavor, in the scratch arena; NULL = for none. */
const int64_t *snapshot_pools_waits(struct taking *t, const struct request_spec *spec);
/* Set how far a job has come that has been pending since then. */
void snapshot_pools_wait(struct taking *t, const struct request_spec *spec, int64_t since_us,
			 struct snap_job *out);
/* The same of a job of the model, with the time of its last requeue. */
void snapshot_pools_job(struct taking *t, const struct job *j, struct snap_job *out);

/* Return whether jobs with the request use spot nodes; AUTO is resolved. preemptible: as its qos has it.
 * n_lost: times that such nodes went while it ran there. */
enum gpuq_spot snapshot_pools_spot(const struct request_spec *spec, bool preemptible,
				   uint32_t n_lost, int64_t max_lost);
/* Return how often the job lost spot nodes. */
uint32_t snapshot_pools_lost(const struct job *j);
/* Set the layouts of MIG instances that the node may get now: those of its pool, without the one that its
 * label names, and the one that it was given last for as long as it is not given that again. While its
 * layout is being changed it is suspended, and has that one alone. */
void snapshot_cuts_node(struct taking *t, const struct node *n, struct snap_node *sn);

#endif
