/* recover.h - after a restore: what the cluster has and the ledger does not know
 *
 * Owns     pods with our cluster's name that belong to no job of the ledger.
 * Touches  the model through the journal; asks nothing of the cluster.
 * Used by  flow/reconcile (hands such pods over), rpc methods (show them).
 *
 * A store that was restored from a copy lacks the jobs that came after it. Until the
 * cluster was listed once nothing is started, evicted or removed. Then pods become
 * jobs again by their records (state/record/podrecord.h) or are given to the jobs whose names
 * they carry; jobs whose pods are gone are held. What fits nowhere is kept, counts as
 * taken, and is shown. The recovery ends by itself once nothing of it is left.
 *
 * Pods with numbers that only the lost ledger can have given are not removed while they
 * run, after the recovery either.
 */
#ifndef GPUQD_FLOW_RECOVER_H
#define GPUQD_FLOW_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/state/event.h"
#include "libgpuq/err.h"

struct journal;
struct keyset;
struct recover;

/* A pod that was kept is known now: it is to be looked at as any other. */
typedef void (*recover_again_fn)(void *arg, const struct pod_fact *f);

int recover_new(struct journal *j, recover_again_fn again, void *arg, struct recover **out,
		struct gpuq_err *err);
void recover_free(struct recover *r);

/* A pod that is not the ledger's, seen in the list of that generation. True: it is kept;
 * false: it is an orphan, and may be removed. */
bool recover_keeps(struct recover *r, const struct pod_fact *f, struct pod_key key,
		   uint32_t generation);
void recover_gone(struct recover *r, const char *name);
/* A list is complete: kept pods that it did not name are gone. The first one after a restore
 * decides what becomes of jobs and pods; `seen` are the ledger's pods that it named, `kept` is
 * the highest number of a job of which the cluster keeps anything else. */
void recover_listed(struct recover *r, uint32_t generation, const struct keyset *seen,
		    uint32_t kept);
/* All kept pods are forgotten: the cluster will be listed anew. */
void recover_drop(struct recover *r);

/* End the recovery; by: an operator. GPUQ_ECONFLICT: there is none, or the cluster has not
 * been listed. */
int recover_finish(struct recover *r, const char *by, struct gpuq_err *err);

/* Pods that are kept, by name, and why they belong to no job. */
struct recover_pod {
	const struct pod_fact *fact;
	struct pod_key key;
	const char *user, *job_name; /* as the record says; "" none */
	const char *why;
};
uint32_t recover_n_pods(const struct recover *r);
void recover_each_pod(struct recover *r, void (*fn)(void *arg, const struct recover_pod *p),
		      void *arg);

#endif
