/* Web tokens: what is accepted, and what an attacker, a careless issuer or a wrong clock may present. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "gpuqd/auth/jwt.h"
#include "libgpuq/units.h"

#define NOW INT64_C(1700000000)

static EVP_PKEY *rsa, *other_rsa, *small_rsa, *p256, *p384;

static char *encode(const void *bytes, size_t n)
{
	char *text = calloc(1, n * 4 / 3 + 8), *s;

	EVP_EncodeBlock((unsigned char *)text, bytes, (int)n);
	for (s = text; *s && *s != '='; s++)
		*s = *s == '+' ? '-' : *s == '/' ? '_' : *s;
	*s = '\0';
	return text;
}

/* ---- the keys, and the set of the issuer ---- */

static char *number(EVP_PKEY *k, const char *name, size_t n)
{
	unsigned char bytes[1024];
	BIGNUM *b = NULL;
	char *text;

	cr_assert(EVP_PKEY_get_bn_param(k, name, &b));
	text = encode(bytes,
		      (size_t)BN_bn2binpad(b, bytes, (int)(n ? n : (size_t)BN_num_bytes(b))));
	BN_free(b);
	return text;
}

static void put_rsa(char *out, size_t size, EVP_PKEY *k, const char *kid, const char *more)
{
	char *n = number(k, "n", 0), *e = number(k, "e", 0);

	snprintf(out, size, "{\"kty\":\"RSA\",\"kid\":\"%s\",\"n\":\"%s\",\"e\":\"%s\"%s}", kid, n,
		 e, more);
	free(n);
	free(e);
}

static void put_ec(char *out, size_t size, EVP_PKEY *k, const char *kid, const char *curve,
		   size_t n)
{
	char *x = number(k, "qx", n), *y = number(k, "qy", n);

	snprintf(out, size,
		 "{\"kty\":\"EC\",\"kid\":\"%s\",\"crv\":\"%s\",\"x\":\"%s\",\"y\":\"%s\"}", kid,
		 curve, x, y);
	free(x);
	free(y);
}

static struct jwks *make_set(void)
{
	static char keys[8][2048], all[16384];
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct jwks *s = NULL;

	put_rsa(keys[0], sizeof(keys[0]), rsa, "rsa", "");
	put_rsa(keys[1], sizeof(keys[1]), rsa, "for-ps", ",\"alg\":\"PS256\",\"use\":\"sig\"");
	put_rsa(keys[2], sizeof(keys[2]), rsa, "encrypts", ",\"use\":\"enc\"");
	put_rsa(keys[3], sizeof(keys[3]), small_rsa, "small", "");
	put_rsa(keys[4], sizeof(keys[4]), rsa, "signs", ",\"key_ops\":[\"sign\"]");
	put_ec(keys[5], sizeof(keys[5]), p256, "p256", "P-256", 32);
	put_ec(keys[6], sizeof(keys[6]), p384, "p384", "P-384", 48);
	snprintf(all, sizeof(all),
		 "{\"keys\":[%s,%s,%s,%s,%s,%s,%s,"
		 "{\"kty\":\"oct\",\"kid\":\"oct\",\"k\":\"c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0\"},"
		 "{\"kty\":\"OKP\",\"kid\":\"ed\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"},7,{}]}",
		 keys[0], keys[1], keys[2], keys[3], keys[4], keys[5], keys[6]);
	cr_assert_eq(jwks_read(all, strlen(all), &s, &err), 0, "%s", err.text);
	cr_assert_eq(jwks_count(s), 4);
	return s;
}

static void make_keys(void)
{
	rsa = EVP_RSA_gen(2048);
	other_rsa = EVP_RSA_gen(2048);
	small_rsa = EVP_RSA_gen(1024);
	p256 = EVP_EC_gen("P-256");
	p384 = EVP_EC_gen("P-384");
}

