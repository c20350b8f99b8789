/* webhook.h - POST a JSON text to a URL, beside the loop
 *
 * Owns     the HTTP client for it, and each call until its callback or its cancelling.
 * Touches  sockets through libcurl.
 * Used by  flow/notify/outbox.
 *
 * No redirect is followed, no proxy taken from the environment, no password from a file;
 * only http and https are used. Only the status of a reply is kept.
 */
#ifndef GPUQD_NET_WEBHOOK_H
#define GPUQD_NET_WEBHOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/err.h"

struct loop;
struct webhook;
struct webhook_call;

struct webhook_opts {
	int64_t timeout_us; /* of one call, connecting included */
	const char *proxy; /* NULL or "" none */
	const char *agent; /* "gpuqd/1.0" */
};

int webhook_new(struct loop *l, const struct webhook_opts *o, struct webhook **out,
		struct gpuq_err *err);
void webhook_set_opts(struct webhook *w, const struct webhook_opts *o); /* of calls to come */
void webhook_free(struct webhook *w); /* cancels what is under way; NULL is allowed */

/* rc 0: taken (2xx). Else err has the cause, and final is true if a retry is useless: the
 * receiver refused (3xx, 4xx except 408, 425, 429), or the URL is not valid. */
typedef void (*webhook_fn)(void *arg, int rc, bool final, const struct gpuq_err *err);

/* body is copied. id: goes with it as Idempotency-Key. fn is called later, never from
 * inside, once. Returns 0; GPUQ_ENOMEM, and then fn is not called. */
int webhook_post(struct webhook *w, const char *url, const char *id, const char *body, size_t n,
		 webhook_fn fn, void *arg, struct webhook_call **out, struct gpuq_err *err);
void webhook_cancel(struct webhook_call *c); /* fn is not called; NULL is allowed */

#endif
