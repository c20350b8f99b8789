/* claim_body.h - what is written to claims of devices
 *
 * Owns     nothing.
 * Used by  pods/api_bind.
 *
 * All but that of CLAIM_MAKE hold only while the claim has the version that it was decided on (409).
 */
#ifndef GPUQD_CLUSTER_KUBE_CLAIMS_CLAIM_BODY_H
#define GPUQD_CLUSTER_KUBE_CLAIMS_CLAIM_BODY_H

#include <jansson.h>

#include "gpuqd/cluster/cluster.h"

#define CLAIM_GROUP "resource.k8s.io"

/* Return the object, patch or options of deletion of a step, the caller's; NULL = it makes no sense. version: of
 * the API, "v1". */
json_t *claim_body(const struct claim_ask *ask, const char *version, const char *cluster_id);

#endif