static void drop_keys(void)
{
	EVP_PKEY_free(rsa);
	EVP_PKEY_free(other_rsa);
	EVP_PKEY_free(small_rsa);
	EVP_PKEY_free(p256);
	EVP_PKEY_free(p384);
}

TestSuite(jwt, .init = make_keys, .fini = drop_keys);

/* ---- signing ---- */

enum sign {
	RS,
	PS,
	ES,
	ES_DER,
	ES_P384,
	OTHER,
	SMALL,
	HMAC_MODULUS,
	EMPTY,
	NONE,
	CUT,
	FLIP,
	ZEROS
};

static size_t digest_sign(EVP_PKEY *k, const char *md, bool pss, const char *text,
			  unsigned char *out, size_t size)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	EVP_PKEY_CTX *pc = NULL;
	size_t n = size;

	cr_assert(EVP_DigestSignInit_ex(c, &pc, md, NULL, NULL, k, NULL) == 1);
	if (pss) {
		EVP_PKEY_CTX_set_rsa_padding(pc, RSA_PKCS1_PSS_PADDING);
		EVP_PKEY_CTX_set_rsa_pss_saltlen(pc, RSA_PSS_SALTLEN_DIGEST);
	}
	cr_assert(EVP_DigestSign(c, out, &n, (const unsigned char *)text, strlen(text)) == 1);
	EVP_MD_CTX_free(c);
	return n;
}

/* From DER to r and s side by side. */
static size_t flat(unsigned char *bytes, size_t n, int half)
{
	const unsigned char *p = bytes;
	ECDSA_SIG *s = d2i_ECDSA_SIG(NULL, &p, (long)n);

	cr_assert(s);
	BN_bn2binpad(ECDSA_SIG_get0_r(s), bytes, half);
	BN_bn2binpad(ECDSA_SIG_get0_s(s), bytes + half, half);
	ECDSA_SIG_free(s);
	return (size_t)half * 2;
}

static size_t sign(enum sign how, const char *md, const char *text, unsigned char *out, size_t size)
{
	char *secret;
	EVP_PKEY *k;
	size_t n;

	memset(out, 0, size);
	switch (how) {
	case PS:
		return digest_sign(rsa, md, true, text, out, size);
	case ES:
		return flat(out, digest_sign(p256, md, false, text, out, size), 32);
	case ES_DER:
		return digest_sign(p256, md, false, text, out, size);
	case ES_P384:
		return flat(out, digest_sign(p384, md, false, text, out, size), 48);
	case OTHER:
		return digest_sign(other_rsa, md, false, text, out, size);
	case SMALL:
		return digest_sign(small_rsa, md, false, text, out, size);
	case HMAC_MODULUS:
		secret = number(rsa, "n", 0);
		k = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, (unsigned char *)secret,
						 strlen(secret));
		n = digest_sign(k, md, false, text, out, size);
		EVP_PKEY_free(k);
		free(secret);
		return n;
	case EMPTY:
	case NONE:
		return 0;
	case ZEROS:
		return 64;
	default:
		n = digest_sign(rsa, md, false, text, out, size);
		if (how == FLIP)
			out[n / 2] ^= 1;
		return how == CUT ? n - 1 : n;
	}
}

static char *make(const char *header, const char *claims, enum sign how, const char *md)
{
	static char text[40000];
	unsigned char bytes[1024];
	char *h = encode(header, strlen(header)), *c = encode(claims, strlen(claims)), *s;
	size_t n;

	snprintf(text, sizeof(text), "%s.%s", h, c);
	n = sign(how, md, text, bytes, sizeof(bytes));
	s = encode(bytes, n);
	if (how != NONE)
		strncat(text, ".", 2), strncat(text, s, sizeof(text) - strlen(text) - 1);
	free(h);
	free(c);
	free(s);
	return text;
}

/* ---- the tables ---- */

static const struct auth_rule rule = {
	.name = "ci",
	.issuer = "https://issuer",
	.audience = "gpuq",
	.user = "ci:{sub}",
	.groups = "groups",
	.require = { (const char *[]){ "ref" }, (const char *[]){ "refs/heads/main" }, 1 },
};

