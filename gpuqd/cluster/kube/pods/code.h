/* code.h - the archive that a job carries, as a ConfigMap has it
 *
 * Owns     nothing. Touches the archive's file (reads); libcrypto.
 * Used by  api_create.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_PODS_CODE_H
#define GPUQD_CLUSTER_KUBE_PODS_CODE_H

#include "libgpuq/err.h"

/* Read the file as base64, which the caller frees. Returns 0; GPUQ_ETOOBIG: more than a ConfigMap takes; GPUQ_EIO,
 * GPUQ_ENOMEM. */
int code_read(const char *path, char **out, struct gpuq_err *err);

#endif
