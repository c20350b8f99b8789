/* quota_warn.h - warning when quotas exceed the devices that exist
 *
 * Owns     nothing. Touches the log.
 * Used by  schedule.c, once for every site that is read.
 */
#ifndef GPUQD_FLOW_QUOTA_WARN_H
#define GPUQD_FLOW_QUOTA_WARN_H

#include "gpuqd/snapshot/snapshot.h"

/* Log one line for every parent and flavor. False: no devices are known yet, call again. */
bool quota_warn(const struct snapshot *s);

#endif
