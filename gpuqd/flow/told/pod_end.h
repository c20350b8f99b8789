/* pod_end.h - the end of a pod, as the cluster reports it, and when its job may start again
 *
 * Owns     nothing.
 * Used by  reconcile.
 */
#ifndef GPUQD_FLOW_TOLD_POD_END_H
#define GPUQD_FLOW_TOLD_POD_END_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/state/event.h"

struct job;
struct model;
struct pod;

#define POD_END_ROOM 600 /* bytes of a text that is made for a report */

/* True if gpuqd requested its end. */
bool pod_end_is_requested(const struct pod *p);
/* Fill in the event that says so, but for the pod. `text` may become its message. ahead_us: wall time less ledger
 * time. */
void pod_end_told(const struct model *m, const struct pod *p, const struct pod_fact *f,
		  int64_t ahead_us, struct event *ev, char text[POD_END_ROOM]);

/* True if the kubelet refuses the image's user, which waiting does not change. */
bool pod_end_is_root_refused(const struct pod_fact *f);
/* Return the report of such a pod as that of one that failed. `text` becomes its message. */
struct pod_fact pod_end_root_refused(const struct pod_fact *f, char text[POD_END_ROOM]);

/* Return when a requeued job may start again; 0 = at once. A job that failed waits a little longer
 * each time, so that it does not loop, and a job that its owner requeued lets others go first. A
 * job that lost its places to the infrastructure keeps its rank: no other is started there, only to
 * be preempted a second later. Its delay counts from the start of the attempt, and matters only
 * when one short attempt follows another. */
int64_t pod_end_not_before(const struct job *j, const struct event *ev, int64_t now);

#endif
