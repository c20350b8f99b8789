/* missing.h - pods that a list did not name, requested one by one
 *
 * Owns     the questions under way.
 * Touches  the apiserver through http.h.
 * Used by  watch.c, when a list held objects that could not be read: what seems to be
 *          missing may be one of these.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_MISSING_H
#define GPUQD_CLUSTER_KUBE_WATCH_MISSING_H

#include "gpuqd/cluster/kube/http/http.h"

struct loop;
struct missing;

/* gone: the server has no such pod. Never called from inside missing_ask(). */
struct missing *missing_new(struct loop *l, struct http *h,
			    void (*gone)(void *arg, const char *namespace_, const char *name),
			    void *arg); /* NULL: no memory */
void missing_free(struct missing *m); /* NULL is allowed */

/* Asks until there is a reply; asking again meanwhile changes nothing. */
void missing_ask(struct missing *m, const char *namespace_, const char *name);

#endif
