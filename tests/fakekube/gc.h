/* gc.h - what goes because something else went
 *
 * Owns     owner references (dependents of objects that are gone), namespaces
 *          that are being deleted, and pods of nodes that are no more.
 */
#ifndef FAKEKUBE_GC_H
#define FAKEKUBE_GC_H

#include <event2/event.h>
#include "store.h"

/* delay_us: from the owner's end to the dependent's; orphan_us: from the node's
 * end to its pods' (the real PodGC waits 40 s). */
void gc_init(struct event_base *base, int64_t delay_us, int64_t orphan_us);
/* A new object whose owner is already gone goes too. */
void gc_check_owners(const struct version *v);
void gc_delete_namespace(struct obj *o);
void gc_done(void);

#endif
