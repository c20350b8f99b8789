/* order.h - description of a pod, for the cluster
 *
 * Owns     the GPUQ_* and rendezvous variables (their names are in gpuq-job(5)).
 * Touches  the model and the job's stored spec; no decisions.
 * Used by  flow/dispatch, rpc (signals).
 */
#ifndef GPUQD_FLOW_ORDER_H
#define GPUQD_FLOW_ORDER_H

#include <stdbool.h>

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/state/model.h"
#include "libgpuq/arena.h"

struct store;

/* Get the stored spec of a job. Returns 0, GPUQ_ENOENT, GPUQ_ECORRUPT. */
int order_spec(struct store *st, uint32_t job, struct gpuq_arena *a, struct gpuq_spec *out,
	       struct gpuq_err *err);

/* Fill out for pod p of job j; strings live in a, spec and model. local: the pods share
 * this machine's loopback. Returns 0 or GPUQ_ENOMEM. */
int order_fill(const struct model *m, const struct job *j, const struct pod *p,
	       const struct gpuq_spec *spec, bool local, struct gpuq_arena *a,
	       struct pod_order *out, struct gpuq_err *err);

/* Fill out as for the first pod of group of a job that is not submitted, to have it judged. */
int order_try(const struct model *m, const struct queue *q, const char *user,
	      const struct gpuq_spec *spec, uint32_t group, struct gpuq_arena *a,
	      struct pod_order *out);

/* Return the service account that a template names ("" none), and the one that its pods have: the
 * template's where the queue lets manifests name it, else the queue's ("" none). */
const char *order_account_asked(const struct gpuq_group *g);
const char *order_account(const struct queue *q, const struct gpuq_group *g);

/* Get whether container (NULL = the first) of group reads input, and whether that is a terminal. */
void order_terminal(const struct gpuq_spec *spec, uint32_t group, const char *container,
		    bool *input, bool *tty);

/* Return the cluster's reference to a pod that it told of; valid as long as p is. */
struct pod_ref order_fact_ref(const struct pod_fact *p);

/* Get the cluster's reference to pod p of j; name is the buffer for the name that gpuqd has for it. */
void order_ref(const struct model *m, const struct job *j, const struct pod *p, char name[64],
	       struct pod_ref *ref);

/* Get the names of the claims of pod p of j, whose name in the cluster is `name`: those that it mounts, and
 * those of its ephemeral volumes. Returns 0 or GPUQ_ENOMEM. */
int order_claims(const struct job *j, const struct pod *p, const struct gpuq_spec *spec,
		 const char *name, struct gpuq_arena *a, struct gpuq_strlist *out,
		 struct gpuq_err *err);

/* True if it was evicted for others, not ended by its owner or its own limit. */
bool order_is_evicted(const struct job *j);
/* Return the grace period of a pod of j: what the job requests (its checkpoint's grace when it is
 * evicted), and at most what it was given when it was signalled. */
int64_t order_grace_us(const struct job *j, bool evicted, const struct gpuq_spec *spec);

/* Return the namespace of a queue: its own, or the nearest above; "" none. */
const char *order_namespace(const struct queue *q);

/* True if its pods stay until the ledger has their results. */
bool order_has_finalizer(const struct queue *q);
/* Return the namespace of a job's pods; "" = there is no such job, or it is the cluster's default. */
const char *order_namespace_of(const struct model *m, struct job_key key);
/* True if its pods are created without a node, and bound (start: bind). */
bool order_binds(const struct queue *q);

#endif
