/* quota_warn.h - tell when a site promises more devices than there are
 *
 * Owns     nothing. Touches the log.
 * Used by  schedule.c, once for every site that is read.
 */
#ifndef GPUQD_FLOW_QUOTA_WARN_H
#define GPUQD_FLOW_QUOTA_WARN_H

#include "gpuqd/snapshot/snapshot.h"

/* One line for every parent and flavor. False: no devices are known yet, ask again. */
bool quota_warn(const struct snapshot *s);

#endif
