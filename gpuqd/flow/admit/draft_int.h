/* draft_int.h - a job's description on its way through the checks; inside the room
 *
 * Owns     struct draft. The checks themselves are submit.c's.
 * Used by  flow/admit/submit (new jobs), flow/admit/update (what waits is described anew). */
#ifndef GPUQD_FLOW_ADMIT_DRAFT_INT_H
#define GPUQD_FLOW_ADMIT_DRAFT_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/state/model.h"
#include "gpuqd/flow/admit/submit.h"
#include "libgpuq/buf.h"
#include "libgpuq/limits.h"
#include "libgpuq/spec.h"

/* One job on its way through the checks; each check reads what earlier ones found. */
struct draft {
	struct journal *j;
	const struct model *m;
	struct cluster *cluster;
	const struct submit_who *who;
	struct gpuq_spec spec;
	const struct queue *queue;
	const struct site_qos *qos;
	int64_t time_limit_us;
	int64_t now_us;
	struct gpuq_arena *a;
	struct gpuq_buf bytes, request, warnings;
	enum gpuq_job_state dep_state[GPUQ_DEPENDS_MAX]; /* of those that ended long ago */
	bool dep_ended[GPUQ_DEPENDS_MAX];
	/* given: jobs that earlier drafts of the same call would add */
	int64_t n_before;
	/* given: what they would add to what the user has stored */
	struct stored stored_before;
	/* given: the job that is described anew; NULL = a new one */
	const struct job *instead;
	/* given: whom it waits for stays as it is, though one of them may be forgotten by now */
	bool depends_stay;
	/* given: the caller who changes `instead`, where that is not its owner; else NULL */
	const struct submit_who *by;
};

/* Read spec into d->spec and pass it through the named checks. d is zeroed but for j, m,
 * cluster, who, now_us, a, and what a comment above calls given. Returns 0 or the error of
 * the first check that refuses; draft_done() in either case. */
int draft_check(struct draft *d, const struct gpuq_val *spec, struct gpuq_err *err);
void draft_done(struct draft *d);

/* GPUQ_ENOENT: no such thing has that name of the field; the nearest of the names (ends with
 * NULL) is told. */
int draft_unknown(const char *what, const char *field, const char *name, const char *const *names,
		  struct gpuq_err *err);

/* Of the queue, or the nearest above that says so; NULL = any flavor will do. */
const struct gpuq_strlist *draft_queue_flavors(const struct queue *q);

/* The warnings, a line each. */
struct gpuq_val *draft_warnings(struct draft *d);

#endif