static int present(const struct jwks *keys, const char *text, const struct auth_rule *r, char *user,
		   struct gpuq_buf *groups, struct gpuq_err *err)
{
	const cjose_jwk_t *key;
	struct jwt *t = NULL;
	int rc = jwt_read(text, &t, err);

	if (rc < 0)
		return rc;
	key = jwks_find(keys, jwt_kid(t), jwt_alg(t));
	rc = key ? jwt_verify(t, key, err) : gpuq_fail(err, GPUQ_EAUTH, "no such key");
	if (rc == 0)
		rc = jwt_apply(t, r, NOW * GPUQ_US_PER_S, user, groups, err);
	jwt_free(t);
	return rc;
}

#define H "{\"alg\":\"RS256\",\"kid\":\"rsa\"}"
#define ISS "\"iss\":\"https://issuer\""
#define AUD "\"aud\":\"gpuq\""
#define TIMES "\"iat\":1699999990,\"exp\":1700000290"
#define SUB "\"sub\":\"ann\""
#define REF "\"ref\":\"refs/heads/main\""
#define C "{" ISS "," AUD "," TIMES "," SUB "," REF "}"

static const struct good {
	const char *header, *claims;
	enum sign how;
	const char *md, *user, *groups;
} good[] = {
	{ H, C, RS, "SHA256", "ci:ann", "" },
	{ "{\"alg\":\"RS384\",\"kid\":\"rsa\",\"typ\":\"JWT\"}", C, RS, "SHA384", "ci:ann", "" },
	{ "{\"alg\":\"RS512\",\"kid\":\"rsa\"}", C, RS, "SHA512", "ci:ann", "" },
	{ "{\"alg\":\"PS256\",\"kid\":\"rsa\"}", C, PS, "SHA256", "ci:ann", "" },
	{ "{\"alg\":\"PS256\",\"kid\":\"for-ps\"}", C, PS, "SHA256", "ci:ann", "" },
	{ "{\"alg\":\"PS384\",\"kid\":\"rsa\"}", C, PS, "SHA384", "ci:ann", "" },
	{ "{\"alg\":\"PS512\",\"kid\":\"rsa\"}", C, PS, "SHA512", "ci:ann", "" },
	{ "{\"alg\":\"ES256\",\"kid\":\"p256\"}", C, ES, "SHA256", "ci:ann", "" },
	{ "{\"alg\":\"ES384\",\"kid\":\"p384\"}", C, ES_P384, "SHA384", "ci:ann", "" },
	/* Members that would name another key are not looked at. */
	{ "{\"alg\":\"RS256\",\"kid\":\"rsa\",\"jku\":\"https://evil\",\"x5u\":\"https://evil\","
	  "\"jwk\":{\"kty\":\"oct\",\"k\":\"AAAA\"},\"x5c\":[\"AAAA\"]}",
	  C, RS, "SHA256", "ci:ann", "" },
	{ H, "{" ISS ",\"aud\":[\"other\",\"gpuq\"]," TIMES "," SUB "," REF "}", RS, "SHA256",
	  "ci:ann", "" },
	{ H,
	  "{" ISS "," AUD ",\"iat\":1700000059,\"exp\":1700000359,\"nbf\":1700000060," SUB "," REF
	  "}",
	  RS, "SHA256", "ci:ann", "" },
	{ H, "{" ISS "," AUD ",\"iat\":1699913542,\"exp\":1699999941," SUB "," REF "}", RS,
	  "SHA256", "ci:ann", "" },
	{ H, "{" ISS "," AUD "," TIMES "," SUB "," REF ",\"groups\":[\"a\",\"b/c\"]}", RS, "SHA256",
	  "ci:ann", "ci:a,ci:b/c" },
	{ H, "{" ISS "," AUD "," TIMES "," SUB "," REF ",\"groups\":\"a\"}", RS, "SHA256", "ci:ann",
	  "ci:a" },
};

