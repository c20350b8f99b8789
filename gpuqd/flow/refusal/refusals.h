/* refusals.h - jobs that the cluster refuses for reasons that are not theirs
 *
 * Owns     the gates: an object that is missing or refuses, and since when. While a gate is shut
 *          the jobs that it concerns are pending with ClusterRefused.
 * Touches  the model through the journal; asks the cluster, now and then, whether it would
 *          take one pod by now.
 * Used by  daemon.c (wires it), rpc (tells of the gates), troubles.c (objects that only kubelets
 *          miss).
 */
#ifndef GPUQD_FLOW_REFUSAL_REFUSALS_H
#define GPUQD_FLOW_REFUSAL_REFUSALS_H

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/state/event.h"

struct journal;
struct reconcile;
struct refusals;

int refusals_new(struct journal *j, struct reconcile *reconcile, struct refusals **out,
		 struct gpuq_err *err);
void refusals_free(struct refusals *r);

/* NULL = none for now. The gates of the previous one are opened. */
void refusals_set_cluster(struct refusals *r, struct cluster *c);

/* Block a job whose pods lack an object on their node; it must release its places then. */
void refusals_missed(struct refusals *r, struct job_key job, const char *object, const char *words);

struct refusal_view {
	const char *object, *namespace_, *words;
	int64_t since_us, next_us; /* next_us: when it is tried again; 0 = right now */
	uint32_t jobs; /* pending because of it; elements counted */
};
/* Call fn for each shut gate, oldest first. */
void refusals_each(const struct refusals *r, void (*fn)(void *arg, const struct refusal_view *v),
		   void *arg);

#endif
