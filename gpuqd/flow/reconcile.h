/* reconcile.h - facts in, events out
 *
 * Owns     the comparison of the cluster's reports with the ledger; how often a node refused
 *          pods lately.
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

/* Return the state of a recovery after a restore; never NULL. */
struct recover *reconcile_recover(const struct reconcile *r);

/* Return the use of devices, as far as it is measured. */
const struct measure *reconcile_measure(const struct reconcile *r);

/* Return since when the view of the cluster may be stale; 0 = it is not. */
int64_t reconcile_stale_since_us(const struct reconcile *r);

#endif