Test(jwt, good_ones_are_users)
{
	struct jwks *keys = make_set();

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_buf groups = GPUQ_BUF_INIT;
		char user[RULE_USER_BYTES] = "";
		const char *text = make(good[i].header, good[i].claims, good[i].how, good[i].md);

		cr_assert_eq(present(keys, text, &rule, user, &groups, &err), 0, "%zu: %s", i,
			     err.text);
		cr_assert_str_eq(user, good[i].user);
		cr_assert_str_eq(gpuq_buf_str(&groups), good[i].groups);
		gpuq_buf_done(&groups);
	}
	jwks_free(keys);
}

#define WITH(aud_, times_, sub_, ref_) "{" ISS "," aud_ "," times_ "," sub_ "," ref_ "}"

static const struct bad {
	const char *header, *claims;
	enum sign how;
	const char *md, *says;
} bad[] = {
	/* algorithms */
	{ "{\"alg\":\"none\",\"kid\":\"rsa\"}", C, EMPTY, "SHA256", "no signature" },
	{ "{\"alg\":\"none\",\"kid\":\"rsa\"}", C, RS, "SHA256", "alg is none of" },
	{ "{\"alg\":\"None\",\"kid\":\"rsa\"}", C, RS, "SHA256", "alg is none of" },
	{ "{\"alg\":\"nOnE\",\"kid\":\"rsa\"}", C, ZEROS, "SHA256", "alg is none of" },
	{ "{\"alg\":\"HS256\",\"kid\":\"rsa\"}", C, HMAC_MODULUS, "SHA256", "alg is none of" },
	{ "{\"alg\":\"HS512\",\"kid\":\"oct\"}", C, HMAC_MODULUS, "SHA512", "alg is none of" },
	{ "{\"alg\":\"EdDSA\",\"kid\":\"ed\"}", C, ZEROS, "SHA256", "alg is none of" },
	{ "{\"alg\":\"ES512\",\"kid\":\"p256\"}", C, ES, "SHA512", "alg is none of" },
	{ "{\"alg\":\"ES256K\",\"kid\":\"p256\"}", C, ES, "SHA256", "alg is none of" },
	{ "{\"alg\":\"RS1\",\"kid\":\"rsa\"}", C, RS, "SHA1", "alg is none of" },
	{ "{\"alg\":\"rs256\",\"kid\":\"rsa\"}", C, RS, "SHA256", "alg is none of" },
	{ "{\"alg\":\"\",\"kid\":\"rsa\"}", C, RS, "SHA256", "alg is none of" },
	{ "{\"alg\":7,\"kid\":\"rsa\"}", C, RS, "SHA256", "alg is none of" },
	{ "{\"alg\":[\"RS256\"],\"kid\":\"rsa\"}", C, RS, "SHA256", "alg is none of" },
	{ "{\"kid\":\"rsa\"}", C, RS, "SHA256", "alg is none of" },
	{ "{\"alg\":\"dir\",\"enc\":\"A128GCM\",\"kid\":\"rsa\"}", C, RS, "SHA256",
	  "alg is none of" },
	/* keys */
	{ "{\"alg\":\"RS256\",\"kid\":\"p256\"}", C, RS, "SHA256", "no such key" },
	{ "{\"alg\":\"ES256\",\"kid\":\"rsa\"}", C, ES, "SHA256", "no such key" },
	{ "{\"alg\":\"ES256\",\"kid\":\"p384\"}", C, ES, "SHA256", "no such key" },
	{ "{\"alg\":\"ES384\",\"kid\":\"p256\"}", C, ES_P384, "SHA384", "no such key" },
	{ "{\"alg\":\"RS256\",\"kid\":\"for-ps\"}", C, RS, "SHA256", "no such key" },
	{ "{\"alg\":\"RS256\",\"kid\":\"encrypts\"}", C, RS, "SHA256", "no such key" },
	{ "{\"alg\":\"RS256\",\"kid\":\"signs\"}", C, RS, "SHA256", "no such key" },
	{ "{\"alg\":\"RS256\",\"kid\":\"small\"}", C, SMALL, "SHA256", "no such key" },
	{ "{\"alg\":\"RS256\",\"kid\":\"oct\"}", C, RS, "SHA256", "no such key" },
	{ "{\"alg\":\"RS256\",\"kid\":\"RSA\"}", C, RS, "SHA256", "no such key" },
	{ "{\"alg\":\"RS256\",\"kid\":\"../rsa\"}", C, RS, "SHA256", "no such key" },
	{ "{\"alg\":\"RS256\"}", C, RS, "SHA256", "names no key" },
	{ "{\"alg\":\"RS256\",\"kid\":\"\"}", C, RS, "SHA256", "names no key" },
	{ "{\"alg\":\"RS256\",\"kid\":1}", C, RS, "SHA256", "names no key" },
	/* signatures */
	{ H, C, OTHER, "SHA256", "not of the key" },
	{ H, C, FLIP, "SHA256", "not of the key" },
	{ H, C, CUT, "SHA256", "not of the key" },
	{ H, C, ZEROS, "SHA256", "not of the key" },
	{ H, C, PS, "SHA256", "not of the key" },
	{ H, C, RS, "SHA512", "not of the key" },
	{ H, C, EMPTY, "SHA256", "no signature" },
	{ H, C, NONE, "SHA256", "not the form" },
	{ "{\"alg\":\"ES256\",\"kid\":\"p256\"}", C, ES_DER, "SHA256", "has not 64 bytes" },
	{ "{\"alg\":\"ES256\",\"kid\":\"p256\"}", C, ZEROS, "SHA256", "not of the key" },
	{ "{\"alg\":\"ES384\",\"kid\":\"p384\"}", C, ZEROS, "SHA384", "has not 96 bytes" },
	{ "{\"alg\":\"PS256\",\"kid\":\"rsa\"}", C, RS, "SHA256", "not of the key" },
	/* header */
	{ "{\"alg\":\"RS256\",\"kid\":\"rsa\",\"crit\":[\"exp\"],\"exp\":1}", C, RS, "SHA256",
	  "crit" },
	{ "{\"alg\":\"RS256\",\"kid\":\"rsa\",\"crit\":[]}", C, RS, "SHA256", "crit" },
	{ "{\"alg\":\"RS256\",\"kid\":\"rsa\",\"b64\":false,\"crit\":[\"b64\"]}", C, RS, "SHA256",
	  "crit" },
	{ "{\"alg\":\"none\",\"alg\":\"RS256\",\"kid\":\"rsa\"}", C, RS, "SHA256",
	  "each member once" },
	{ "[\"RS256\"]", C, RS, "SHA256", "header of the web token" },
	{ "", C, RS, "SHA256", "header of the web token" },
	{ "{\"alg\":\"RS256\",\"kid\":\"rsa\"} x", C, RS, "SHA256", "header of the web token" },
	{ "{\"alg\":\"RS256\",\"kid\":\"rsa\\u0000x\"}", C, RS, "SHA256",
	  "header of the web token" },
	{ "{\"alg\":\"RS256\",\"kid\":\"\xff\"}", C, RS, "SHA256", "header of the web token" },
	/* claims */
	{ H, "{}", RS, "SHA256", "names no issuer" },
	{ H, "null", RS, "SHA256", "payload of the web token" },
	{ H, "{" ISS "," ISS "," AUD "," TIMES "," SUB "," REF "}", RS, "SHA256",
	  "each member once" },
	{ H, "{" ISS "," AUD "," TIMES "," SUB ",\"sub\":\"root\"," REF "}", RS, "SHA256",
	  "each member once" },
	{ H, "{\"iss\":\"https://issuer/\"," AUD "," TIMES "," SUB "," REF "}", RS, "SHA256",
	  "another issuer" },
	{ H, "{\"iss\":[\"https://issuer\"]," AUD "," TIMES "," SUB "," REF "}", RS, "SHA256",
	  "names no issuer" },
	{ H, WITH("\"aud\":\"other\"", TIMES, SUB, REF), RS, "SHA256", "another audience" },
	{ H, WITH("\"aud\":\"gpuq2\"", TIMES, SUB, REF), RS, "SHA256", "another audience" },
	{ H, WITH("\"aud\":[]", TIMES, SUB, REF), RS, "SHA256", "another audience" },
	{ H, WITH("\"aud\":{\"gpuq\":1}", TIMES, SUB, REF), RS, "SHA256", "another audience" },
	{ H, WITH("\"azp\":\"gpuq\"", TIMES, SUB, REF), RS, "SHA256", "another audience" },
	/* times */
	{ H, WITH(AUD, "\"iat\":1699999000", SUB, REF), RS, "SHA256", "no exp" },
	{ H, WITH(AUD, "\"exp\":1700000290", SUB, REF), RS, "SHA256", "no iat" },
	{ H, WITH(AUD, "\"iat\":1699999000,\"exp\":\"1700000290\"", SUB, REF), RS, "SHA256",
	  "no exp" },
	{ H, WITH(AUD, "\"iat\":1699999000,\"exp\":1e12", SUB, REF), RS, "SHA256", "no exp" },
	{ H, WITH(AUD, "\"iat\":1699999000,\"exp\":9223372036854775807", SUB, REF), RS, "SHA256",
	  "no exp" },
	{ H, WITH(AUD, "\"iat\":-1,\"exp\":1700000290", SUB, REF), RS, "SHA256", "no iat" },
	{ H, WITH(AUD, "\"iat\":1699999000,\"exp\":1699999940", SUB, REF), RS, "SHA256",
	  "expired" },
	{ H, WITH(AUD, "\"iat\":1700000061,\"exp\":1700000290", SUB, REF), RS, "SHA256",
	  "the future" },
	{ H, WITH(AUD, TIMES ",\"nbf\":1700000061", SUB, REF), RS, "SHA256", "the future" },
	{ H, WITH(AUD, TIMES ",\"nbf\":\"x\"", SUB, REF), RS, "SHA256", "no nbf" },
	{ H, WITH(AUD, "\"iat\":1699999999,\"exp\":1700086400", SUB, REF), RS, "SHA256",
	  "86401 s" },
	/* users, groups, what is required */
	{ H, WITH(AUD, TIMES, "\"x\":1", REF), RS, "SHA256", "no claim sub" },
	{ H, WITH(AUD, TIMES, "\"sub\":7", REF), RS, "SHA256", "no claim sub" },
	{ H, WITH(AUD, TIMES, "\"sub\":\"\"", REF), RS, "SHA256", "claim sub is not" },
	{ H, WITH(AUD, TIMES, "\"sub\":\"a b\"", REF), RS, "SHA256", "claim sub is not" },
	{ H, WITH(AUD, TIMES, "\"sub\":\"a,b\"", REF), RS, "SHA256", "claim sub is not" },
	{ H, WITH(AUD, TIMES, "\"sub\":\"a\\nb\"", REF), RS, "SHA256", "claim sub is not" },
	{ H, WITH(AUD, TIMES, "\"sub\":\"\\u0430nn\"", REF), RS, "SHA256", "claim sub is not" },
	{ H, WITH(AUD, TIMES, SUB, "\"ref\":\"refs/heads/main2\""), RS, "SHA256",
	  "claim ref is not" },
	{ H, WITH(AUD, TIMES, SUB, "\"ref\":[\"refs/heads/main\"]"), RS, "SHA256",
	  "claim ref is not" },
	{ H, WITH(AUD, TIMES, SUB, "\"x\":0"), RS, "SHA256", "claim ref is not" },
	{ H, WITH(AUD, TIMES, SUB, REF ",\"groups\":[\"a,b\"]"), RS, "SHA256", "a group" },
	{ H, WITH(AUD, TIMES, SUB, REF ",\"groups\":[7]"), RS, "SHA256", "a group" },
	{ H, WITH(AUD, TIMES, SUB, REF ",\"groups\":{\"a\":1}"), RS, "SHA256", "no list" },
};

