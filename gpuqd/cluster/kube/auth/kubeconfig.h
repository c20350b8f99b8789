/* kubeconfig.h - reads kubeconfig files into a struct kube_config
 *
 * Owns     nothing. Touches the files that the text names.
 * Used by  config.c.
 */
#ifndef GPUQD_CLUSTER_KUBE_AUTH_KUBECONFIG_H
#define GPUQD_CLUSTER_KUBE_AUTH_KUBECONFIG_H

#include "gpuqd/cluster/kube/auth/config.h"
#include "libgpuq/val.h"

struct kubeconfig_doc {
	const char *file; /* its path, for messages and for relative paths in it */
	const struct gpuq_val *root;
};

/* Take what context (NULL: current-context) says from docs, of which an earlier one
 * wins over a later one. Everything goes to out->arena. */
int kubeconfig_read(const struct kubeconfig_doc *docs, size_t n, const char *context,
		    struct kube_config *out, struct gpuq_err *err);

#endif
