/* watch_jobs.h - Jobs of some namespaces, kept up to date as nodes and pods are
 *
 * Used by  watch.c, kube.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_WATCH_JOBS_H
#define GPUQD_CLUSTER_KUBE_WATCH_WATCH_JOBS_H

#include <jansson.h>

#include "gpuqd/cluster/kube/watch/watch.h"

/* job NULL: the one of that uid has gone. */
typedef void (*watch_job_fn)(void *arg, json_t *job, const char *uid);
/* A complete list of a namespace has come. */
typedef void (*watch_jobs_fn)(void *arg, const char *namespace_);
/* List and watch batch/v1 Jobs of these namespaces that have the label KUBE_L_KUEUE, from now on. */
void watch_jobs(struct watch *w, const char *const *namespaces, size_t n, watch_job_fn seen,
		watch_jobs_fn listed, void *arg);

#endif
