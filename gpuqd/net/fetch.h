/* fetch.h - small documents, got by HTTPS; forms, sent by it
 *
 * Owns     one curl multi handle, the transfers under way and what they have brought so far.
 * Touches  the network through libcurl; a file of CAs.
 * Used by  auth/issuer.c, auth/device.c.
 *
 * Redirects, the environment's proxy and ~/.netrc are not followed or looked at.
 */
#ifndef GPUQD_NET_FETCH_H
#define GPUQD_NET_FETCH_H

#include <stddef.h>
#include <stdint.h>

#include "libgpuq/buf.h"
#include "libgpuq/err.h"

struct loop;
struct fetch;
struct fetcher;

struct fetch_opts {
	const char *ca; /* PEM; NULL = the CAs of the system */
	const char *proxy; /* NULL = none */
	int64_t timeout_us;
	size_t max_bytes;
	/* To send a form (application/x-www-form-urlencoded) instead of only asking; NULL = only ask. Whatever the
	 * status is, the answer to it is a document. */
	const char *form;
	const char *login; /* "user:password" of HTTP Basic; NULL = none */
};

/* A document that was got. */
struct fetched {
	const char *bytes;
	size_t n;
	long status; /* of HTTP */
	int64_t max_age_us; /* by Cache-Control; 0 = not told, or not to be kept */
};

/* got NULL: err says why; its code is GPUQ_EUNREACH, GPUQ_ETOOBIG or GPUQ_EIO (a status that is not
 * 200). The transfer is gone when it is called. */
typedef void (*fetch_fn)(void *arg, const struct fetched *got, const struct gpuq_err *err);

int fetcher_new(struct loop *l, const char *agent, struct fetcher **out, struct gpuq_err *err);
void fetcher_free(struct fetcher *f); /* cancels what is under way; NULL is allowed */

/* fn is called once, never from inside. NULL without memory. Strings are copied but for o's ca and proxy. */
struct fetch *fetch_get(struct fetcher *f, const char *url, const struct fetch_opts *o, fetch_fn fn,
			void *arg);
/* Add s with all but letters, digits and -._~ as %XX. */
void fetch_escape(struct gpuq_buf *b, const char *s);
void fetch_cancel(struct fetch *t); /* no callback after this; NULL is allowed */

#endif
