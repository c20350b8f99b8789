/* issuer.h - the keys of one issuer of web tokens, got from it and kept
 *
 * Owns     the set of keys, the transfer that renews it, those that wait for that; where its other services are.
 * Touches  https, through net/fetch.h.
 * Used by  auth.c, device.c.
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
/* True if it would be made of o. */
bool issuer_is(const struct issuer *i, const struct issuer_opts *o);
/* Return the keys, until the next turn; NULL = none are known that still hold. */
const struct jwks *issuer_keys(const struct issuer *i);
/* What the issuer said last of its services, until the next turn. */
struct issuer_places {
	bool known; /* it has said so at all */
	const char *device, *token; /* https:// addresses for device.c; NULL = it has none */
	bool secret_in_form; /* it takes no secret of a client by HTTP Basic */
};
void issuer_places(const struct issuer *i, struct issuer_places *out);
/* Why the keys could not be renewed last; "" = they could. */
const char *issuer_why(const struct issuer *i);
/* True: fn is called once it was tried to renew the keys, at most 3 s later. False: it was tried a moment ago, or
 * too many wait. */
bool issuer_renew(struct issuer *i, issuer_fn fn, void *arg);

#endif
