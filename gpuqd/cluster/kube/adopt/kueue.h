/* kueue.h - whether a controller of Kueue holds a Job: its Workload exists
 *
 * Owns     a check until it has ended.
 * Touches  the apiserver through http.h.
 * Used by  owners.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_ADOPT_KUEUE_H
#define GPUQD_CLUSTER_KUBE_ADOPT_KUEUE_H

#include <jansson.h>

#include "gpuqd/cluster/kube/http/http.h"

struct kueue_check;

enum kueue_answer {
	KUEUE_FREE,
	KUEUE_HELD, /* words: the name of the Workload */
	KUEUE_UNKNOWN, /* words: why */
};

/* Called once, later; not after kueue_cancel(). */
typedef void (*kueue_fn)(void *arg, enum kueue_answer is, const char *words, int64_t retry_us);

/* A Job that is younger than ten seconds is waited for where the cluster serves Workloads: theirs may come. */
struct kueue_check *kueue_ask(struct loop *l, struct http *h, const json_t *job, kueue_fn fn,
			      void *arg);
void kueue_cancel(struct kueue_check *k); /* NULL is fine */

#endif
