/* order.h - what a pod is to be, for the cluster
 *
 * Owns     the GPUQ_* and rendezvous variables (their names are in gpuq-job(5)).
 * Touches  the model and the job's stored spec; no decisions.
 * Used by  flow/dispatch, rpc (signals). */
#ifndef GPUQD_FLOW_ORDER_H
#define GPUQD_FLOW_ORDER_H

#include <stdbool.h>

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/state/model.h"
#include "libgpuq/arena.h"

struct store;

/* The stored spec of a job. Returns 0, GPUQ_ENOENT, GPUQ_ECORRUPT. */
int order_spec(struct store *st, uint32_t job, struct gpuq_arena *a, struct gpuq_spec *out,
	       struct gpuq_err *err);

/* Fill out for pod p of job j; strings live in a, spec and model. local: the pods share
 * this machine's loopback. Returns 0 or GPUQ_ENOMEM. */
int order_fill(const struct model *m, const struct job *j, const struct pod *p,
	       const struct gpuq_spec *spec, bool local, struct gpuq_arena *a,
	       struct pod_order *out, struct gpuq_err *err);

/* What container (NULL = the first) of group has open: whether it reads input, and whether
 * that is a terminal. */
void order_terminal(const struct gpuq_spec *spec, uint32_t group, const char *container,
		    bool *input, bool *tty);

/* What names pod p of j to the cluster; name is where its name goes. */
void order_ref(const struct model *m, const struct job *j, const struct pod *p, char name[64],
	       struct pod_ref *ref);

/* Was it told to leave for others, not by its owner or its own limit? */
bool order_is_evicted(const struct job *j);
/* How long a pod of j may take to leave: what the job asked for (its checkpoint's grace
 * when it is evicted), and at most what it was given when it was told. */
int64_t order_grace_us(const struct job *j, bool evicted, const struct gpuq_spec *spec);

/* The namespace of a queue: its own, or the nearest above; "" none. */
const char *order_namespace(const struct queue *q);

/* Do its pods stay until the ledger has what they did? */
bool order_has_finalizer(const struct queue *q);

#endif
