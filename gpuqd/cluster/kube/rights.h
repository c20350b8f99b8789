/* rights.h - rights of gpuqd's account, queried from the apiserver
 *
 * Owns     the table of rights by feature (etc/kubernetes grants them), one review.
 * Touches  the apiserver through http.h: SelfSubjectAccessReview, which any account may create.
 * Used by  kube.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_RIGHTS_H
#define GPUQD_CLUSTER_KUBE_RIGHTS_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/http/http.h"

struct rights;

/* Ask for every right, a few at a time; those of a namespace for each of the namespaces (copied),
 * those of the daemon itself in own, which outlives the review. And for the things that systems which share
 * devices bring.
 * fn is called once, never from inside, with all of them; the review is gone then. */
int rights_ask(struct http *h, const char *own, const struct cluster_rights_of *of,
	       cluster_rights_fn fn, void *arg, struct rights **out, struct gpuq_err *err);
void rights_free(struct rights *r); /* not from inside fn; NULL is allowed */

#endif
