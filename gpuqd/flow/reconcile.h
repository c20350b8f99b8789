/* reconcile.h - facts in, events out
 *
 * Owns     the comparison of what a cluster says with what the ledger holds; how
 *          often a node refused pods lately.
 * Touches  the model through the journal; asks the cluster to remove orphans.
 * Used by  daemon.c (gives its sink to the cluster).
 *
 * After an attempt's last pod has ended it draws the verdict: the job ends, or goes
 * back to its queue. A pod that carries our cluster's name but that the ledger does
 * not know is removed on sight, unless the ledger is an older copy (recover.h). After a complete list, what the ledger holds and the
 * list does not have is gone.
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

/* Go on with whatever cluster there is, also when the store belongs to another. */
void reconcile_adopt(struct reconcile *r, bool on);

int reconcile_new(struct journal *j, struct dispatch *d, struct schedule *s, struct reconcile **out,
		  struct gpuq_err *err);
void reconcile_free(struct reconcile *r);

/* The sink to start c with; c is asked to remove orphans. */
const struct cluster_sink *reconcile_sink(struct reconcile *r, struct cluster *c);

/* Who wants to know how signals to pods fared, err NULL = sent; it is in the job's log then. */
typedef void (*reconcile_signalled_fn)(void *arg, struct pod_key pod, int signal,
				       const struct gpuq_err *err);
void reconcile_on_signalled(struct reconcile *r, reconcile_signalled_fn fn, void *arg);

/* What a restore has left open; never NULL. */
struct recover *reconcile_recover(const struct reconcile *r);

/* What devices do, as far as it is measured. */
const struct measure *reconcile_measure(const struct reconcile *r);

/* Since when what is known of the cluster may be old; 0 = it is not. */
int64_t reconcile_stale_since_us(const struct reconcile *r);

#endif
