/* owners.h - Jobs that are suspended until gpuqd starts them
 *
 * Owns     what is known of each, and what is under way for it.
 * Touches  the apiserver through http.h: starts them behind the gate, suspends them again, restores templates.
 * Used by  kube.c.
 *
 * Each write is made for the version of the Job that was decided on; after a conflict it is read and decided
 * anew. So whatever was lost, and whoever changed it meanwhile, the next look goes on from what it is. A Job that
 * is suspended with the gate in its template gets its template back, whoever suspended it.
 */
#ifndef GPUQD_CLUSTER_KUBE_ADOPT_OWNERS_H
#define GPUQD_CLUSTER_KUBE_ADOPT_OWNERS_H

#include <jansson.h>

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/adopt/adopt.h"

struct owners;

/* Has a pod leave, once its owner makes no other. */
typedef void (*owners_leave_fn)(void *arg, const struct pod_ref *pod, int64_t grace_us);

/* sink and adopts must outlive the result. */
int owners_new(struct loop *l, struct http *h, const struct cluster_sink *sink,
	       struct adopts *adopts, owners_leave_fn leave, void *arg, struct owners **out,
	       struct gpuq_err *err);
void owners_free(struct owners *o); /* NULL is fine */

/* A Job of a namespace of adopt() was seen, or has gone. */
void owners_shown(struct owners *o, json_t *job);
void owners_gone(struct owners *o, const char *uid);
/* Report those that wait again. */
void owners_again(struct owners *o);
void owners_start(struct owners *o, const struct owner_ref *owner, const char *as);
void owners_stop(struct owners *o, const struct owner_ref *owner, const struct pod_ref *pod,
		 int64_t grace_us);
/* Call fn for each that Kueue holds, with the name of its Workload. */
void owners_each_held(const struct owners *o, cluster_held_fn fn, void *arg);

#endif
