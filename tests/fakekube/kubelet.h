/* kubelet.h - the simulated nodes' agents
 *
 * Owns     what runs on each node: devices in use, containers and their ends. It
 *          follows the store's changes as a real kubelet follows its watch, and
 *          knows pods by uid: a pod that the API forgot runs on until it stops.
 *
 * A node whose Ready condition is Unknown is cut off: its kubelet sees no
 * change and reports nothing, its containers run on.
 */
#ifndef FAKEKUBE_KUBELET_H
#define FAKEKUBE_KUBELET_H

#include <event2/event.h>
#include "store.h"

void kubelet_init(struct event_base *base);
void kubelet_done(void);

/* All containers of the node end at once; on its return the kubelet finds its
 * pods and no devices yet, and rejects them. Returns 0, or -1: no such node. */
int kubelet_node_reboot(const char *name);
bool kubelet_node_is_down(const char *name);

/* When the pod's containers started and ended (µs since the epoch, 0: not yet).
 * Returns false for a pod that no kubelet knows. */
bool kubelet_times(const char *uid, int64_t *started_us, int64_t *ended_us);

/* Pods that were loaded from a saved state ran on while the apiserver was away. */
void kubelet_resume(void);

#endif
