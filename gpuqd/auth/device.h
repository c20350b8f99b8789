/* device.h - logins in a browser, by the device flow of an issuer: RFC 8628
 *
 * Owns     the logins under way: what the issuer was asked for, and what came of it.
 * Touches  https, through net/fetch.h; the files of clients' secrets.
 * Used by  auth.c.
 *
 * gpuqd requests a code that the user confirms at the issuer. Then each call of the gpuq that waits lets it ask the
 * issuer for the web token, no more often than the issuer allows: a login of which no gpuq asks any longer costs
 * nothing and is forgotten.
 */
#ifndef GPUQD_AUTH_DEVICE_H
#define GPUQD_AUTH_DEVICE_H

#include <stdint.h>

#include "gpuqd/auth/rule.h"
#include "libgpuq/err.h"

struct devices;
struct fetcher;
struct issuer;
struct loop;

/* A login that has begun; borrowed. */
struct device_begun {
	const char *login; /* its name, a secret of the one that began it */
	const char *rule; /* name */
	const char *uri, *code; /* where the user goes, and what is entered there */
	const char *uri_complete; /* both in one; NULL = the issuer gives none */
	int64_t expires_s, interval_s;
};
/* b NULL: why it has not begun. */
typedef void (*device_begun_fn)(void *arg, const struct device_begun *b,
				const struct gpuq_err *why);

/* How a login stands. */
struct device_state {
	const struct auth_rule *rule;
	struct issuer *issuer;
	const char *
		token; /* the issuer's web token, not verified yet; NULL = the user has not confirmed */
	int64_t interval_s; /* until it is worth while to ask again */
	const char *trouble; /* why the issuer could not be asked last; "" = it could */
};
/* s NULL: it has failed, and is over. */
typedef void (*device_fn)(void *arg, const struct device_state *s, const struct gpuq_err *why);

/* proxy: where its address is kept, which may change; NULL there = none. NULL without memory. */
struct devices *devices_new(struct loop *l, struct fetcher *f, const char *const *proxy);
/* After the issuers of its logins; answers what is open. NULL is allowed. */
void devices_free(struct devices *d);
/* End all logins; before their issuers go. */
void devices_end(struct devices *d);

/* Check a client's secret: 0, or GPUQ_EINVAL naming the file. */
int device_check_secret(const struct auth_rule *r, struct gpuq_err *err);

/* Begin one with the issuer of r, which has a client_id. from: its client's address, of which a few may be under way.
 * fn is called once, perhaps at once, at most 4 s later. */
void device_begin(struct devices *d, const struct auth_rule *r, struct issuer *i, const char *from,
		  device_begun_fn fn, void *arg);
/* The same of one that has begun; with a token it is over. */
void device_finish(struct devices *d, const char *login, device_fn fn, void *arg);

#endif
