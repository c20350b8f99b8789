/* access.h - who may do what: submit to a queue, act on a job, see its script
 *
 * Owns     the rules of model.md section 6 "Roles". Touches memory only.
 * Used by  flow/submit, rpc methods. */
#ifndef GPUQD_FLOW_ACCESS_H
#define GPUQD_FLOW_ACCESS_H

#include <stdbool.h>

#include "gpuqd/core/model.h"

/* A queue that names no users and groups, here and above, is everybody's. */
bool access_submit(const struct model *m, const struct queue *q, const char *user, bool operator_);
/* Manager of the queue or of one above it. */
bool access_manage(const struct model *m, const struct queue *q, const char *user, bool operator_);
/* Owner, manager or operator. */
bool access_job(const struct model *m, const struct queue *q, const char *owner, const char *user,
		bool operator_);

#endif
