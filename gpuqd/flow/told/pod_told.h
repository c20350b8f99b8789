/* pod_told.h - what a pod has got, where the cluster reports something else than was planned, and what is
 * about to end it
 *
 * Owns     nothing.
 * Used by  reconcile.
 *
 * Each fills in the event that says so, but for the pod, and returns false if there is none.
 */
#ifndef GPUQD_FLOW_TOLD_POD_TOLD_H
#define GPUQD_FLOW_TOLD_POD_TOLD_H

#include <stdbool.h>

#include "gpuqd/state/event.h"

struct job;
struct model;
struct pod;

/* The devices. *same: they are those of the ledger, and are known for certain from now on. */
bool pod_told_devices(const struct pod *p, const struct pod_fact *f, struct event *ev, bool *same);
/* The amounts of CPU and memory, as admission made them. */
bool pod_told_amounts(const struct model *m, const struct pod *p, const struct pod_fact *f,
		      struct event *ev);
/* The attempt of its job is to end, since the cluster is about to end the pod. `why` has the text. */
bool pod_told_disruption(const struct model *m, const struct pod *p, const struct pod_fact *f,
			 struct event *ev, char *why, size_t room);

/* Return why its job is ended, in Slurm's words: "TIME LIMIT", "PREEMPTION", "JOB REQUEUE"; "" = it was
 * cancelled, or the like; NULL = it goes with its other pods. */
const char *pod_told_reason(const struct job *j);

#endif
