#include "gpuqd/auth/jwt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "gpuqd/auth/base64url.h"
#include "libgpuq/units.h"

#define KID_BYTES_MAX 256
#define TIME_MAX_S INT64_C(253402300799) /* the end of the year 9999 */

struct jwt {
	char *text; /* a copy */
	json_t *header, *claims;
	const struct jws_alg *alg;
	const char *kid, *issuer;
	size_t n_signature; /* bytes */
	int64_t issued_s, expires_s;
};

/* ---- form ---- */

static int read_part(const char *what, const char *s, size_t n, json_t **out, struct gpuq_err *err)
{
	unsigned char *bytes = malloc(n + 1);
	json_error_t why;
	size_t len = 0;
	json_t *v;

	if (!bytes)
		return gpuq_no_memory(err);
	v = base64url_read(s, n, bytes, &len) == 0
		    ? json_loadb((const char *)bytes, len, JSON_REJECT_DUPLICATES, &why)
		    : NULL;
	free(bytes);
	if (json_is_object(v)) {
		*out = v;
		return 0;
	}
	json_decref(v);
	return gpuq_fail(
		err, GPUQ_EAUTH,
		"the %s of the web token is no JSON map in base64url with each member once", what);
}

static int read_header(struct jwt *t, struct gpuq_err *err)
{
	const char *alg = json_string_value(json_object_get(t->header, "alg"));

	t->alg = alg ? jws_alg_find(alg) : NULL;
	if (!t->alg)
		return gpuq_fail(
			err, GPUQ_EAUTH,
			"the web token's alg is none of RS256, RS384, RS512, PS256, PS384, "
			"PS512, ES256 and ES384");
	if (json_object_get(t->header, "crit"))
		return gpuq_fail(err, GPUQ_EAUTH,
				 "the web token has extensions that must be understood (crit)");
	t->kid = json_string_value(json_object_get(t->header, "kid"));
	if (!t->kid || !*t->kid || strlen(t->kid) > KID_BYTES_MAX)
		return gpuq_fail(err, GPUQ_EAUTH, "the web token names no key (kid)");
	if (t->alg->signature && t->n_signature != t->alg->signature)
		return gpuq_fail(err, GPUQ_EAUTH, "the web token's signature has not %zu bytes",
				 t->alg->signature);
	return 0;
}

/* A time is a whole number of seconds. */
static int read_time(const struct jwt *t, const char *name, int64_t *out, struct gpuq_err *err)
{
	const json_t *v = json_object_get(t->claims, name);
	const json_int_t s = json_integer_value(v);

	if (!json_is_integer(v) || s < 0 || s > TIME_MAX_S)
		return gpuq_fail(err, GPUQ_EAUTH, "the web token has no %s in whole seconds", name);
	*out = s;
	return 0;
}

static int read_claims(struct jwt *t, struct gpuq_err *err)
{
	int rc;

	t->issuer = json_string_value(json_object_get(t->claims, "iss"));
	if (!t->issuer)
		return gpuq_fail(err, GPUQ_EAUTH, "the web token names no issuer (iss)");
	rc = read_time(t, "exp", &t->expires_s, err);
	return rc == 0 ? read_time(t, "iat", &t->issued_s, err) : rc;
}

int jwt_read(const char *text, struct jwt **out, struct gpuq_err *err)
{
	const size_t n = strnlen(text, GPUQ_CREDENTIAL_BYTES_MAX + 1);
	const char *one = memchr(text, '.', n);
	const char *two = one ? strchr(one + 1, '.') : NULL;
	unsigned char *signature;
	struct jwt *t;
	int rc;

	if (n > GPUQ_CREDENTIAL_BYTES_MAX || !two || strchr(two + 1, '.'))
		return gpuq_fail(
			err, GPUQ_EAUTH,
			"the token has not the form of one: neither gpuq_... nor a web token "
			"of three parts and at most %u bytes",
			GPUQ_CREDENTIAL_BYTES_MAX);
	t = calloc(1, sizeof(*t));
	signature = malloc(n);
	if (t)
		t->text = strdup(text);
	if (!t || !signature || !t->text)
		rc = gpuq_no_memory(err);
	else if (two[1] == '\0' ||
		 base64url_read(two + 1, strlen(two + 1), signature, &t->n_signature) < 0)
		rc = gpuq_fail(err, GPUQ_EAUTH,
			       "the web token has no signature in base64url: it is cut or altered");
	else
		rc = read_part("header", text, (size_t)(one - text), &t->header, err);
	if (rc == 0)
		rc = read_header(t, err);
	if (rc == 0)
		rc = read_part("payload", one + 1, (size_t)(two - one - 1), &t->claims, err);
	if (rc == 0)
		rc = read_claims(t, err);
	free(signature);
	if (rc == 0)
		*out = t;
	else
		jwt_free(t);
	return rc;
}

void jwt_free(struct jwt *t)
{
	if (!t)
		return;
	if (t->text)
		explicit_bzero(t->text, strlen(t->text));
	free(t->text);
	json_decref(t->header);
	json_decref(t->claims);
	free(t);
}

const char *jwt_issuer(const struct jwt *t)
{
	return t->issuer;
}

const char *jwt_kid(const struct jwt *t)
{
	return t->kid;
}

const struct jws_alg *jwt_alg(const struct jwt *t)
{
	return t->alg;
}

