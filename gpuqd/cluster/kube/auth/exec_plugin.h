/* exec_plugin.h - run a credential plugin of a kubeconfig beside the loop
 *
 * Owns     the child process and its output, until the callback or the cancelling.
 * Touches  one child at a time, in its own process group; its standard error is ours.
 * Used by  creds.c.
 *
 * Protocol: client.authentication.k8s.io, "client-go credential plugins" of the
 * Kubernetes documentation.
 */
#ifndef GPUQD_CLUSTER_KUBE_AUTH_EXEC_PLUGIN_H
#define GPUQD_CLUSTER_KUBE_AUTH_EXEC_PLUGIN_H

#include <stdint.h>

#include "gpuqd/cluster/kube/auth/config.h"

struct loop;
struct exec_plugin;

/* Output of a plugin; "" for missing parts. Valid until the callback returns. */
struct exec_creds {
	const char *token, *cert_pem, *key_pem;
	int64_t expires_us; /* wall clock; 0 = not reported */
};

/* creds NULL: it failed, err says why. The plugin is gone when this is called. */
typedef void (*exec_plugin_fn)(void *arg, const struct exec_creds *creds,
			       const struct gpuq_err *err);

/* Start c->exec; fn is called later, never from inside. It is killed after 60 s. */
int exec_plugin_start(struct loop *l, const struct kube_config *c, exec_plugin_fn fn, void *arg,
		      struct exec_plugin **out, struct gpuq_err *err);

/* Kill it; fn is not called. NULL is allowed. */
void exec_plugin_cancel(struct exec_plugin *p);

/* The plugin's output to credentials; for tests. room keeps what *out points to. */
int exec_plugin_parse(const char *json, size_t n, const char *api_version, struct gpuq_arena *room,
		      struct exec_creds *out, struct gpuq_err *err);

#endif