Test(jwt, hostile_ones_are_refused_and_say_why)
{
	struct jwks *keys = make_set();

	cr_assert_geq(sizeof(bad) / sizeof(bad[0]), 60);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_buf groups = GPUQ_BUF_INIT;
		char user[RULE_USER_BYTES] = "";
		const char *text = make(bad[i].header, bad[i].claims, bad[i].how, bad[i].md);

		cr_expect_eq(present(keys, text, &rule, user, &groups, &err), GPUQ_EAUTH,
			     "%zu: %s %s", i, bad[i].header, bad[i].claims);
		cr_expect(strstr(err.text, bad[i].says), "%zu: '%s' lacks '%s'", i, err.text,
			  bad[i].says);
		gpuq_buf_done(&groups);
	}
	jwks_free(keys);
}

/* Texts, from a good token by one change each. */
Test(jwt, no_change_of_its_text_passes)
{
	struct jwks *keys = make_set();
	char *text = strdup(make(H, C, RS, "SHA256")), changed[4096], user[RULE_USER_BYTES];
	const size_t n = strlen(text);
	static const char put[] = { 'A', '.', '=', '+', ' ', '\n', '_' };

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(put); k++) {
			struct gpuq_err err = GPUQ_ERR_INIT;
			struct gpuq_buf groups = GPUQ_BUF_INIT;

			snprintf(changed, sizeof(changed), "%s", text);
			if (changed[i] == put[k])
				continue;
			changed[i] = put[k];
			cr_expect_eq(present(keys, changed, &rule, user, &groups, &err), GPUQ_EAUTH,
				     "'%c' at %zu", put[k], i);
			snprintf(changed, sizeof(changed), "%.*s%c%s", (int)i, text, put[k],
				 text + i);
			cr_expect_eq(present(keys, changed, &rule, user, &groups, &err), GPUQ_EAUTH,
				     "'%c' before %zu", put[k], i);
			gpuq_buf_done(&groups);
		}
	snprintf(changed, sizeof(changed), "%s=", text);
	cr_expect_eq(present(keys, changed, &rule, user, NULL, NULL), GPUQ_EAUTH);
	free(text);
	jwks_free(keys);
}

