/* gang.h - the gang of a pod that was not submitted
 *
 * Touches  memory only.
 * Used by  adopt.c; tests.
 */
#ifndef GPUQD_CLUSTER_KUBE_ADOPT_GANG_H
#define GPUQD_CLUSTER_KUBE_ADOPT_GANG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/buf.h"
#include "libgpuq/err.h"

/* The object that tells how many pods a gang has. Words live as long as the pod. */
struct gang {
	const char *kind, *name; /* "PyTorchJob", "mnist" */
	const char *group, *version, *plural; /* "" = the pod itself tells the number */
	uint32_t n; /* of pods, then */
};

/* False: it is in no gang. */
bool gang_of(const json_t *pod, struct gang *out);
/* Append the path of the object of a pod's gang. */
void gang_path(const struct gang *g, const char *namespace_, struct gpuq_buf *out);
/* Get how many pods start together, by the object: the minimum of a PodGroup, the pods of a job in the words of
 * its kind, as gpuq submit reads it. Returns 0, or why it has no such number. */
int gang_size(const json_t *object, const struct gang *g, uint32_t *n, struct gpuq_err *err);

#endif
