/* gate.h - a pod that waits behind gpuqd's gate may run on one node
 *
 * Touches  memory only.
 * Used by  api_bind.c, suspended.c; tests.
 *
 * Other schedulers see a pod once its gate is open: before that, in the same write, its node becomes its only
 * choice. While it is gated its affinity may only be tightened, so each of its terms keeps what it has.
 */
#ifndef GPUQD_CLUSTER_KUBE_ADOPT_GATE_H
#define GPUQD_CLUSTER_KUBE_ADOPT_GATE_H

#include <jansson.h>
#include <stdbool.h>

/* True for ours, of a list of gates. */
bool gate_is_ours(const json_t *gate);
/* True if our gate of a pod, or of the template of one, is closed. */
bool gate_is_closed(const json_t *pod);
/* Return the gates of others, and ours if it is wanted; null: none. */
json_t *gate_list(const json_t *pod, bool ours);
/* Return the body of a merge patch, of this version of the pod alone; NULL: no memory. A right of its own. */
json_t *gate_opening(const json_t *pod, const char *node);

#endif
