/* identity.h - is this still the cluster that the store belongs to?
 *
 * Owns     one question. Touches the apiserver through http.h.
 * Used by  kube.c, before anything else is asked.
 *
 * A cluster is known by the uid of its namespace kube-system, which lives as long as the
 * cluster does. With the wrong credentials file all jobs would seem to be gone.
 */
#ifndef GPUQD_CLUSTER_KUBE_IDENTITY_H
#define GPUQD_CLUSTER_KUBE_IDENTITY_H

#include "gpuqd/cluster/kube/http/http.h"

struct identity;

/* uid: "" when the server does not let us see it. Called once, never from inside; asked
 * again until there is a reply. */
typedef void (*identity_fn)(void *arg, const char *uid);

/* silent: why there was no reply, in words, each time. NULL: no memory. */
struct identity *identity_ask(struct loop *l, struct http *h, identity_fn fn, identity_fn silent,
			      void *arg);
void identity_free(struct identity *i); /* NULL is allowed; not from inside the callback */

#endif
