/* api_post.h - one object, created exactly once
 *
 * Owns     the posts that have not ended.
 * Touches  the apiserver.
 * Used by  api_create.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_API_POST_H
#define GPUQD_CLUSTER_KUBE_PODS_API_POST_H

#include "gpuqd/cluster/kube/pods/api_int.h"

struct post *post_start(struct asks *a, const struct post_call *call);
void post_cancel(struct post *p); /* NULL is allowed; what was sent may still happen */

/* Do not send it (again); find out whether it is there. done follows: ASK_OK, or
 * ASK_REFUSED when it is not. */
void post_abandon(struct post *p);

/* It is known that the server made it, by whatever answer: it is not sent again, and done
 * follows: ASK_OK, without an object where no reply has one. */
void post_made(struct post *p);

#endif
