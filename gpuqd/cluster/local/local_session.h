/* local_session.h - the daemon's end of a session
 *
 * Owns     the connection to the pod's shepherd.
 * Used by  local.c, as operations of the cluster.
 */
#ifndef GPUQD_CLUSTER_LOCAL_LOCAL_SESSION_H
#define GPUQD_CLUSTER_LOCAL_LOCAL_SESSION_H

#include "gpuqd/cluster/local/local_int.h"

struct cluster_session *local_session_open(struct cluster *c, const struct pod_ref *ref,
					   const struct session_opts *opts,
					   const struct session_sink *sink, struct gpuq_err *err);
bool local_session_write(struct cluster_session *s, const char *bytes, size_t n);
void local_session_eof(struct cluster_session *s);
void local_session_resize(struct cluster_session *s, int cols, int rows);
void local_session_resume(struct cluster_session *s);
void local_session_close(struct cluster_session *s);

#endif
