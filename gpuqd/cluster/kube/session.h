/* session.h - exec, attach and port-forward through the apiserver
 *
 * Owns     one session: its WebSocket, and what the channels of it mean.
 * Touches  the apiserver through websocket.h (and http.h for the log that an attach begins
 *          with).
 * Used by  kube.c, signal.c. The contract is cluster.h's.
 *
 * "Kubernetes remote command" protocols v5 and v4.channel.k8s.io: the first byte of each
 * message is its channel. v5 can say that input has ended; with v4 a program that waits
 * for that waits until the session ends.
 */
#ifndef GPUQD_CLUSTER_KUBE_SESSION_H
#define GPUQD_CLUSTER_KUBE_SESSION_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/http/http.h"

/* Never NULL. */
struct cluster_session *session_open(struct loop *l, struct http *h, const char *namespace_,
				     const char *pod, const struct session_opts *opts,
				     const struct session_sink *sink);
bool session_write(struct cluster_session *s, const char *bytes, size_t n);
void session_eof(struct cluster_session *s);
void session_resize(struct cluster_session *s, int cols, int rows);
void session_resume(struct cluster_session *s);
void session_close(struct cluster_session *s);

#endif
