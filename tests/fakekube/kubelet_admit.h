/* kubelet_admit.h - does a node take a pod that was bound to it? */
#ifndef FAKEKUBE_KUBELET_ADMIT_H
#define FAKEKUBE_KUBELET_ADMIT_H

#include "version.h"

/* The checks of a real kubelet's device manager and general predicates, and
 * what the pod's annotations ask for. Returns NULL to admit; or the reason,
 * valid until the next call, with its text in message. Too little of a resource
 * is told to the audit. */
const char *kubelet_refusal(const struct facts *f, const struct res *alloc, const struct res *used,
			    bool rebooted, char *message, size_t size);

#endif
