/* local_log.h - the output of jobs, followed and kept
 *
 * Owns     the logs that are open.
 * Touches  DIR/logs, inotify.
 * Used by  local_pod.c; local.c, as operations of the cluster.
 */
#ifndef GPUQD_CLUSTER_LOCAL_LOCAL_LOG_H
#define GPUQD_CLUSTER_LOCAL_LOCAL_LOG_H

#include "gpuqd/cluster/local/local_int.h"

struct cluster_log *local_log_open(struct cluster *c, const struct pod_ref *ref,
				   const struct log_opts *opts, log_fn fn, void *arg,
				   struct gpuq_err *err);
void local_log_resume(struct cluster_log *log);
void local_log_close(struct cluster_log *log);
void local_log_poke(struct local *l, const char *pod); /* look again; NULL = all */
void local_log_event(struct local *l, int wd);
void local_log_trim(struct local *l);

#endif