Test(jwt, longer_than_the_limit_is_refused)
{
	char *claims = malloc(12000), *text;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct jwt *t = NULL;

	snprintf(claims, 12000, "{" ISS "," AUD "," TIMES "," SUB "," REF ",\"x\":\"%06000d\"}", 0);
	text = make(H, claims, RS, "SHA256");
	cr_assert_gt(strlen(text), 8192);
	cr_assert_eq(jwt_read(text, &t, &err), GPUQ_EAUTH);
	cr_assert(strstr(err.text, "8192 bytes"), "%s", err.text);
	free(claims);
}

/* ---- rules ---- */

static const char *claim(const void *arg, const char *name)
{
	const char *const *pairs = arg;

	for (; *pairs; pairs += 2)
		if (strcmp(*pairs, name) == 0)
			return pairs[1];
	return NULL;
}

Test(rule, the_form_of_user)
{
	static const char *const right[] = { "ci:{sub}", "k8s:{namespace}:{name}", "a:b:{x}/{y}",
					     "https://x/{a.b/c}" };
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "{sub}", "':'" },         { "ann{sub}", "':'" },
		{ "ann", "':'" },           { "ci:ann", "{claim}" },
		{ "ci:{sub", "between" },   { "ci:{}", "between" },
		{ "ci:}{x}", "not '}'" },   { "ci:{a}{b}", "between two" },
		{ "c i:{a}", "not ' '" },   { "", "':'" },
		{ "ci:{a{b}}", "between" }, { "{a}:{b}", "':'" },
	};

	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		cr_expect_eq(rule_check_user(right[i], false, NULL), 0, "%s", right[i]);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;

		cr_expect_eq(rule_check_user(wrong[i].text, false, &err), GPUQ_EINVAL, "%s",
			     wrong[i].text);
		cr_expect(strstr(err.text, wrong[i].says), "%s: %s", wrong[i].text, err.text);
	}
	cr_expect_eq(rule_check_user("{sub}", true, NULL), 0);
	cr_expect(rule_prefixes_meet("ci:{a}", "ci:x{b}"));
	cr_expect(rule_prefixes_meet("{a}", "ci:{b}"));
	cr_expect_not(rule_prefixes_meet("ci:{a}", "co:{a}"));
}

