/* log_keep.h - the output of a pod is read before the pod goes (logs_keep of its queue)
 *
 * Owns     the readings under way and those that wait.
 * Touches  the cluster (reads logs), kept.h; the model (reads). Nothing waits for it but the removal of the pod.
 * Used by  daemon.c.
 */
#ifndef GPUQD_FLOW_LOGS_LOG_KEEP_H
#define GPUQD_FLOW_LOGS_LOG_KEEP_H

#include <stdbool.h>

#include "gpuqd/state/event.h"
#include "libgpuq/err.h"

struct cluster;
struct dispatch;
struct journal;
struct kept;

struct log_keep;
int log_keep_new(struct journal *j, struct kept *kept, struct log_keep **out, struct gpuq_err *err);
void log_keep_free(struct log_keep *k); /* NULL is allowed */
void log_keep_set_dispatch(struct log_keep *k,
			   struct dispatch *d); /* it asks log_keep_holds() again when told */
void log_keep_set_cluster(struct log_keep *k, struct cluster *c); /* NULL = none for now */

/* True if a pod that has ended is still being read: it is not to be removed yet. */
bool log_keep_holds(void *keep, const struct pod_key *pod);

#endif
