/* dispatch.h - make the cluster match the model
 *
 * Owns     the list of jobs to process, and the timer of limits (walltime, start
 *          timeout, how long finished pods are kept).
 * Touches  the model through the journal; the cluster through its header.
 * Used by  daemon.c.
 *
 * It compares: a planned pod that was never requested is requested; a pod of a job that is to
 * end is signalled; a pod that the ledger no longer needs is forgotten. It acts only on durable
 * state, and a repeated request is harmless, so that a restart needs no path of its own: it
 * processes every job once.
 */
#ifndef GPUQD_FLOW_DISPATCH_H
#define GPUQD_FLOW_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/state/event.h"
#include "libgpuq/err.h"

struct cluster;
struct dispatch;
struct gpuq_arena;
struct gpuq_spec_code;
struct job;
struct pod_key;
struct pod_order;
struct journal;
struct model;
struct pod_ref;

struct dispatch_opts {
	bool local;
	int64_t finished_pod_keep_us; /* logs of finished pods stay readable this long */
	int64_t start_timeout_us; /* of queues without their own */
	int64_t plugin_timeout_us; /* for a pod that its node's plugin gave no device */
	/* Fill in where the archive of a job is that carries one. Less than 0: not now. */
	int (*code)(void *arg, const char *user, const struct gpuq_spec_code *code,
		    struct gpuq_arena *a, struct pod_order *o);
	void *code_arg;
	/* True if an ended pod is not to be removed yet; its job is touched once it is. NULL = none is held. */
	bool (*holds)(void *arg, const struct pod_key *pod);
	void *holds_arg;
};

int dispatch_new(struct journal *j, const struct dispatch_opts *o, struct dispatch **out,
		 struct gpuq_err *err);
void dispatch_free(struct dispatch *d);
/* Change the options; they apply to jobs that were placed before, too. */
void dispatch_set_opts(struct dispatch *d, const struct dispatch_opts *o);

/* Return how long a job may take from its placement until it runs; 0 = for ever. */
int64_t dispatch_start_timeout(const struct dispatch *d, const struct job *j);
int64_t dispatch_plugin_timeout(const struct dispatch *d);

/* Set the cluster to act on; NULL = none for now. All jobs are processed again. */
void dispatch_set_cluster(struct dispatch *d, struct cluster *c);
/* Have a pod of j leave. With the last one that runs of a suspended owner, that is suspended again, so that it
 * makes no other. */
void dispatch_leave(const struct model *m, struct cluster *c, const struct job *j,
		    const struct pod_ref *ref, int64_t grace_us);
void dispatch_touch(struct dispatch *d, struct job_key key);
void dispatch_touch_all(struct dispatch *d);

#endif
