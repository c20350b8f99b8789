/* dispatch.h - make the cluster do what the model wants
 *
 * Owns     the list of jobs to look at, and the clock of limits (walltime, start
 *          timeout, how long finished pods are kept).
 * Touches  the model through the journal; the cluster through its header.
 * Used by  daemon.c.
 *
 * It compares: a planned pod that was never asked for is asked for; a pod of a job
 * that is to end is told to leave; a pod that the ledger is done with is forgotten. It
 * acts only on what is durable, and asking twice does no harm, so there is no other
 * path after a restart than looking at every job once.
 */
#ifndef GPUQD_FLOW_DISPATCH_H
#define GPUQD_FLOW_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/state/event.h"
#include "libgpuq/err.h"

struct cluster;
struct dispatch;
struct journal;

struct dispatch_opts {
	bool local;
	int64_t finished_pod_keep_us; /* logs of finished pods stay readable that long */
	int64_t start_timeout_us; /* of queues that name none */
};

int dispatch_new(struct journal *j, const struct dispatch_opts *o, struct dispatch **out,
		 struct gpuq_err *err);
void dispatch_free(struct dispatch *d);
/* From now on; jobs that have been placed are measured by it, too. */
void dispatch_set_opts(struct dispatch *d, const struct dispatch_opts *o);

/* The cluster to act on; NULL = none for now. All jobs are looked at again. */
void dispatch_set_cluster(struct dispatch *d, struct cluster *c);
void dispatch_touch(struct dispatch *d, struct job_key key);
void dispatch_touch_all(struct dispatch *d);

#endif
