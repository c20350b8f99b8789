/* creds.h - the credentials of the moment, renewed beside the loop
 *
 * Owns     the token, what a plugin gave, and when each has to be renewed.
 * Touches  the token file and certificate files, the plugin's process.
 * Used by  http.c.
 *
 * A token file is read again every 60 s (the kubelet rotates it) and when the server
 * answers 401; certificates when TLS fails. A plugin runs before its credential
 * expires and after a 401.
 */
#ifndef GPUQD_CLUSTER_KUBE_AUTH_CREDS_H
#define GPUQD_CLUSTER_KUBE_AUTH_CREDS_H

#include <stdbool.h>

#include "gpuqd/cluster/kube/auth/config.h"

struct loop;
struct creds;

/* Credentials of one request; valid while a reference to them is held. */
struct creds_view {
	unsigned refs;
	char *token; /* NULL = none */
	struct kube_bytes ca, cert, key;
	char *own_cert, *own_key; /* memory of a plugin's */
};

/* Credentials have come (err NULL) or could not be had. */
typedef void (*creds_fn)(void *arg, const struct gpuq_err *err);

/* config stays the caller's and must outlive the result. */
int creds_new(struct loop *l, struct kube_config *config, creds_fn fn, void *arg,
	      struct creds **out, struct gpuq_err *err);
void creds_free(struct creds *c);

/* The credentials to use now, with a reference for the caller; NULL: they are being
 * fetched, and fn will be called. Never calls fn itself. */
struct creds_view *creds_get(struct creds *c);
void creds_put(struct creds_view *v);

/* The server refused v (401). true: others are there or on their way, try again. */
bool creds_refused(struct creds *c, const struct creds_view *v);

/* TLS failed: the next creds_get() has the files as they are now. */
void creds_tls_failed(struct creds *c);

#endif
