/* pods.h - what is special to pods: binding, eviction, graceful deletion, logs
 *
 * Owns     the rules; the simulated node that follows them is kubelet.c.
 */
#ifndef FAKEKUBE_PODS_H
#define FAKEKUBE_PODS_H

#include "api.h"
#include "faults.h"
#include "write.h"

void pods_bind(const struct call *call, struct reply *r);
void pods_evict(const struct call *call, struct reply *r);
/* Takes over the request unless it makes a reply. */
void pods_log(const struct call *call, const struct fault *f, struct reply *r);
void pods_session(const struct call *call, const struct fault *f, struct reply *r);
bool pods_session_kind(const char *sub); /* "exec", "attach", "portforward" */

/* DELETE. Returns true when the object is gone at once. */
bool pods_delete(struct obj *o, const struct delete_options *opt);
/* The kubelet (or PodGC) has nothing left of it: remove, or wait for finalizers. */
void pods_finish(struct obj *o);
/* Add a condition to the status, as evictions and the PodGC do. */
void pods_add_condition(struct obj *o, const char *type, const char *reason, const char *message);

void pods_init(struct event_base *base);

#endif
