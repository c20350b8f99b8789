/* api_claim.h - the writes of claims of devices
 *
 * Touches  the apiserver through http.h.
 * Used by  kube.c.
 *
 * Each holds only while the claim has the version that it was decided on (409). How it went is seen in
 * the claim, so only a refusal is reported.
 */
#ifndef GPUQD_CLUSTER_KUBE_CLAIMS_API_CLAIM_H
#define GPUQD_CLUSTER_KUBE_CLAIMS_API_CLAIM_H

#include "gpuqd/cluster/kube/pods/api_int.h"

/* version: of the API, "v1". */
void asks_claim(struct asks *a, const char *version, const struct claim_ask *ask);

#endif
