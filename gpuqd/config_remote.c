#include "gpuqd/config_remote.h"

#include "gpuqd/config_oidc.h"
#include "libgpuq/units.h"

#define F(type_, key_, kind_, member_, ...)                                                        \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct type_, member_),         \
		__VA_ARGS__                                                                        \
	}

static const char *const certificate_words[] = { "san_uri", "san_email", NULL };

/* clang-format off */
static const struct gpuq_field tls_fields[] = {
	F(config_tls, "cert", GPUQ_K_STR, cert, .form = "file", .doc = "certificate of tls:// sockets with its chain, PEM; absent: tls/cert.pem in the state directory"),
	F(config_tls, "key", GPUQ_K_STR, key, .form = "file", .doc = "its private key, PEM, readable only by the owner; absent: tls/key.pem in the state directory"),
	F(config_tls, "client_ca", GPUQ_K_STR, client_ca, .form = "file", .doc = "certificates of the CAs whose client certificates identify users, PEM; absent: no CA"),
	{ .key = NULL },
};

static const struct gpuq_field auth_fields[] = {
	F(config_auth, "certificate_user", GPUQ_K_ENUM, certificate_user, .names = certificate_words, .doc = "kind of subject alternative name that is the user of a client certificate: a URI or an email address"),
	F(config_auth, "trusted_names", GPUQ_K_BOOL, trusted_names, .doc = "whether names in client certificates are accounts of this machine; without it the local cluster allows no client_ca"),
	F(config_auth, "token_max_age", GPUQ_K_DURATION, token_max_age_us, .doc = "maximum time until a token expires"),
	F(config_auth, "oidc", GPUQ_K_OBJECTS, oidc, .sub = &config_oidc_schema, .doc = "issuers whose web tokens (OpenID Connect) are users, such as CI systems; at most 32 rules"),
	F(config_auth, "kubernetes", GPUQ_K_OBJECT_PTR, kubernetes, .sub = &config_reviews_schema, .doc = "tokens of service accounts of the cluster that runs the jobs are users; needs a right of etc/kubernetes/optional/identity.yaml"),
	F(config_auth, "proxy", GPUQ_K_STR, proxy, .form = "URL", .doc = "proxy to issuers; proxy settings of the environment are ignored"),
	{ .key = NULL },
};
/* clang-format on */

static void auth_defaults(void *obj)
{
	struct config_auth *a = obj;

	a->token_max_age_us = INT64_C(366) * 86400 * GPUQ_US_PER_S;
}

static int auth_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct config_auth *a = obj;

	if (a->token_max_age_us < 60 * GPUQ_US_PER_S)
		return gpuq_reader_fail(r, gpuq_get(v, "token_max_age"), GPUQ_EINVAL,
					"expected 1m or more");
	return config_oidc_check(r, v, &a->oidc, a->kubernetes);
}

const struct gpuq_schema config_tls_schema = { .name = "tls",
					       .size = sizeof(struct config_tls),
					       .fields = tls_fields };
const struct gpuq_schema config_auth_schema = { .name = "auth",
						.size = sizeof(struct config_auth),
						.fields = auth_fields,
						.defaults = auth_defaults,
						.check = auth_check };
