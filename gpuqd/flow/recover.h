/* recover.h - after a restore: pods of the cluster that the ledger does not know
 *
 * Owns     pods with our cluster's name that belong to no job of the ledger.
 * Touches  the model through the journal; requests nothing from the cluster.
 * Used by  flow/reconcile (passes such pods on), rpc methods (show them).
 *
 * A store that was restored from a copy lacks the jobs that came after it. Until the cluster was
 * listed once nothing is started, evicted or removed. Then pods become jobs again by their records
 * (state/record/podrecord.h) or are given to the jobs whose names they carry; jobs whose pods are
 * gone are held. Pods without a match are kept, count as allocated, and are shown. The recovery
 * ends by itself once none of them is left.
 *
 * Pods with numbers that only the lost ledger can have given are not removed while they run, after
 * the recovery either.
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

/* A kept pod is known now: process it as any other. */
typedef void (*recover_again_fn)(void *arg, const struct pod_fact *f);

int recover_new(struct journal *j, recover_again_fn again, void *arg, struct recover **out,
		struct gpuq_err *err);
void recover_free(struct recover *r);

/* Report a pod that the ledger does not know, seen in the list of that generation. True: it is
 * kept; false: it is an orphan, and may be removed. */
bool recover_keeps(struct recover *r, const struct pod_fact *f, struct pod_key key,
		   uint32_t generation);
void recover_gone(struct recover *r, const char *name);
/* A list is complete: kept pods that it did not name are gone. The first one after a restore
 * decides on jobs and pods; `seen` are the ledger's pods that it named, `kept` is the highest
 * number of a job of which the cluster keeps anything else. */
void recover_listed(struct recover *r, uint32_t generation, const struct keyset *seen,
		    uint32_t kept);
/* Forget all kept pods: the cluster will be listed again. */
void recover_drop(struct recover *r);

/* End the recovery; by: an operator. GPUQ_ECONFLICT: there is none, or the cluster has not been
 * listed. */
int recover_finish(struct recover *r, const char *by, struct gpuq_err *err);

/* Kept pods, by name, and why they belong to no job. */
struct recover_pod {
	const struct pod_fact *fact;
	struct pod_key key;
	const char *user, *job_name; /* as in the record; "" none */
	const char *why;
};
uint32_t recover_n_pods(const struct recover *r);
void recover_each_pod(struct recover *r, void (*fn)(void *arg, const struct recover_pod *p),
		      void *arg);

#endif
