/* suspended.h - a batch/v1 Job that is suspended until gpuqd starts it
 *
 * Touches  memory only.
 * Used by  owners.c, adopt.c; tests.
 *
 * Its template may be changed only while it is suspended and has no start time, so that the gate is added by the
 * write that starts it, and taken out by one of its own after it was suspended again.
 */
#ifndef GPUQD_CLUSTER_KUBE_ADOPT_SUSPENDED_H
#define GPUQD_CLUSTER_KUBE_ADOPT_SUSPENDED_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/err.h"

enum suspended_state {
	SUSPENDED_WAITS, /* gpuqd may start it */
	SUSPENDED_GATED, /* it is started, and its pods wait behind the gate */
	SUSPENDED_TO_RESTORE, /* it is suspended, and the gate is still in its template */
	SUSPENDED_NOT_OURS, /* it ended or is being deleted, others started it, or its user cancelled it */
	SUSPENDED_REFUSED, /* gpuqd does not start it as it is */
};

/* Tell what is to be done with a Job. why: for its owner, unless it waits or is gated. */
enum suspended_state suspended_state(const json_t *job, struct gpuq_err *why);
/* True if it has to be reset before its template may be changed. */
bool suspended_has_begun(const json_t *job);

/* Bodies of merge patches, of this version of the Job alone; NULL: no memory. Rights of their own. */
json_t *suspended_to_start(const json_t *job);
/* cancelled: number of the job that its user cancelled; 0 = none. A Job that waits is only marked. */
json_t *suspended_to_stop(const json_t *job, uint32_t cancelled);
json_t *suspended_to_reset(const json_t *job); /* of its status */
json_t *suspended_to_restore(const json_t *job);

/* Return its first pod as it would be, by its template. */
json_t *suspended_pod(const json_t *job);
/* Add to the pod the labels and annotations of its Job that it has not itself. */
void suspended_inherit(json_t *pod, const json_t *job);

#endif
