/* config_sched.h - `scheduler` of gpuqd.yaml: how far the scheduler goes, and what holds it back
 *
 * Owns     its keys. Touches nothing.
 * Used by  config.c.
 */
#ifndef GPUQD_CONFIG_SCHED_H
#define GPUQD_CONFIG_SCHED_H

#include "gpuqd/site/policy.h"
#include "libgpuq/schema.h"

extern const struct gpuq_schema config_sched_schema; /* of struct policy_sched */

#endif
