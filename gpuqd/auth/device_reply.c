#include "gpuqd/auth/device_reply.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "gpuqd/net/fetch.h"
#include "libgpuq/limits.h"

#define DEVICE_CODE_BYTES_MAX 2048
#define USER_CODE_BYTES_MAX 64
#define URI_BYTES_MAX 1024
#define INTERVAL_S 5 /* where none is given, by RFC 8628 section 3.2 */
#define INTERVAL_S_MAX 60
#define ERROR_BYTES_MAX 64

/* A member that is printable ASCII, without blanks unless they are allowed. */
static const char *text(const json_t *root, const char *key, size_t max, bool blanks)
{
	const json_t *v = json_object_get(root, key);
	const char *s = json_string_value(v);
	const size_t n = json_string_length(v);

	if (!s || n == 0 || n > max)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (s[i] < (blanks ? ' ' : '!') || s[i] > '~')
			return NULL;
	return s;
}

static const char *address(const json_t *root, const char *key)
{
	const char *s = text(root, key, URI_BYTES_MAX, false);

	return s && strncmp(s, "https://", 8) == 0 && s[8] ? s : NULL;
}

static char *copy(const char *s)
{
	return s ? strdup(s) : NULL;
}

/* The error that the issuer names; "" = none. */
static const char *error_of(const json_t *root)
{
	const char *s = text(root, "error", ERROR_BYTES_MAX, false);

	return s ? s : "";
}

static json_t *read(const struct fetched *got)
{
	return json_loadb(got->bytes, got->n, JSON_REJECT_DUPLICATES, NULL);
}

int device_read_codes(const char *name, const struct fetched *got, struct device_codes *out,
		      struct gpuq_err *err)
{
	json_t *root = read(got);
	const char *device = text(root, "device_code", DEVICE_CODE_BYTES_MAX, false);
	const char *user = text(root, "user_code", USER_CODE_BYTES_MAX, true);
	const char *uri = address(root, "verification_uri");
	const json_t *expires = json_object_get(root, "expires_in");
	const json_t *interval = json_object_get(root, "interval");
	struct device_codes c = { .expires_s = json_integer_value(expires),
				  .interval_s =
					  interval ? json_integer_value(interval) : INTERVAL_S };
	int rc = 0;

	/* As Google has called it. */
	if (!uri)
		uri = address(root, "verification_url");
	if (got->status != 200)
		rc = gpuq_fail(err, GPUQ_EUNREACH,
			       "%s begins no login: HTTP status %ld%s%s: compare client_id, "
			       "client_secret and login_scopes of gpuqd.yaml with it",
			       name, got->status, *error_of(root) ? ", " : "", error_of(root));
	else if (!device || !user || !uri || c.expires_s < 1 || c.interval_s < 0)
		rc = gpuq_fail(
			err, GPUQ_EUNREACH,
			"%s begins no login: its answer lacks a code, an https:// address or "
			"a time, or has them in another form than RFC 8628",
			name);
	if (c.expires_s > GPUQ_LOGIN_S)
		c.expires_s = GPUQ_LOGIN_S;
	if (c.interval_s < 1)
		c.interval_s = 1;
	if (c.interval_s > INTERVAL_S_MAX)
		c.interval_s = INTERVAL_S_MAX;
	if (rc == 0) {
		c.device_code = copy(device);
		c.user_code = copy(user);
		c.uri = copy(uri);
		c.uri_complete = copy(address(root, "verification_uri_complete"));
		if (!c.device_code || !c.user_code || !c.uri) {
			device_codes_done(&c);
			rc = gpuq_no_memory(err);
		}
	}
	json_decref(root);
	if (rc == 0)
		*out = c;
	return rc;
}

void device_codes_done(struct device_codes *c)
{
	if (c->device_code)
		explicit_bzero(c->device_code, strlen(c->device_code));
	free(c->device_code);
	free(c->user_code);
	free(c->uri);
	free(c->uri_complete);
}

/* What an error of the issuer means. */
static enum device_outcome by_error(const char *name, const char *error, struct gpuq_err *err)
{
	if (strcmp(error, "authorization_pending") == 0)
		return DEVICE_PENDING;
	if (strcmp(error, "slow_down") == 0)
		return DEVICE_SLOWER;
	if (strcmp(error, "access_denied") == 0)
		gpuq_fail(err, GPUQ_EAUTH, "access_denied: the login was refused at %s", name);
	else if (strcmp(error, "expired_token") == 0)
		gpuq_fail(err, GPUQ_EAUTH,
			  "expired_token: the code was not confirmed in time at %s: repeat gpuq "
			  "login",
			  name);
	else
		gpuq_fail(err, GPUQ_EAUTH, "%s gives no token: %s", name, error);
	return DEVICE_FAILED;
}

enum device_outcome device_read_token(const char *name, const struct fetched *got,
				      const struct gpuq_err *why, char **token,
				      struct gpuq_err *err)
{
	enum device_outcome o = DEVICE_AWAY;
	json_t *root = got ? read(got) : NULL;
	const char *error = error_of(root);
	const char *id = text(root, "id_token", GPUQ_CREDENTIAL_BYTES_MAX, false);

	if (!got) {
		gpuq_fail(err, GPUQ_EUNREACH, "%s: %.160s", name, why->text);
	} else if (got->status >= 400 && got->status < 500 && *error) {
		o = by_error(name, error, err);
	} else if (got->status != 200) {
		gpuq_fail(err, GPUQ_EUNREACH, "%s: HTTP status %ld", name, got->status);
	} else if (!id) {
		gpuq_fail(err, GPUQ_EAUTH,
			  "%s gives no id token of at most %u bytes: its client must be one of "
			  "OpenID Connect (scope openid)",
			  name, GPUQ_CREDENTIAL_BYTES_MAX);
		o = DEVICE_FAILED;
	} else {
		*token = copy(id);
		o = *token ? DEVICE_HAS_TOKEN : DEVICE_FAILED;
		if (!*token)
			gpuq_no_memory(err);
	}
	json_decref(root);
	return o;
}
