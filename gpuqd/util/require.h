/* require.h - whether a label meets a requirement
 *
 * Touches  memory only.
 * Used by  sched/place (nodes of a snapshot), state/objects (a node of the model).
 *
 * Semantics: Kubernetes, "Assigning Pods to Nodes", operators of node affinity.
 */
#ifndef GPUQD_UTIL_REQUIRE_H
#define GPUQD_UTIL_REQUIRE_H

#include <stdbool.h>

#include "libgpuq/spec.h"

#define REQUIRE_NAME_KEY "metadata.name" /* stands for the node's own name */
#define REQUIRE_SHARING_KEY "gpuq.io/sharing" /* SHARE_LABEL in devices/backend.h */

/* value: of the label r->key; NULL = the node does not have it. */
bool require_holds(const struct gpuq_require *r, const char *value);

#endif
