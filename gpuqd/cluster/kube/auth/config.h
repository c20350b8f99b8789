/* config.h - address of the apiserver, and credentials
 *
 * Owns     struct kube_config: contents of a kubeconfig or of a pod's own credentials.
 * Touches  files (kubeconfig, certificates, tokens) and the environment, at start
 *          and when creds.c asks to read the files again.
 * Used by  creds.c, kube.c.
 *
 * Formats: "Organizing Cluster Access Using kubeconfig Files" and "Accessing the
 * API from within a Pod" of the Kubernetes documentation.
 */
#ifndef GPUQD_CLUSTER_KUBE_AUTH_CONFIG_H
#define GPUQD_CLUSTER_KUBE_AUTH_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "libgpuq/arena.h"
#include "libgpuq/err.h"
#include "libgpuq/schema.h"

struct kube_bytes {
	const char *data; /* NULL = none */
	size_t n;
};

struct kube_exec {
	const char *command; /* NULL = no plugin */
	const char *api_version, *hint;
	struct gpuq_strlist args;
	struct gpuq_strmap env; /* added to our own */
	bool give_cluster; /* provideClusterInfo */
};

struct kube_config {
	struct gpuq_arena arena;
	const char *origin; /* for messages: the file, or "in-cluster" */
	const char *server; /* "https://host:port[/path]", no slash at the end */
	const char *namespace_; /* of the context; "" none */
	const char *tls_server_name, *proxy_url; /* "" none */
	bool insecure;
	/* A file is read again by kube_config_reload(); *_file NULL = given in place. */
	struct kube_bytes ca, cert, key; /* PEM */
	const char *ca_file, *cert_file, *key_file;
	const char *token, *token_file; /* token "" none */
	const char *username, *password;
	const char *as_user, *as_uid;
	struct gpuq_strlist as_groups;
	struct gpuq_strmap as_extra;
	struct kube_exec exec;
};

/* Defaults. */
#define KUBE_CONFIG_NONE                                                                           \
	.namespace_ = "", .tls_server_name = "", .proxy_url = "", .token = "", .username = "",     \
	.password = "", .as_user = "", .as_uid = ""

/* Find and read the credentials.
 *
 * path NULL: $KUBECONFIG (a colon-separated list, merged), then a pod's own
 * credentials, then ~/.kube/config. context NULL: current-context.
 * Returns 0; GPUQ_ENOENT (no configuration, or no such context), GPUQ_EINVAL with
 * "file:line:col" or the path of the field, GPUQ_EIO, GPUQ_ENOMEM. */
int kube_config_load(const char *path, const char *context, struct kube_config *out,
		     struct gpuq_err *err);

/* Read CA, client certificate and key again from their files; what cannot be read
 * stays as it was. Memory of the old ones is kept until kube_config_done(). */
int kube_config_reload(struct kube_config *c, struct gpuq_err *err);

void kube_config_done(struct kube_config *c);

/* A whole file of at most max bytes, in the arena, NUL behind. */
int kube_read_file(struct gpuq_arena *a, const char *path, size_t max, struct kube_bytes *out,
		   struct gpuq_err *err);

#endif
