/* watch_objects.h - the kinds that pods depend on, kept up to date as nodes and pods are
 *
 * Used by  watch.c, kube.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_WATCH_WATCH_OBJECTS_H
#define GPUQD_CLUSTER_KUBE_WATCH_WATCH_OBJECTS_H

#include "gpuqd/cluster/kube/watch/watch_int.h"

/* The version of resource.k8s.io that the server has: "v1". */
const char *watch_claims_version(const struct watch *w);

const struct kind *watch_object_kind(enum object_kind kind);
/* List and watch all of them; watch_answered() follows for each. False: they are not wanted. */
bool watch_objects_begin(struct watch *w);
/* After a reply with that HTTP status: true if the kind may be there in another version, which is now
 * the one to list. */
bool watch_turns(struct reflector *r, int status);
/* After a reply with that HTTP status: true if the kind is off, which is logged once. */
bool watch_is_off(struct reflector *r, int status);
/* A complete list has come. */
void watch_is_on(struct reflector *r);

#endif
