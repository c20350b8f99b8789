/* local_pod.h - pods of the local cluster: from an order to the end of its process
 *
 * Owns     the pods that are known, and what is to be reported of them.
 * Touches  their directories, shepherds.
 * Used by  local_*.c; local.c, as operations of the cluster.
 */
#ifndef GPUQD_CLUSTER_LOCAL_LOCAL_POD_H
#define GPUQD_CLUSTER_LOCAL_LOCAL_POD_H

#include "gpuqd/cluster/local/local_int.h"

struct local_pod *local_pod_find(struct local *l, const char *name);
/* Is it the pod that ref means: by its uid where that is known, else by its token? */
bool local_pod_meant(const struct local_pod *p, const struct pod_ref *ref);
int local_pods_load(struct local *l, struct gpuq_err *err);
void local_pod_advance(struct local *l, struct local_pod *p);
void local_pod_trouble(struct local *l, struct local_pod *p, const char *why);
void local_pod_fact(const struct local *l, const struct local_pod *p, struct pod_fact *out);
void local_pod_free(struct local *l, struct local_pod *p);
void local_pod_create(struct cluster *c, const struct pod_order *order);
void local_pod_delete(struct cluster *c, const struct pod_ref *ref, int64_t grace_us);
int local_pod_signal(struct cluster *c, const struct pod_ref *ref, int signal,
		     struct gpuq_err *err);
void local_pod_forget(struct cluster *c, const struct pod_ref *ref);
int local_pod_running(struct local *l, const struct pod_ref *ref); /* its directory, or -1 */

#endif
