/* snapshot_take_guest.h - a snapshot for a question about some jobs, submitted or not
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  flow/advise/estimate (of jobs, submitted or not), rpc (shares).
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKE_GUEST_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKE_GUEST_H

#include "gpuqd/state/model.h"
#include "gpuqd/snapshot/snapshot.h"

struct gpuq_spec;

/* A job that was not submitted, as the subject of an estimate. All is borrowed during the call. */
struct start_guest {
	const struct gpuq_spec *spec; /* checked; its array, groups, flavors, licenses count */
	const char *user, *queue, *qos; /* that exist; qos "" = none */
	int64_t time_limit_us; /* resolved; GPUQ_UNLIMITED */
};

/* The jobs of a question: submitted ones, each with an entry of its own, and guests. */
struct start_question {
	const struct job_key *jobs; /* that are asked about */
	uint32_t n_jobs;
	const struct start_guest
		*guests; /* jobs that are not submitted, asked about as if they were */
	uint32_t n_guests;
	uint32_t most; /* equivalent jobs with entries of their own; 0 = the default */
};

/* As snapshot_take(), with the guests behind all jobs: guest i has the id next_job_id + i of the
 * model, and index -1. Other equivalent pending jobs: the first ones have entries of their own, the
 * others share one (snapshot_take_few). packed: NULL, or the bytes, for sealing elsewhere: then out
 * may be NULL. Returns 0; GPUQ_ENOENT (no such queue), GPUQ_ENOMEM. */
int snapshot_take_question(const struct model *m, int64_t now_us, const struct start_question *q,
			   struct gpuq_buf *packed, struct snapshot **out, struct gpuq_err *err);

#endif
