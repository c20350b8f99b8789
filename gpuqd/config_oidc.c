#include "gpuqd/config_oidc.h"

#include <string.h>

#include "gpuqd/auth/rule.h"
#include "gpuqd/util/scope.h"
#include "libgpuq/limits.h"
#include "libgpuq/units.h"

#define REQUIRE_MAX 32u
#define QUEUES_MAX 64u
#define FORM_BYTES_MAX 512

#define F(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct auth_rule, member_),     \
		__VA_ARGS__                                                                        \
	}

/* clang-format off */
static const struct gpuq_field fields[] = {
	F("name", GPUQ_K_NAME, name, .flags = GPUQ_F_KEY | GPUQ_F_REQUIRED, .doc = "name of the rule in messages"),
	F("issuer", GPUQ_K_STR, issuer, .flags = GPUQ_F_REQUIRED, .max = FORM_BYTES_MAX, .form = "https URL", .doc = "issuer of the tokens, their iss, character for character; several rules may name one issuer, and the first that a token fits counts"),
	F("audience", GPUQ_K_STR, audience, .flags = GPUQ_F_REQUIRED, .max = FORM_BYTES_MAX, .form = "string", .doc = "audience that a token must be for (aud)"),
	F("user", GPUQ_K_STR, user, .flags = GPUQ_F_REQUIRED, .max = FORM_BYTES_MAX, .form = "text with {claim}", .doc = "user of a token, such as ci:{repository}: text with a colon, then claims; a token whose claim is missing, no string, or has other characters than letters, digits and ._:/@+- is refused"),
	F("require", GPUQ_K_STRMAP, require, .form = "map of claims to strings", .doc = "claims that a token must have with exactly these values; required where the issuer is open to the public"),
	F("scopes", GPUQ_K_STRLIST, scope_words, .form = "list of scopes", .doc = "scopes of the users, see gpuq-token(1); absent: read, submit and control"),
	F("queues", GPUQ_K_STRLIST, queues, .form = "list of queues", .doc = "queues to which the users are restricted, with those below them; absent: all"),
	F("groups", GPUQ_K_STR, groups, .max = 128, .form = "name of a claim", .doc = "claim with the groups of the user, a list of strings; a group has the text before the first claim of user in front, as in ci:team, and is meant by groups of a queue"),
	F("ca", GPUQ_K_STR, ca, .form = "file", .doc = "certificates of the CAs of the issuer's server, PEM; absent: those of the system"),
	F("client_id", GPUQ_K_STR, client_id, .max = FORM_BYTES_MAX, .form = "string", .doc = "name of gpuqd at the issuer; with it gpuq login without a token lets users confirm in a browser who they are (device flow, RFC 8628)"),
	F("client_secret", GPUQ_K_STR, client_secret, .form = "file", .doc = "secret of that client, readable only by the owner of the file; absent: the client is a public one"),
	F("login_scopes", GPUQ_K_STRLIST, login_scopes, .form = "list of strings", .doc = "scopes that such a login requests of the issuer, in addition to openid, so that the token has the claims of the rule, such as profile, email or groups"),
	F("login_age", GPUQ_K_DURATION, login_age_us, .doc = "lifetime of the token that such a login brings"),
	F("trusted_names", GPUQ_K_BOOL, trusted_names, .doc = "whether the issuer decides which account of this machine a user is: user and groups need no text before the first claim, and the rule is allowed on the local cluster"),
	{ .key = NULL },
};
/* clang-format on */

/* Issuers that are open to the public: each account there gets tokens of any audience. */
static const char *const open_issuers[] = { "https://token.actions.githubusercontent.com",
					    "https://gitlab.com", "https://accounts.google.com",
					    NULL };

static bool is_open(const char *issuer)
{
	for (const char *const *s = open_issuers; *s; s++)
		if (strcmp(*s, issuer) == 0)
			return true;
	return false;
}

static int wrong(struct gpuq_reader *r, const struct gpuq_val *v, const char *key, const char *text)
{
	const size_t outer = gpuq_reader_enter(r, key);
	const int rc = gpuq_reader_fail(r, gpuq_get(v, key), GPUQ_EINVAL, "%s", text);

	gpuq_reader_leave(r, outer);
	return rc;
}

/* What rules of both kinds have. */
static int check_common(struct gpuq_reader *r, const struct gpuq_val *v, struct auth_rule *a)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (!*a->audience)
		return wrong(r, v, "audience", "expected a text such as gpuq");
	if (rule_check_user(a->user, a->trusted_names, &err) < 0)
		return wrong(r, v, "user", err.text);
	if (a->queues.n > QUEUES_MAX)
		return wrong(r, v, "queues", "expected at most 64 queues");
	for (size_t i = 0; i < a->queues.n; i++)
		if (strchr(a->queues.items[i], ',') || !*a->queues.items[i])
			return wrong(r, v, "queues", "expected names of queues");
	a->scopes = SCOPE_DEFAULT;
	if (a->scope_words.n && scope_parse(&a->scope_words, &a->scopes, &err) < 0)
		return wrong(r, v, "scopes", err.text);
	return 0;
}

/* Words without blanks, which the request divides them by. */
static bool are_words(const struct gpuq_strlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		for (const char *s = l->items[i]; *s || s == l->items[i]; s++)
			if (*s <= ' ' || *s > '~' || *s == '"' || *s == '\\')
				return false;
	return true;
}

