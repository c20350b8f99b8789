/* reconcile_int.h - the parts of reconcile
 *
 * Owns     nothing.
 * Used by  reconcile.c, reconcile_outcome.c.
 */
#ifndef GPUQD_FLOW_RECONCILE_INT_H
#define GPUQD_FLOW_RECONCILE_INT_H

#include "gpuqd/flow/reconcile.h"
#include "gpuqd/util/keyset.h"

struct reconcile {
	struct journal *j;
	struct loop *l;
	struct dispatch *dispatch;
	struct schedule *schedule;
	struct cluster *cluster;
	struct cluster_sink sink;
	bool adopt; /* accept any cluster */
	uint32_t generation; /* of the list being received */
	struct keyset seen; /* pods that the cluster has named since the previous list */
	int64_t stale_since_us;
	char stale_why[256];
	struct measure *measure;
	struct recover *recover;
	struct reconcile_refusals on_refused; /* refused NULL = not wanted */
	reconcile_fenced_fn on_fenced; /* NULL = there is no fence */
	void *on_fenced_arg;
	reconcile_signalled_fn on_signalled; /* NULL = not wanted */
	void *on_signalled_arg;
	reconcile_unbound_fn on_unbound; /* NULL = not wanted */
	void *on_unbound_arg;
	reconcile_released_fn on_released; /* NULL = not wanted */
	void *on_released_arg;
	struct reconcile_adopts adopts; /* seen NULL = not wanted */
};

/* Return the pod of the ledger with this name, and its key; NULL = there is none. */
const struct pod *reconcile_pod(struct reconcile *r, const char *name, struct pod_key *key);
/* Apply an event; one that does not fit the state any more is skipped. */
void reconcile_apply(struct reconcile *r, struct event *ev);

/* Set the members of a sink that receive the outcomes of requests; its arg is a reconcile. */
void reconcile_outcomes(struct cluster_sink *s);

#endif
