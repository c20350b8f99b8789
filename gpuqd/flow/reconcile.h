/* reconcile.h - facts in, events out
 *
 * Owns     the comparison of the cluster's reports with the ledger.
 * Touches  the model through the journal; requests the removal of orphans from the cluster.
 * Used by  daemon.c (gives its sink to the cluster).
 *
 * After an attempt's last pod has ended it decides: the job ends, or goes back to its queue. A
 * pod that carries our cluster's name but that the ledger does not know is removed on sight,
 * unless the ledger is an older copy (recover.h). After a complete list, pods of the ledger that
 * the list lacks are gone.
 */
#ifndef GPUQD_FLOW_RECONCILE_H
#define GPUQD_FLOW_RECONCILE_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/state/event.h"
#include "libgpuq/err.h"

struct dispatch;
struct journal;
struct measure;
struct origin_pod;
struct recover;
struct reconcile;
struct schedule;

/* Accept any cluster, also when the store belongs to another. */
void reconcile_adopt(struct reconcile *r, bool on);

int reconcile_new(struct journal *j, struct dispatch *d, struct schedule *s, struct reconcile **out,
		  struct gpuq_err *err);
void reconcile_free(struct reconcile *r);

/* Return the sink to start c with; c is requested to remove orphans. */
const struct cluster_sink *reconcile_sink(struct reconcile *r, struct cluster *c);

/* Called with the outcome of signals to pods, err NULL = sent; it is in the job's log then. */
typedef void (*reconcile_signalled_fn)(void *arg, struct pod_key pod, int signal,
				       const struct gpuq_err *err);
void reconcile_on_signalled(struct reconcile *r, reconcile_signalled_fn fn, void *arg);

/* A pod that the kubelet of its node refused. */
struct pod_rejection {
	const char *node, *user;
	uint32_t request; /* number; a job's is never given to another */
	const char *short_of; /* resource that the node lacks; NULL = another reason */
	int64_t short_have; /* so much of it is free there */
	int64_t short_asked; /* by the pod */
};

/* Called when the cluster refuses a pod for its own reasons, before the job gives back its places;
 * with answers to refusal_probe(); and for each pod that a kubelet refused. */
struct reconcile_refusals {
	void *arg;
	void (*refused)(void *arg, struct pod_key pod, const struct refusal *r);
	void (*probed)(void *arg, const char *key, bool taken);
	void (*rejected)(void *arg, const struct pod_rejection *is);
};
void reconcile_on_refused(struct reconcile *r, const struct reconcile_refusals *to);
/* Called when the cluster reports whether this daemon may act in it; set before it starts. */
typedef void (*reconcile_fenced_fn)(void *arg, const struct cluster_fence *f);
void reconcile_on_fenced(struct reconcile *r, reconcile_fenced_fn fn, void *arg);

/* Called whenever a pod of the ledger is seen pending. claims: what one without a node mounts; NULL
 * = it has its node. */
typedef void (*reconcile_unbound_fn)(void *arg, struct pod_key pod,
				     const struct gpuq_strlist *claims);
void reconcile_on_unbound(struct reconcile *r, reconcile_unbound_fn fn, void *arg);

/* Return the state of a recovery after a restore; never NULL. */
struct recover *reconcile_recover(const struct reconcile *r);

/* Return the use of devices, as far as it is measured. */
const struct measure *reconcile_measure(const struct reconcile *r);

/* Return since when the view of the cluster may be stale; 0 = it is not. */
int64_t reconcile_stale_since_us(const struct reconcile *r);
const char *reconcile_stale_why(const struct reconcile *r); /* in words; "" = not known */

/* Called after a job was told to give its places back, since a pod of it was not bound. */
typedef void (*reconcile_released_fn)(void *arg, struct job_key job);
void reconcile_on_released(struct reconcile *r, reconcile_released_fn fn, void *arg);
struct pod;
/* Tell that the pod, which is created, waits for an object. */
void reconcile_waits(struct reconcile *r, const struct pod *p, const char *object,
		     const char *words);
/* Decide about a job whose last pod is over; it may have none. */
void reconcile_verdict(struct reconcile *r, struct job_key job);

/* Called for pods that were not submitted: one that could be queued; one of a job that is seen, has gone, or was
 * bound elsewhere; and after a complete list. */
struct reconcile_adopts {
	void *arg;
	void (*adoptable)(void *arg, const struct adopt_fact *f);
	void (*seen)(void *arg, const struct origin_pod *o, const struct pod_fact *f);
	void (*gone)(void *arg, const char *uid);
	/* Another scheduler gave it another node than that of its placement: it is of others then. */
	void (*elsewhere)(void *arg, struct pod_key pod, const struct pod_fact *f);
	void (*listed)(void *arg);
	const struct owner_sink *owners; /* outlives the cluster */
};
void reconcile_on_adopts(struct reconcile *r, const struct reconcile_adopts *to);

#endif