static int check_logins(struct gpuq_reader *r, const struct gpuq_val *v, const struct auth_rule *a)
{
	static const char *const keys[] = { "client_secret", "login_scopes", "login_age" };

	for (size_t i = 0; !a->client_id && i < sizeof(keys) / sizeof(keys[0]); i++)
		if (gpuq_get(v, keys[i]))
			return wrong(r, v, keys[i], "is of no use without client_id");
	if (a->client_id && !*a->client_id)
		return wrong(r, v, "client_id", "expected a text");
	if (a->login_scopes.n > QUEUES_MAX || !are_words(&a->login_scopes))
		return wrong(r, v, "login_scopes", "expected at most 64 words such as profile");
	if (a->login_age_us < 60 * GPUQ_US_PER_S)
		return wrong(r, v, "login_age", "expected 1m or more");
	return 0;
}

static void oidc_defaults(void *obj)
{
	((struct auth_rule *)obj)->login_age_us = INT64_C(86400) * GPUQ_US_PER_S;
}

static int check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	struct auth_rule *a = obj;

	if (strncmp(a->issuer, "https://", 8) != 0 || !a->issuer[8] || strpbrk(a->issuer, " \t?#"))
		return wrong(r, v, "issuer", "expected https://host, perhaps with a path");
	if (a->require.n > REQUIRE_MAX)
		return wrong(r, v, "require", "expected at most 32 claims");
	if (!a->require.n && is_open(a->issuer))
		return wrong(r, v, "issuer",
			     "this issuer is open to the public: expected require, such as the id "
			     "of the owner of the repositories");
	return check_logins(r, v, a) < 0 ? GPUQ_EINVAL : check_common(r, v, a);
}

const struct gpuq_schema config_oidc_schema = { .name = "oidc",
						.size = sizeof(struct auth_rule),
						.fields = fields,
						.defaults = oidc_defaults,
						.check = check };

/* clang-format off */
static const struct gpuq_field review_fields[] = {
	F("audience", GPUQ_K_STR, audience, .max = FORM_BYTES_MAX, .form = "string", .doc = "audience that a token must be for, as in the serviceAccountToken of a projected volume"),
	F("user", GPUQ_K_STR, user, .max = FORM_BYTES_MAX, .form = "text with {namespace} and {name}", .doc = "user of a service account: text with a colon, its namespace, its name"),
	F("scopes", GPUQ_K_STRLIST, scope_words, .form = "list of scopes", .doc = "scopes of the users, see gpuq-token(1); absent: read, submit and control"),
	F("queues", GPUQ_K_STRLIST, queues, .form = "list of queues", .doc = "queues to which the users are restricted, with those below them; absent: all"),
	F("trusted_names", GPUQ_K_BOOL, trusted_names, .doc = "whether user needs no text before {namespace}"),
	{ .key = NULL },
};
/* clang-format on */

static void review_defaults(void *obj)
{
	struct auth_rule *a = obj;

	a->name = "kubernetes";
	a->audience = "gpuq";
	a->user = "k8s:{namespace}:{name}";
}

static const char *account_claim(const void *arg, const char *name)
{
	return strcmp(name, "namespace") == 0 || strcmp(name, "name") == 0 ? arg : NULL;
}

static int review_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	struct auth_rule *a = obj;
	struct gpuq_err err = GPUQ_ERR_INIT;
	char user[RULE_USER_BYTES];
	int rc = check_common(r, v, a);

	if (rc == 0 && (!strstr(a->user, "{namespace}") || !strstr(a->user, "{name}") ||
			rule_user(a->user, account_claim, "a", user, &err) < 0))
		rc = wrong(r, v, "user",
			   "expected {namespace} and {name}, and no other claim, as in "
			   "k8s:{namespace}:{name}");
	return rc;
}

const struct gpuq_schema config_reviews_schema = { .name = "kubernetes",
						   .size = sizeof(struct auth_rule),
						   .fields = review_fields,
						   .defaults = review_defaults,
						   .check = review_check };

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static int check_pair(struct gpuq_reader *r, const struct gpuq_val *v, const struct auth_rule *a,
		      const struct auth_rule *b)
{
	if (a->issuer && strcmp(a->issuer, b->issuer) == 0) {
		if (!same(a->ca, b->ca))
			return wrong(r, v, "ca",
				     "expected the ca of the other rule with this issuer");
	} else if (!a->trusted_names && !b->trusted_names && rule_prefixes_meet(a->user, b->user)) {
		return wrong(r, v, "user",
			     "expected another text before the first {claim} than that of another "
			     "issuer: one could vouch for the users of the other");
	}
	return 0;
}

int config_oidc_check(struct gpuq_reader *r, const struct gpuq_val *v,
		      const struct gpuq_objects *oidc, const struct auth_rule *kubernetes)
{
	const struct auth_rule *rules = oidc->items;
	const struct gpuq_val *list = gpuq_get(v, "oidc");
	int rc = 0;

	if (oidc->n > GPUQ_ISSUERS_MAX)
		return gpuq_reader_fail(r, list, GPUQ_ETOOBIG, "expected at most %u rules",
					GPUQ_ISSUERS_MAX);
	for (size_t i = 0; i < oidc->n; i++)
		for (size_t k = 0; rc == 0 && k <= i; k++) {
			const struct auth_rule *other = k < i ? &rules[k] : kubernetes;
			const size_t outer = gpuq_reader_enter(r, "oidc");

			gpuq_reader_enter_item(r, i);
			if (other)
				rc = check_pair(r, list->items[i], other, &rules[i]);
			gpuq_reader_leave(r, outer);
		}
	return rc;
}