Test(rule, no_two_sets_of_claims_are_one_user)
{
	static const char *const one[] = { "a", "x", "b", "y:z", NULL };
	static const char *const two[] = { "a", "x:y", "b", "z", NULL };
	char user[RULE_USER_BYTES], longest[140];
	const char *many[] = { "a", longest, NULL };
	struct gpuq_err err = GPUQ_ERR_INIT;

	cr_assert_eq(rule_user("k:{a}:{b}", claim, one, user, &err), 0);
	cr_assert_str_eq(user, "k:x:y:z");
	cr_assert_eq(rule_user("k:{a}:{b}", claim, two, user, &err), GPUQ_EAUTH);
	cr_assert(strstr(err.text, "divides"), "%s", err.text);
	memset(longest, 'a', sizeof(longest));
	longest[126] = '\0';
	cr_assert_eq(rule_user("k:{a}", claim, many, user, &err), 0);
	cr_assert_eq(strlen(user), 128);
	cr_assert_eq(rule_user("kk:{a}", claim, many, user, &err), GPUQ_EAUTH);
	cr_assert_eq(rule_user("k:{a}x", claim, many, user, &err), GPUQ_EAUTH);
}

/* ---- sets of keys ---- */

Test(jwt, sets_that_are_none)
{
	static const struct {
		const char *text, *says;
	} sets[] = {
		{ "", "no set" },
		{ "[]", "no set" },
		{ "{\"keys\":{}}", "no set" },
		{ "{\"keys\":[]}", "no key" },
		{ "{\"keys\":[],\"keys\":[]}", "no set" },
		{ "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"a\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}",
		  "no key" },
		/* At a member that is cut libcjose would end the process. */
		{ "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"a\",\"n\":\"AAAAA=\",\"e\":\"AQAB\"}]}",
		  "no key" },
		{ "{\"keys\":[{\"kty\":\"EC\",\"kid\":\"a\",\"crv\":\"P-256\",\"x\":\"A\",\"y\":"
		  "\"A\"}]}",
		  "no key" },
		{ "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"a\",\"n\":7,\"e\":[]}]}", "no key" },
		{ "{\"keys\":[{\"kty\":\"EC\",\"kid\":\"a\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":"
		  "\"AA\"}]}",
		  "no key" },
		{ "{\"keys\":[{\"kty\":\"oct\",\"kid\":\"a\",\"k\":\"AAAA\"}]}", "no key" },
	};
	char many[8192] = "{\"keys\":[";

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct jwks *s = NULL;

		cr_expect_eq(jwks_read(sets[i].text, strlen(sets[i].text), &s, &err), GPUQ_EINVAL,
			     "%s", sets[i].text);
		cr_expect(strstr(err.text, sets[i].says), "%s: %s", sets[i].text, err.text);
	}
	for (size_t i = 0; i <= JWKS_KEYS_MAX; i++)
		strcat(many, i ? ",{}" : "{}");
	strcat(many, "]}");
	cr_expect_eq(jwks_read(many, strlen(many), &(struct jwks *){ NULL }, NULL), GPUQ_EINVAL);
}
