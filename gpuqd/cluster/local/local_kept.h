/* local_kept.h - the pods whose output is kept
 *
 * Touches  DIR/logs, DIR/local.
 * Used by  local.c, local_log.c.
 */
#ifndef GPUQD_CLUSTER_LOCAL_LOCAL_KEPT_H
#define GPUQD_CLUSTER_LOCAL_LOCAL_KEPT_H

#include "gpuqd/cluster/local/local_int.h"

/* The output that is kept of the very pod that ref means, as the beginning of the names of its
 * files. owner: of its job, by the ledger; UINT32_MAX = not known. GPUQ_ENOENT: none is, or it
 * is another's. */
#define LOG_STEM_BYTES 256
int local_kept_stem(struct local *l, const struct pod_ref *ref, uint32_t owner,
		    char out[LOG_STEM_BYTES], struct gpuq_err *err);
bool local_kept_in_use(struct local *l, const char *stem); /* its pod is here */
uint32_t local_kept_highest_job(struct cluster *c);

#endif
