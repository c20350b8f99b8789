/* submit.h - from a job's description to a job, through named checks
 *
 * Owns     the list of checks. Touches the journal; reads history for dependencies.
 * Used by  rpc (job.submit).
 *
 * Several specs are accepted together or not at all. A key makes a repeated submission safe: the
 * same key with the same request returns the same jobs.
 */
#ifndef GPUQD_FLOW_ADMIT_SUBMIT_H
#define GPUQD_FLOW_ADMIT_SUBMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/state/event.h"
#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

struct cluster;
struct journal;
struct start_guest;

struct submit_who {
	const char *user;
	uint32_t uid, gid;
	bool operator_;
	const char *queues; /* restricted to these and those below: token.h; NULL or "" = all */
	const char *groups; /* besides those of the site: as queues; NULL or "" = none */
	bool as_owner; /* an operator with the rights of a job's owner */
	/* Pods that were not submitted: the queue that the site gives them, "" none. NULL = it is a user. */
	const char *adopts;
};

struct submit_result {
	uint32_t first_id, n_jobs; /* ids are consecutive; 0 0 for a dry run */
	bool repeated; /* the key was known: these are the jobs of its first use */
	struct gpuq_val *jobs; /* job objects, each with `warnings` (and `spec` for a dry run) */
	/* Only of a dry run: the jobs as they would be pending, for the start estimator
	 * (estimate.h). */
	struct start_guest *guests;
	uint32_t n_guests;
};

/* Submit jobs. specs: a list of normalised spec trees. lease_us: 0, or how long the jobs outlive
 * their client (flow/lease.h). Returns 0; GPUQ_EINVAL, GPUQ_ENOENT, GPUQ_EPERM, GPUQ_ELIMIT (with
 * err->field), GPUQ_ECONFLICT (key), GPUQ_ESTORAGE: nothing has been stored then. c may be NULL (no
 * cluster yet: checks against it are skipped). */
int submit_jobs(struct journal *j, struct cluster *c, const struct submit_who *who,
		const struct gpuq_val *specs, const char *key, int64_t lease_us, bool dry_run,
		struct gpuq_arena *a, struct submit_result *out, struct gpuq_err *err);

#endif
