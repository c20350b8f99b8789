/* pod_same.h - whether a pod that the cluster reports is the one of the ledger
 *
 * Owns     nothing.
 * Used by  reconcile.
 */
#ifndef GPUQD_FLOW_TOLD_POD_SAME_H
#define GPUQD_FLOW_TOLD_POD_SAME_H

#include <stdbool.h>

#include "gpuqd/state/event.h"

struct pod;

/* Return the token that the cluster's pod must bear; NULL = not known, or no longer. */
const char *pod_same_token(const struct pod *p, const struct pod_key *key);
/* True if the pod only has the name of one of ours: names can be predicted, and a pod in any
 * namespace of the cluster can have such a name. As long as the uid of ours is not known, the token
 * of its attempt decides. */
bool pod_same_name_only(const struct pod *p, const struct pod_key *key, const struct pod_fact *f);
/* True if it is the same object as in the ledger, as far as both identify it. */
bool pod_same_is_meant(const struct pod *p, const struct pod_key *key, const struct pod_fact *f);

#endif
