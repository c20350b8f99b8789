/* trial.h - pods that the apiserver judges and does not make
 *
 * Owns     the request of one trial.
 * Touches  the apiserver, by a server-side dry run.
 * Used by  kube.c (cluster_ops.pod_try).
 */
#ifndef GPUQD_CLUSTER_KUBE_TRIAL_H
#define GPUQD_CLUSTER_KUBE_TRIAL_H

#include "gpuqd/cluster/cluster.h"

struct http;

/* ns: of orders that name none. Returns NULL with err when the order makes no pod. */
struct cluster_trial *trial_start(struct http *h, const char *ns, const struct pod_order *o,
				  cluster_trial_fn fn, void *arg, struct gpuq_err *err);
void trial_cancel(struct cluster_trial *t);

#endif
