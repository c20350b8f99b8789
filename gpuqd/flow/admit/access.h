/* access.h - the rights of a caller: over a queue, over a job, over what pods run as
 *
 * Owns     the rules of roles: owner, manager, operator. Touches memory only.
 * Used by  submit.c, update.c, update_keys.c and apply_access.c beside it, rpc methods. */
#ifndef GPUQD_FLOW_ADMIT_ACCESS_H
#define GPUQD_FLOW_ADMIT_ACCESS_H

#include <stdbool.h>

#include "gpuqd/state/model.h"

struct submit_who;

/* Rights over one job. A manager sees, holds, cancels and requeues it, and changes its limits
 * and its order; only ACCESS_OWN lets a caller decide what runs as the job's owner. */
enum access_right {
	ACCESS_OWN = 1, /* the job's owner, or an operator who may act as its owner */
	ACCESS_MANAGE = 2, /* a manager of the job's queue or of one above it, or an operator */
	ACCESS_OPERATE = 4, /* an operator */
};

/* True if the user may submit to q. A queue is open to all users when neither it nor any queue
 * above it names users or groups. groups: those that its issuer says it is in, besides the site's, joined by
 * commas; NULL = none. */
bool access_submit(const struct model *m, const struct queue *q, const char *user,
		   const char *groups, bool operator_);
/* True if the user manages q or a queue above it. */
bool access_manage(const struct model *m, const struct queue *q, const char *user, bool operator_);
/* Return the rights (enum access_right) of a caller over a job of this owner in q; 0 = none: the
 * job belongs to another user. q NULL: the queue no longer exists. */
unsigned access_job(const struct model *m, const struct queue *q, const char *owner,
		    const struct submit_who *who);

/* Return the highest queue, from q upwards, up to which the user manages every queue; NULL = none. */
const struct site_queue *access_realm(const struct site *s, const struct site_queue *q,
				      const char *who);

/* True if the pods of both queues, each with the values inherited in its own site, run in the same
 * namespace, with the same service account and image pull secrets, under the same pod policy and
 * from the same default image. */
bool access_same_pods(const struct site *s, const char *queue, const struct site *other_site,
		      const char *other_queue);

#endif
