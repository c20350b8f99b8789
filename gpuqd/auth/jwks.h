/* jwks.h - the keys of an issuer, RFC 7517
 *
 * Owns     a set of public keys. Touches memory only.
 * Used by  issuer.c, jwt.c, the fuzzer.
 *
 * Taken are RSA keys of 2048 to 8192 bits and keys of the curves P-256 and P-384, whose use, where it is told,
 * is to sign. Others in the set are passed over: issuers have keys for other purposes, too.
 */
#ifndef GPUQD_AUTH_JWKS_H
#define GPUQD_AUTH_JWKS_H

#include <stddef.h>

#include <cjose/cjose.h>

#include "libgpuq/err.h"

#define JWKS_KEYS_MAX 100

struct jwks;

/* An algorithm of signatures that is accepted. */
struct jws_alg {
	const char *name; /* "RS256" */
	cjose_jwk_kty_t type;
	cjose_jwk_ec_curve curve; /* of an EC key */
	size_t signature; /* bytes; 0 = as the key has */
};

const struct jws_alg *jws_alg_find(const char *name); /* NULL = not accepted */

/* 0, or GPUQ_EINVAL: bytes are no set, or none of its keys can be taken. */
int jwks_read(const char *bytes, size_t n, struct jwks **out, struct gpuq_err *err);
void jwks_free(struct jwks *s); /* NULL is allowed */

size_t jwks_count(const struct jwks *s);

/* Return the key of that id that is of the type of alg and, where it names one, for alg; or NULL. */
const cjose_jwk_t *jwks_find(const struct jwks *s, const char *kid, const struct jws_alg *alg);

#endif
