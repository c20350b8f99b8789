/* snapshot_take.h - the model as a snapshot
 *
 * Owns     nothing.
 * Touches  memory only.
 * Used by  flow/schedule, flow/advise/whatif, flow/advise/estimate, rpc methods.
 */
#ifndef GPUQD_SNAPSHOT_SNAPSHOT_TAKE_H
#define GPUQD_SNAPSHOT_SNAPSHOT_TAKE_H

#include "gpuqd/state/model.h"
#include "gpuqd/snapshot/snapshot.h"
#include "libgpuq/err.h"

/* Take a sealed snapshot of the model; free with snapshot_free(). packed: the bytes of the snapshot
 * (snapshot_pack.h) are appended there; NULL = nowhere. out may be NULL where the bytes are enough.
 * Pure. */
int snapshot_take_packed(const struct model *m, int64_t now_us, struct gpuq_buf *packed,
			 struct snapshot **out, struct gpuq_err *err);
int snapshot_take(const struct model *m, int64_t now_us, struct snapshot **out,
		  struct gpuq_err *err);
/* The same, but only the first `most` of equivalent pending jobs have entries of their own; all
 * others share one, like the elements of an array (snap_job.alike). A plan made on it is the one
 * that would be made on the whole as long as it decides nothing about such an entry: then all jobs
 * behind it are pending for the same reason as the last one before it (plan_few_enough). */
int snapshot_take_few(const struct model *m, int64_t now_us, uint32_t most, struct gpuq_buf *packed,
		      struct snapshot **out, struct gpuq_err *err);
/* The same without the pending jobs that are settled, whose users have their usage nevertheless. The
 * remaining steps of sealing are left to the caller. */
int snapshot_take_part(const struct model *m, int64_t now_us, uint32_t most, struct snapshot **out,
		       struct gpuq_err *err);
/* A snapshot of very different jobs is taken in steps, some in each turn. First their requests, which
 * do not change while they are pending; requests that come or go meanwhile are handled when jobs are
 * added. Then, at one moment, all but jobs. Then jobs: each as it is when it is reached, so that one
 * that changes meanwhile may be there as it was, or as it is, and must be noted (flow/since.h); jobs
 * that come meanwhile are left out. It must be dropped when the site changes, or the model is
 * replaced, and while jobs are added when a node changes (model.n_node_changes). */
struct snapshot_early;
/* NULL: not worth it, or no memory. */
struct snapshot_early *snapshot_early_begin(const struct model *m);
bool snapshot_early_go_on(struct snapshot_early *e, uint32_t most); /* true = that was all */
/* As snapshot_take_few() of that moment. False: it must be dropped. */
bool snapshot_early_jobs_begin(struct snapshot_early *e, int64_t now_us, uint32_t most);
bool snapshot_early_jobs(struct snapshot_early *e, uint32_t most); /* true = that was all */
void snapshot_early_drop(struct snapshot_early *e); /* NULL is fine; before its model goes */
/* After all jobs; drops e. The remaining steps of sealing are left to the caller:
 * snapshot_seal_step(). */
int snapshot_take_late(struct snapshot_early *e, struct gpuq_buf *packed, struct snapshot **out,
		       struct gpuq_err *err);
/* Take the queues and the usage of their users, without nodes and jobs. */
int snapshot_take_usage(const struct model *m, int64_t now_us, struct snapshot **out,
			struct gpuq_err *err);

/* ---- a snapshot for a question about some jobs, submitted or not ---- */

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
