/* status.h - what an answer of the apiserver means for what was asked
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

#include "gpuqd/cluster/kube/http/http.h"

enum status_kind {
	STATUS_DONE, /* 2xx */
	STATUS_GONE, /* 404: no such object */
	STATUS_EXISTS, /* 409 AlreadyExists */
	STATUS_CONFLICT, /* 409: a precondition does not hold */
	STATUS_EXPIRED, /* 410, or a version the server does not have yet */
	STATUS_QUOTA, /* 403: the namespace's quota is used up */
	STATUS_FORBIDDEN, /* 403 of another kind: it may pass, so try a few times */
	STATUS_REFUSED, /* as it is it will never be taken */
	STATUS_LATER, /* it has not happened: try again */
	STATUS_UNKNOWN, /* it may have happened: look, then try again */
};

struct status {
	enum status_kind kind;
	char text[416]; /* one line for people: the server's words and causes */
};

void status_read(const struct http_answer *a, struct status *out);

#endif
