/* snapshot_usage.h - the usage of users, in a snapshot being sealed
 *
 * Touches  memory only.
 * Used by  snapshot_seal.c.
 */
#ifndef GPUQD_SNAPSHOT_SEAL_SNAPSHOT_USAGE_H
#define GPUQD_SNAPSHOT_SEAL_SNAPSHOT_USAGE_H

#include "gpuqd/snapshot/snapshot_build.h"

int snapshot_seal_usages(struct seal *w);

#endif
