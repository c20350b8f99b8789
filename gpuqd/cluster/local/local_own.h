/* local_own.h - the output of a job, read through a process of its owner
 *
 * Owns     the process, which local_own_free ends and reaps.
 * Touches  a pipe from it.
 * Used by  local.c, local_log.c.
 */
#ifndef GPUQD_CLUSTER_LOCAL_LOCAL_OWN_H
#define GPUQD_CLUSTER_LOCAL_LOCAL_OWN_H

#include "gpuqd/cluster/local/local_int.h"

struct local_own;

/* Start the process that reads the output file of a job; NULL = it cannot be started. */
struct local_own *local_own_open(struct local *l, const struct log_request *r, bool follow,
				 void (*ready)(void *arg), void *arg);
/* Some bytes; 0 the end; -1 nothing yet: ready() is called once there is more. */
ssize_t local_own_read(struct local_own *o, char *out, size_t room);
void local_own_last(struct local_own *o); /* do not follow any more: read to the end */
void local_own_free(struct local_own *o);
/* Take the ended processes away; forget = also those that have not ended yet. */
void local_own_reap(struct local *l, bool forget);

#endif