int64_t jwt_expires_us(const struct jwt *t)
{
	return (t->expires_s + JWT_LEEWAY_S) * GPUQ_US_PER_S;
}

/* ---- signature ---- */

int jwt_verify(const struct jwt *t, const cjose_jwk_t *key, struct gpuq_err *err)
{
	cjose_err why = { .code = CJOSE_ERR_NONE };
	cjose_jws_t *jws = cjose_jws_import(t->text, strlen(t->text), &why);
	const bool holds = jws && cjose_jws_verify(jws, key, &why);

	cjose_jws_release(jws);
	if (!holds)
		return gpuq_fail(err, GPUQ_EAUTH,
				 "the web token's signature is not of the key that it names");
	return 0;
}

/* ---- claims ---- */

static const char *claim_text(const void *arg, const char *name)
{
	return json_string_value(json_object_get(((const struct jwt *)arg)->claims, name));
}

static bool is_for(const struct jwt *t, const char *audience)
{
	const json_t *aud = json_object_get(t->claims, "aud"), *one;
	size_t i;

	if (json_is_string(aud))
		return strcmp(json_string_value(aud), audience) == 0;
	json_array_foreach((json_t *)aud, i,
			   one) if (json_is_string(one) &&
				    strcmp(json_string_value(one), audience) == 0) return true;
	return false;
}

static int check_times(const struct jwt *t, int64_t now_s, struct gpuq_err *err)
{
	int64_t from_s = 0;
	int rc = json_object_get(t->claims, "nbf") ? read_time(t, "nbf", &from_s, err) : 0;

	if (rc < 0)
		return rc;
	if (t->expires_s - t->issued_s > JWT_LIFE_S)
		return gpuq_fail(err, GPUQ_EAUTH,
				 "the web token holds for %" PRId64
				 " s (exp less iat); at most %d are accepted",
				 t->expires_s - t->issued_s, JWT_LIFE_S);
	if (t->issued_s - JWT_LEEWAY_S > now_s || from_s - JWT_LEEWAY_S > now_s)
		return gpuq_fail(err, GPUQ_EAUTH,
				 "the web token is of the future (iat, nbf): compare the clocks of "
				 "its issuer and of gpuqd");
	if (now_s >= t->expires_s + JWT_LEEWAY_S)
		return gpuq_fail(err, GPUQ_EAUTH,
				 "the web token has expired: get a new one from its issuer");
	return 0;
}

static int check_required(const struct jwt *t, const struct auth_rule *r, struct gpuq_err *err)
{
	for (size_t i = 0; i < r->require.n; i++) {
		const char *is = claim_text(t, r->require.keys[i]);

		if (!is || strcmp(is, r->require.vals[i]) != 0)
			return gpuq_fail(err, GPUQ_EAUTH,
					 "the web token's claim %.64s is not what auth.oidc %s "
					 "requires",
					 r->require.keys[i], r->name);
	}
	return 0;
}

static int add_group(const struct auth_rule *r, const json_t *v, struct gpuq_buf *out,
		     struct gpuq_err *err)
{
	const char *name = json_string_value(v);

	if (!name || !rule_is_name(name))
		return gpuq_fail(
			err, GPUQ_EAUTH,
			"a group in the web token's claim %s is not 1 to %u letters, digits "
			"and ._:/@+-",
			r->groups, GPUQ_IDENTITY_BYTES_MAX);
	gpuq_buf_printf(out, "%s%.*s%s", out->len ? "," : "",
			r->trusted_names ? 0 : (int)rule_prefix(r->user), r->user, name);
	return 0;
}

static int add_groups(const struct jwt *t, const struct auth_rule *r, struct gpuq_buf *out,
		      struct gpuq_err *err)
{
	const json_t *list = r->groups ? json_object_get(t->claims, r->groups) : NULL, *v;
	int rc = 0;
	size_t i;

	if (!list)
		return 0;
	if (json_is_string(list))
		return add_group(r, list, out, err);
	if (!json_is_array(list) || json_array_size(list) > JWT_GROUPS_MAX)
		return gpuq_fail(err, GPUQ_EAUTH,
				 "the web token's claim %s is no list of at most %d groups",
				 r->groups, JWT_GROUPS_MAX);
	json_array_foreach((json_t *)list, i, v)
	{
		rc = add_group(r, v, out, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int jwt_apply(const struct jwt *t, const struct auth_rule *r, int64_t wall_us,
	      char user[RULE_USER_BYTES], struct gpuq_buf *groups, struct gpuq_err *err)
{
	struct gpuq_err why = GPUQ_ERR_INIT;
	int rc;

	if (strcmp(t->issuer, r->issuer) != 0)
		return gpuq_fail(err, GPUQ_EAUTH, "the web token is of another issuer than %s",
				 r->issuer);
	if (!is_for(t, r->audience))
		return gpuq_fail(err, GPUQ_EAUTH,
				 "the web token is for another audience (aud) than %.64s",
				 r->audience);
	rc = check_times(t, wall_us / GPUQ_US_PER_S, err);
	if (rc == 0)
		rc = check_required(t, r, err);
	if (rc < 0)
		return rc;
	if (rule_user(r->user, claim_text, t, user, &why) < 0)
		return gpuq_fail(err, GPUQ_EAUTH, "the web token is no user of auth.oidc %s: %s",
				 r->name, why.text);
	return add_groups(t, r, groups, err);
}
