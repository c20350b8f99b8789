/* troubles.h - jobs that start, but whose pods do not get to run
 *
 * Owns     the timer of what does not mend itself: an image that cannot be pulled, a Secret that
 *          is missing.
 * Touches  the model through the journal.
 * Used by  daemon.c.
 *
 * A pod that its node's plugin gives no device is replaced; the second within ten minutes makes the node
 * suspect. A trouble of the job's own fails it after two minutes. One of the namespace or the node is
 * waited for until the start timeout; then the job gives its places back and is pending with
 * ClusterRefused.
 */
#ifndef GPUQD_FLOW_REFUSAL_TROUBLES_H
#define GPUQD_FLOW_REFUSAL_TROUBLES_H

#include "libgpuq/err.h"

struct dispatch;
struct journal;
struct refusals;
struct troubles;

int troubles_new(struct journal *j, struct dispatch *d, struct refusals *refusals,
		 struct troubles **out, struct gpuq_err *err);
void troubles_free(struct troubles *t);

#endif
