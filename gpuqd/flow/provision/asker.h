/* asker.h - make the requests for nodes that were decided, and hear of them
 *
 * Owns     what was asked of the cluster for each ask in this run, and the timer of their limits.
 * Touches  the model through the journal; the cluster through its header.
 * Used by  daemon.c.
 *
 * It compares, as dispatch.h does: an attempt that is decided and durable is made; one that failed, or that
 * no job needs, is removed, and is over once nothing is left of it. Each step can be repeated, since
 * names and tokens follow from what is stored: a restart goes through all asks once. The outcome of an attempt
 * is decided here (verdict.h), with the limits of its pool: timeout, booking, retries. */
#ifndef GPUQD_FLOW_PROVISION_ASKER_H
#define GPUQD_FLOW_PROVISION_ASKER_H

#include "libgpuq/err.h"

struct asker;
struct cluster;
struct journal;
struct schedule;

/* s outlives it. */
int asker_new(struct journal *j, const struct schedule *s, struct asker **out,
	      struct gpuq_err *err);
void asker_free(struct asker *a); /* NULL is fine */
/* NULL = there is none. */
void asker_set_cluster(struct asker *a, struct cluster *c);

#endif
