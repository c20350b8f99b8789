/* placeholders.h - pods that stand for nodes which an autoscaler is to make
 *
 * Owns     the steps done for each ask of placeholders in this run of the daemon, and the placeholders
 *          that the cluster has.
 * Touches  the cluster, through its placeholder_make and placeholder_drop; the journal.
 * Used by  asker.c.
 *
 * There is one for each node of an ask that has not come, and, while some pool has such an ask, one for each
 * empty node of the pool: the autoscaler takes a pod that would fit there for one that needs no node, and
 * empty nodes are planned for, as those of an ask are until all have come. Their names follow from the ask, its
 * attempt and an index: what a daemon that was killed had made is not made again. One that the cluster has
 * and no ask needs is removed, one that others removed is made again.
 */
#ifndef GPUQD_FLOW_PROVISION_PLACEHOLDERS_H
#define GPUQD_FLOW_PROVISION_PLACEHOLDERS_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/state/asks/ask.h"

struct journal;
struct placeholders;

struct placeholders *placeholders_new(struct journal *j); /* NULL = no memory */
void placeholders_free(struct placeholders *p); /* NULL is allowed */
/* NULL = there is none: nothing of the last one is known any more. */
void placeholders_set_cluster(struct placeholders *p, struct cluster *c);

/* Have the cluster hold what is decided of the ask, which is durable. */
void placeholders_sync(struct placeholders *p, const struct ask *a);
/* Remove those that no ask needs. */
void placeholders_clean(struct placeholders *p);

/* True if the name is that of a placeholder: then it was heard. */
bool placeholders_asked(struct placeholders *p, const char *name, enum capacity_outcome o,
			const char *message);
bool placeholders_dropped(struct placeholders *p, const char *name);
void placeholders_seen(struct placeholders *p, const char *name, const char *namespace_,
		       const char *token, bool gone);

#endif
