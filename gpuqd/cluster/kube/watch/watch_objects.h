/* watch_objects.h - the kinds that pods depend on, kept up to date as nodes and pods are
 *
 * Used by  watch.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_WATCH_OBJECTS_H
#define GPUQD_CLUSTER_KUBE_WATCH_WATCH_OBJECTS_H

#include "gpuqd/cluster/kube/watch/watch_int.h"

const struct kind *watch_object_kind(enum object_kind kind);
/* List and watch all of them; watch_answered() follows for each. False: they are not wanted. */
bool watch_objects_begin(struct watch *w);
/* After a reply with that HTTP status: true if the kind is off, which is logged once. */
bool watch_is_off(struct reflector *r, int status);
/* A complete list has come. */
void watch_is_on(struct reflector *r);

#endif
