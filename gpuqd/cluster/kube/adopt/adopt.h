/* adopt.h - pods that leave their node to gpuqd, and that it did not make
 *
 * Owns     those that have no node yet, of all namespaces, and which namespaces are wanted.
 * Touches  the apiserver through http.h: reads each such pod of these namespaces once, writes Events.
 * Used by  kube.c.
 *
 * The watch of pods leaves out most of a pod (split.h), so one that is to be queued is read as a whole. With
 * no namespace nothing is requested.
 */
#ifndef GPUQD_CLUSTER_KUBE_ADOPT_ADOPT_H
#define GPUQD_CLUSTER_KUBE_ADOPT_ADOPT_H

#include <jansson.h>

#include "gpuqd/cluster/cluster.h"
#include "gpuqd/cluster/kube/http/http.h"

struct adopts;

/* sink must outlive the result. */
int adopts_new(struct loop *l, struct http *h, const struct cluster_sink *sink, struct adopts **out,
	       struct gpuq_err *err);
void adopts_free(struct adopts *a); /* NULL is fine */

/* Read and report those of the namespaces, also such as were reported before. Copied. */
void adopts_want(struct adopts *a, const char *const *namespaces, size_t n);
/* A pod that is not gpuqd's was seen, or has gone. */
void adopts_shown(struct adopts *a, const struct pod_fact *f, bool gone);
/* Report a pod that is, or would be, as f says, with what of it matters. */
void adopts_tell(struct adopts *a, struct adopt_fact *f, const json_t *pod);
/* Write an Event about a "Pod" or "Job"; the same one is written once. */
void adopts_say(struct adopts *a, const char *kind, const struct pod_ref *ref, bool warning,
		const char *reason, const char *text);

#endif
