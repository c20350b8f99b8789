/* jwt.h - a JSON web token: its form, its signature, and what a rule makes of its claims
 *
 * Owns     the parts of one token. Touches memory only.
 * Used by  auth.c, the fuzzer.
 *
 * Signatures are libcjose's, RFC 7515. What is accepted is narrower than the RFCs: the algorithms of jwks.h, a key
 * by its kid out of the issuer's own set, no member twice, nothing critical; jku, x5u, jwk and x5c, which name a
 * key in the token itself, are not looked at.
 */
#ifndef GPUQD_AUTH_JWT_H
#define GPUQD_AUTH_JWT_H

#include "gpuqd/auth/jwks.h"
#include "gpuqd/auth/rule.h"
#include "libgpuq/buf.h"

#define JWT_LIFE_S 86400 /* longest time from iat to exp */
#define JWT_LEEWAY_S 60 /* by which clocks may differ */
#define JWT_GROUPS_MAX 64

struct jwt;

/* Read text: 0, or GPUQ_EAUTH and what is wrong with it. Nothing of it is proved yet. */
int jwt_read(const char *text, struct jwt **out, struct gpuq_err *err);
void jwt_free(struct jwt *t); /* NULL is allowed */

const char *jwt_issuer(const struct jwt *t);
const char *jwt_kid(const struct jwt *t);
const struct jws_alg *jwt_alg(const struct jwt *t);
int64_t jwt_expires_us(const struct jwt *t); /* exp and the leeway, wall time */

/* 0, or GPUQ_EAUTH: the signature is not that of the key. */
int jwt_verify(const struct jwt *t, const cjose_jwk_t *key, struct gpuq_err *err);

/* What a rule asks of a token whose signature holds: audience, times, required claims; then its user and, joined
 * by commas, its groups. 0, or GPUQ_EAUTH. */
int jwt_apply(const struct jwt *t, const struct auth_rule *r, int64_t wall_us,
	      char user[RULE_USER_BYTES], struct gpuq_buf *groups, struct gpuq_err *err);

#endif
