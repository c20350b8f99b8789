/* draft_int.h - a job's description on its way through the checks; inside the room
 *
 * Owns     struct draft. The checks themselves are submit.c's.
 * Used by  flow/admit/submit (new jobs), flow/admit/update (changed descriptions of pending jobs).
 */
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
	struct gpuq_spec whole; /* with what the site adds to it */
	const struct queue *queue;
	const struct site_qos *qos;
	bool names_devices; /* by a resource that is no flavor's: default flavors are of others */
	int64_t time_limit_us;
	int64_t now_us;
	struct gpuq_arena *a;
	struct gpuq_buf bytes, request, warnings;
	enum gpuq_job_state dep_state[GPUQ_DEPENDS_MAX]; /* of dependencies that have left memory */
	bool dep_ended[GPUQ_DEPENDS_MAX];
	/* given: jobs that earlier drafts of the same call would add */
	int64_t n_before;
	/* given: bytes they would add to what is stored for the user */
	struct stored stored_before;
	/* given: the job whose description changes; NULL = a new job */
	const struct job *instead;
	/* given: its dependencies stay as they are, though some may be forgotten by now */
	bool depends_stay;
	/* given: the caller that changes `instead`, where that is not its owner; else NULL */
	const struct submit_who *by;
};

/* Read spec into d->spec and pass it through the named checks. d is zeroed except j, m, cluster,
 * who, now_us, a, and the fields marked as given above. Returns 0 or the error of the first check
 * that refuses; call draft_done() in either case. */
int draft_check(struct draft *d, const struct gpuq_val *spec, struct gpuq_err *err);
void draft_done(struct draft *d);

/* Fail with GPUQ_ENOENT: the value of the field is no known name; the message suggests the nearest
 * of the names (terminated by NULL). */
int draft_unknown(const char *what, const char *field, const char *name, const char *const *names,
		  struct gpuq_err *err);

/* Return the default flavors of the queue or of the nearest queue above that has some; NULL = any
 * flavor. */
const struct gpuq_strlist *draft_queue_flavors(const struct queue *q);
/* Return the rule of one of them; NULL = it has none. */
const struct gpuq_flavor_rule *draft_queue_rule(const struct queue *q, size_t flavor);

/* Refuse a job of pods that were not submitted unless flow/adopt makes it; have its request go to nodes
 * alone that offer devices under the names that its pods request (draft_origin.c). */
int draft_check_origin(struct draft *d, struct gpuq_err *err);
int draft_name_devices(struct draft *d, struct gpuq_err *err);

/* Return the warnings as a list, one line each. */
struct gpuq_val *draft_warnings(struct draft *d);

#endif
