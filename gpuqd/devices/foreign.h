/* foreign.h - pods of systems that gpuqd does not serve
 *
 * Touches  memory only.
 * Used by  cluster/kube/watch (pods that gpuqd did not create).
 */
#ifndef GPUQD_DEVICES_FOREIGN_H
#define GPUQD_DEVICES_FOREIGN_H

#include "gpuqd/devices/backend.h"

#define KUBESHARE "sharedgpu/" /* begins its keys, of labels and annotations */

#define KAI_GROUP                                                                                  \
	"runai-gpu-group" /* begins its labels: one, or one with a slash for each of several */

/* Read what a pod of KAI or KubeShare holds of devices: of others, out stays as it is. notes: its annotations, and
 * its labels of KUBESHARE and KAI_GROUP. held_milli: the
 * devices that it requests by resources. Returns 0;
 * GPUQ_ENOMEM. */
int foreign_observe(const struct gpuq_strmap *notes, int64_t held_milli, struct gpuq_arena *a,
		    struct backend_seen *out);

#endif
