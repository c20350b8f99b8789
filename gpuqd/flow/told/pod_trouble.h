/* pod_trouble.h - what keeps a pod from running, and pods that it waits for
 *
 * Owns     nothing.
 * Used by  reconcile.
 */
#ifndef GPUQD_FLOW_TOLD_POD_TROUBLE_H
#define GPUQD_FLOW_TOLD_POD_TROUBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "gpuqd/state/event.h"

struct model;
struct pod;

/* Fill in the event, but for the words, that says so of its job; false = it is known, or another pod or a graver
 * trouble speaks for the job. object NULL: there is no trouble any more. unserved: nor has a plugin served it. */
bool pod_trouble_told(const struct pod *p, const struct pod_key *key, const char *object,
		      const char *words, enum trouble_whose whose, bool unserved, struct event *ev);

/* Describe, in one line, the pod or lock that is before a pod. Returns the object of the reason. */
const char *pod_trouble_turn(const struct model *m, const struct turn_wait *w, char *words,
			     size_t room);

#endif
