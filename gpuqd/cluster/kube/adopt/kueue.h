/* kueue.h - whether a controller of Kueue holds a Job: its Workload exists
 *
 * Owns     the checks until they have ended.
 * Touches  the apiserver through http.h: at most one request at a time, however many Jobs there are. Those of one
 *          namespace that are asked for meanwhile share the next list of its Workloads.
 * Used by  owners.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_ADOPT_KUEUE_H
#define GPUQD_CLUSTER_KUBE_ADOPT_KUEUE_H

#include <jansson.h>

#include "gpuqd/cluster/kube/http/http.h"

struct kueue;
struct kueue_check;

struct kueue *kueue_new(struct loop *l, struct http *h); /* NULL: no memory */
void kueue_free(struct kueue *q); /* all of its checks have ended or were cancelled; NULL is fine */

enum kueue_answer {
	KUEUE_FREE,
	KUEUE_HELD, /* words: the name of the Workload */
	KUEUE_UNKNOWN, /* words: why */
};

/* Called once, later; not after kueue_cancel(). */
typedef void (*kueue_fn)(void *arg, enum kueue_answer is, const char *words, int64_t retry_us);

/* A Job that is younger than ten seconds is waited for where the cluster serves Workloads: theirs may come. */
struct kueue_check *kueue_ask(struct kueue *q, const json_t *job, kueue_fn fn, void *arg);
void kueue_cancel(struct kueue_check *k); /* NULL is fine */

#endif
