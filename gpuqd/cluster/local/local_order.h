/* local_order.h - from what flow asks to what a shepherd reads
 *
 * Touches  the user database.
 * Used by  local_pod.c.
 */
#ifndef GPUQD_CLUSTER_LOCAL_LOCAL_ORDER_H
#define GPUQD_CLUSTER_LOCAL_LOCAL_ORDER_H

#include "gpuqd/cluster/local/local_int.h"

/* Strings live in a.
 * GPUQ_EINVAL, GPUQ_EPERM: it can never run here. */
int local_order_build(const struct local *l, const struct pod_order *in, const char *uid,
		      struct gpuq_arena *a, struct order *out, struct gpuq_err *err);

#endif
