/* logs.h - the output of a pod, through the apiserver
 *
 * Owns     one request and the place in the log up to which it has been handed on.
 * Touches  the apiserver through http.h.
 * Used by  kube.c.
 *
 * Following goes on over broken connections: each line has its time, reading resumes
 * at the time of the last one, and lines that had come already are left out. It ends
 * when the pod has ended and its log has been read to the end.
 */
#ifndef GPUQD_CLUSTER_KUBE_LOGS_H
#define GPUQD_CLUSTER_KUBE_LOGS_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/http/http.h"
#include "gpuqd/cluster/kube/watch/watch.h"

/* watch tells whether the pod still runs; NULL = not known yet. */
int logs_open(struct loop *l, struct http *h, const struct watch *watch, const char *namespace_,
	      const struct pod_ref *ref, const struct log_opts *opts, log_fn fn, void *arg,
	      struct cluster_log **out, struct gpuq_err *err);
void logs_resume(struct cluster_log *log);
void logs_close(struct cluster_log *log);

#endif
