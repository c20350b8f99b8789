#include "gpuqd/auth/jwks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "gpuqd/auth/base64url.h"

#define RSA_BYTES_MIN 256
#define RSA_BYTES_MAX 1024 /* a larger one takes milliseconds a token */

struct key {
	char *kid, *alg; /* alg NULL = not told */
	cjose_jwk_t *jwk;
};

struct jwks {
	struct key *keys;
	size_t n;
};

static const struct jws_alg algs[] = {
	{ "RS256", CJOSE_JWK_KTY_RSA, CJOSE_JWK_EC_INVALID, 0 },
	{ "RS384", CJOSE_JWK_KTY_RSA, CJOSE_JWK_EC_INVALID, 0 },
	{ "RS512", CJOSE_JWK_KTY_RSA, CJOSE_JWK_EC_INVALID, 0 },
	{ "PS256", CJOSE_JWK_KTY_RSA, CJOSE_JWK_EC_INVALID, 0 },
	{ "PS384", CJOSE_JWK_KTY_RSA, CJOSE_JWK_EC_INVALID, 0 },
	{ "PS512", CJOSE_JWK_KTY_RSA, CJOSE_JWK_EC_INVALID, 0 },
	{ "ES256", CJOSE_JWK_KTY_EC, CJOSE_JWK_EC_P_256, 64 },
	{ "ES384", CJOSE_JWK_KTY_EC, CJOSE_JWK_EC_P_384, 96 },
};

const struct jws_alg *jws_alg_find(const char *name)
{
	for (size_t i = 0; i < sizeof(algs) / sizeof(algs[0]); i++)
		if (strcmp(algs[i].name, name) == 0)
			return &algs[i];
	return NULL;
}

static bool may_verify(const json_t *v)
{
	const json_t *use = json_object_get(v, "use"), *ops = json_object_get(v, "key_ops"), *op;
	size_t i;

	if (use && (!json_is_string(use) || strcmp(json_string_value(use), "sig") != 0))
		return false;
	if (!ops)
		return true;
	json_array_foreach((json_t *)ops, i,
			   op) if (json_is_string(op) &&
				   strcmp(json_string_value(op), "verify") == 0) return true;
	return false;
}

/* The members of a public key, the only ones that libcjose is given. */
static const struct member {
	const char *type, *name;
	size_t least, most; /* bytes */
} members[] = {
	{ "RSA", "n", RSA_BYTES_MIN, RSA_BYTES_MAX },
	{ "RSA", "e", 1, 8 },
	{ "P-256", "x", 32, 32 },
	{ "P-256", "y", 32, 32 },
	{ "P-384", "x", 48, 48 },
	{ "P-384", "y", 48, 48 },
};

static bool copy_member(const struct member *m, const json_t *v, json_t *out)
{
	const char *text = json_string_value(json_object_get(v, m->name));
	const size_t n = text ? strlen(text) : 0;
	unsigned char bytes[RSA_BYTES_MAX * 4 / 3 + 4];
	size_t len;

	return text && n <= sizeof(bytes) && base64url_read(text, n, bytes, &len) == 0 &&
	       len >= m->least && len <= m->most &&
	       json_object_set_new(out, m->name, json_string(text)) == 0;
}

/* Return the public key alone, each of its members whole and of the right length; or NULL. */
static json_t *public_of(const json_t *v)
{
	const char *type = json_string_value(json_object_get(v, "kty"));
	const char *curve = json_string_value(json_object_get(v, "crv"));
	const bool is_ec = type && strcmp(type, "EC") == 0;
	const char *kind = is_ec ? curve : type;
	json_t *out = json_object();
	size_t n = 0;

	for (size_t i = 0; kind && i < sizeof(members) / sizeof(members[0]); i++)
		if (strcmp(members[i].type, kind) == 0)
			n += copy_member(&members[i], v, out);
	if (n != 2 || json_object_set_new(out, "kty", json_string(type)) != 0 ||
	    (is_ec && json_object_set_new(out, "crv", json_string(curve)) != 0)) {
		json_decref(out);
		return NULL;
	}
	return out;
}

static bool is_strong(const cjose_jwk_t *jwk)
{
	cjose_err why = { .code = CJOSE_ERR_NONE };
	size_t bits;

	if (cjose_jwk_get_kty(jwk, &why) != CJOSE_JWK_KTY_RSA)
		return true; /* the curves are chosen by name */
	bits = cjose_jwk_get_keysize(jwk, &why);
	return bits >= RSA_BYTES_MIN * 8 && bits <= RSA_BYTES_MAX * 8;
}

/* What cannot be used is passed over. */
static void take(struct jwks *s, const json_t *v)
{
	const char *kid = json_string_value(json_object_get(v, "kid"));
	const json_t *alg = json_object_get(v, "alg");
	cjose_err why = { .code = CJOSE_ERR_NONE };
	struct key k = { 0 };
	json_t *key;

	if (!kid || !*kid || !may_verify(v) || (alg && !json_is_string(alg)))
		return;
	key = public_of(v);
	k.jwk = key ? cjose_jwk_import_json(key, &why) : NULL;
	json_decref(key);
	if (k.jwk && is_strong(k.jwk)) {
		k.kid = strdup(kid);
		k.alg = alg ? strdup(json_string_value(alg)) : NULL;
	}
	if (k.kid && (!alg || k.alg)) {
		s->keys[s->n++] = k;
		return;
	}
	free(k.kid);
	cjose_jwk_release(k.jwk);
}

int jwks_read(const char *bytes, size_t n, struct jwks **out, struct gpuq_err *err)
{
	json_t *root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, NULL), *v;
	const json_t *list = json_object_get(root, "keys");
	struct jwks *s = calloc(1, sizeof(*s));
	int rc = 0;
	size_t i;

	if (s)
		s->keys = calloc(JWKS_KEYS_MAX, sizeof(*s->keys));
	if (!s || !s->keys)
		rc = gpuq_no_memory(err);
	else if (!json_is_array(list))
		rc = gpuq_fail(err, GPUQ_EINVAL, "it is no set of keys (a JSON map with keys)");
	else if (json_array_size(list) > JWKS_KEYS_MAX)
		rc = gpuq_fail(err, GPUQ_EINVAL, "it has more than %d keys", JWKS_KEYS_MAX);
	if (rc == 0) {
		json_array_foreach((json_t *)list, i, v) take(s, v);
		if (s->n == 0)
			rc = gpuq_fail(
				err, GPUQ_EINVAL,
				"it has no key with a kid that can be used: RSA of 2048 bits "
				"or more, P-256 or P-384, to verify signatures");
	}
	json_decref(root);
	if (rc == 0)
		*out = s;
	else
		jwks_free(s);
	return rc;
}

void jwks_free(struct jwks *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		free(s->keys[i].kid);
		free(s->keys[i].alg);
		cjose_jwk_release(s->keys[i].jwk);
	}
	free(s->keys);
	free(s);
}

size_t jwks_count(const struct jwks *s)
{
	return s->n;
}

const cjose_jwk_t *jwks_find(const struct jwks *s, const char *kid, const struct jws_alg *alg)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct key *k = &s->keys[i];
		cjose_err why = { .code = CJOSE_ERR_NONE };

		if (strcmp(k->kid, kid) == 0 && (!k->alg || strcmp(k->alg, alg->name) == 0) &&
		    cjose_jwk_get_kty(k->jwk, &why) == alg->type &&
		    (alg->type != CJOSE_JWK_KTY_EC ||
		     cjose_jwk_EC_get_curve(k->jwk, &why) == alg->curve))
			return k->jwk;
	}
	return NULL;
}
