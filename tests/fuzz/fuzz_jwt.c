/* A web token as a stranger presents it in hello, with keys that are as strange: the first line of the input is the
 * token, the rest the set of its issuer's keys; and that rest as an answer of the issuer in a login. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/auth/device_reply.h"
#include "gpuqd/auth/jwt.h"
#include "gpuqd/net/fetch.h"
#include "libgpuq/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void present(struct jwt *t, const struct jwks *keys)
{
	const char *claim = "ref", *value = "refs/heads/main";
	const struct auth_rule rule = { .name = "fuzz",
					.issuer = jwt_issuer(t),
					.audience = "gpuq",
					.user = "ci:{sub}",
					.groups = "groups",
					.require = { &claim, &value, 1 } };
	const cjose_jwk_t *key = keys ? jwks_find(keys, jwt_kid(t), jwt_alg(t)) : NULL;
	struct gpuq_buf groups = GPUQ_BUF_INIT;
	char user[RULE_USER_BYTES];

	if (key)
		jwt_verify(t, key, NULL);
	/* As if the signature held. */
	if (jwt_apply(t, &rule, INT64_C(1700000000) * GPUQ_US_PER_S, user, &groups, NULL) == 0 &&
	    (strncmp(user, "ci:", 3) != 0 || !rule_is_name(user)))
		abort();
	gpuq_buf_done(&groups);
}

static void answer(const char *bytes, size_t n)
{
	const struct fetched codes_ok = { bytes, n, 200, 0 }, refused = { bytes, n, 400, 0 };
	struct device_codes codes;
	char *token = NULL;

	if (device_read_codes("fuzz", &codes_ok, &codes, NULL) == 0) {
		for (const char *s = codes.user_code; *s; s++)
			if (*s < ' ' || *s > '~')
				abort();
		device_codes_done(&codes);
	}
	device_read_token("fuzz", &refused, NULL, &token, NULL);
	device_read_token("fuzz", &codes_ok, NULL, &token, NULL);
	free(token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *end = memchr(data, '\n', n);
	const size_t n_token = end ? (size_t)(end - data) : n;
	char *token = malloc(n_token + 1);
	struct jwks *keys = NULL;
	struct jwt *t = NULL;

	if (!token)
		return 0;
	memcpy(token, data, n_token);
	token[n_token] = '\0';
	if (end && jwks_read((const char *)end + 1, n - n_token - 1, &keys, NULL) < 0)
		keys = NULL;
	if (end)
		answer((const char *)end + 1, n - n_token - 1);
	if (jwt_read(token, &t, NULL) == 0)
		present(t, keys);
	jwt_free(t);
	jwks_free(keys);
	free(token);
	return 0;
}
