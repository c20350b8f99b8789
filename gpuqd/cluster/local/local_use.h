/* local_use.h - measures the utilization of devices
 *
 * Owns     the process that measures.
 * Used by  local.c.
 */
#ifndef GPUQD_CLUSTER_LOCAL_LOCAL_USE_H
#define GPUQD_CLUSTER_LOCAL_LOCAL_USE_H

#include "gpuqd/cluster/local/local_int.h"

void local_use_begin(struct local *l);
void local_use_free(struct local *l);

#endif
