/* issuer.h - the keys of one issuer of web tokens, got from it and kept
 *
 * Owns     the set of keys, the transfer that renews it, those that wait for that.
 * Touches  https, through net/fetch.h.
 * Used by  auth.c.
 *
 * Where the keys are is told by ISSUER/.well-known/openid-configuration. They are renewed by a timer, after
 * Cache-Control's max-age but not before 5 minutes, and at once, at most once a minute, for a key that is not among
 * them. While the issuer is away the keys that are known hold for 24 hours; after that none does.
 */
#ifndef GPUQD_AUTH_ISSUER_H
#define GPUQD_AUTH_ISSUER_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuqd/auth/jwks.h"

struct fetcher;
struct issuer;
struct loop;

struct issuer_opts {
	const char *url, *ca, *proxy; /* live as long as the issuer */
	struct fetcher *fetcher;
};

/* Keys were asked for: look again. From the loop, once. */
typedef void (*issuer_fn)(void *arg);

struct issuer *issuer_new(struct loop *l, const struct issuer_opts *o); /* NULL without memory */
void issuer_free(struct issuer *i); /* calls those that wait; NULL is allowed */

const char *issuer_url(const struct issuer *i);
/* Return the keys, until the next turn; NULL = none are known that still hold. */
const struct jwks *issuer_keys(const struct issuer *i);
/* Why the keys could not be renewed last; "" = they could. */
const char *issuer_why(const struct issuer *i);
/* True: fn is called once it was tried to renew the keys, at most 3 s later. False: it was tried a moment ago, or
 * too many wait. */
bool issuer_renew(struct issuer *i, issuer_fn fn, void *arg);

#endif
