/* adopt.h - pods of the cluster become jobs that were not submitted
 *
 * Owns     the pods that could not be queued, to try them again.
 * Touches  the model through the journal; the cluster: pods of cancelled jobs are deleted there.
 * Used by  daemon.c.
 *
 * A pod is known by its uid, which its job keeps: whatever is heard of it again, and after any restart, it is of
 * that job. It exists before its job does, so it is bound when the job is placed (flow/bind), never created. Its
 * job ends with it, and is not repeated: if its owner makes another pod, that is another job. A job that is
 * cancelled while it is pending ends when its pods are gone, else they would be queued anew.
 */
#ifndef GPUQD_FLOW_ADOPT_ADOPT_H
#define GPUQD_FLOW_ADOPT_ADOPT_H

#include "libgpuq/err.h"

struct adopt;
struct cluster;
struct journal;
struct reconcile;

int adopt_new(struct journal *j, struct reconcile *r, struct adopt **out, struct gpuq_err *err);
void adopt_free(struct adopt *a); /* NULL is fine */
/* NULL = there is none. */
void adopt_set_cluster(struct adopt *a, struct cluster *c);

#endif
