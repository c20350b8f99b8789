/* status.h - what a reply of the apiserver means for what was asked
 *
 * Owns     nothing. Touches memory only.
 * Used by  api.c, watch.c, logs.c; tests.
 *
 * By HTTP code first, then the Status object's reason, then its message: a body need
 * not be a Status (flow control answers text, a proxy HTML).
 */
#ifndef GPUQD_CLUSTER_KUBE_HTTP_STATUS_H
#define GPUQD_CLUSTER_KUBE_HTTP_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/http/http.h"

enum status_kind {
	STATUS_DONE, /* 2xx */
	STATUS_GONE, /* 404: no such object */
	STATUS_EXISTS, /* 409 AlreadyExists */
	STATUS_CONFLICT, /* 409: a precondition does not hold */
	STATUS_EXPIRED, /* 410, or a version the server does not have yet */
	STATUS_QUOTA, /* 403: the namespace's quota is used up */
	STATUS_FORBIDDEN, /* 403 of another kind: it may pass, so try a few times */
	STATUS_CLUSTER, /* refused for reasons of the namespace or the cluster: see object */
	STATUS_REFUSED, /* as it is it will never be taken */
	STATUS_LATER, /* it has not happened: try again */
	STATUS_UNKNOWN, /* it may have happened: look, then try again */
};

struct status {
	enum status_kind kind;
	char text[448]; /* one line for people: the server's words and causes */
	/* With STATUS_CLUSTER: what is missing or refuses ("serviceaccount/runner"), and the jobs
	 * that it would refuse as well. The name is "" where the server names none: that of the
	 * namespace stands for it. */
	char object[288];
	enum refusal_scope scope;
	char level[16]; /* the Pod Security Standard that is violated; "" none */
};

void status_read(const struct http_answer *a, struct status *out);

#endif
