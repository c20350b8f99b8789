/* recover_job.h - unknown pods, as an event of their job
 *
 * Owns     nothing. Touches the journal.
 * Used by  flow/recover.
 */
#ifndef GPUQD_FLOW_RECOVER_JOB_H
#define GPUQD_FLOW_RECOVER_JOB_H

#include <uthash.h>

#include "gpuqd/state/event.h"
#include "gpuqd/state/record/podrecord.h"
#include "libgpuq/arena.h"

struct journal;

/* A pod with our cluster's name that belongs to no job. */
struct stray {
	UT_hash_handle hh;
	struct gpuq_arena mem; /* of fact and record */
	struct pod_fact fact; /* as last seen */
	struct pod_key key;
	struct podrecord record;
	bool has_record;
	struct gpuq_err record_err; /* why it has none */
	bool counted; /* the model counts its devices */
	uint32_t seen; /* in the list of that generation */
	char why[200]; /* it belongs to no job; "" not known yet */
	char name[];
};

/* Give pods[0..n), all of one attempt of one job and ascending by index, to their job, which is
 * made from their records where the ledger does not know it. Returns 0; or < 0 and the reason, and
 * nothing has changed. */
int recover_job(struct journal *j, struct stray *const *pods, size_t n, struct gpuq_err *err);

#endif
