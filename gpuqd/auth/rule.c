#include "gpuqd/auth/rule.h"

#include <stdio.h>
#include <string.h>

#include "libgpuq/base/text.h"

#define CLAIM_BYTES 128

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("._:/@+-", c));
}

bool rule_is_name(const char *s)
{
	size_t n = 0;

	while (is_name_char(s[n]))
		n++;
	return n > 0 && s[n] == '\0' && n <= GPUQ_IDENTITY_BYTES_MAX;
}

size_t rule_prefix(const char *text)
{
	return strcspn(text, "{");
}

int rule_check_user(const char *text, bool trusted_names, struct gpuq_err *err)
{
	const size_t prefix = rule_prefix(text);
	size_t claims = 0;

	if (!trusted_names && !memchr(text, ':', prefix))
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected text with a ':' before the first {claim}, such as "
				 "ci:{sub}, so that these users are not those of this host; or "
				 "trusted_names: true");
	for (const char *s = text; *s;) {
		const char *end;

		if (*s != '{') {
			if (!is_name_char(*s++))
				return gpuq_fail(err, GPUQ_EINVAL,
						 "expected letters, digits, ._:/@+- and {claim}, "
						 "not '%c'",
						 s[-1]);
			continue;
		}
		end = strpbrk(s + 1, "{}");
		if (!end || *end != '}' || end == s + 1 || end - s > CLAIM_BYTES)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "expected the name of a claim between { and }");
		if (end[1] == '{')
			return gpuq_fail(err, GPUQ_EINVAL,
					 "expected text between two claims: without it two users "
					 "could have one name");
		claims++;
		s = end + 1;
	}
	if (!claims)
		return gpuq_fail(err, GPUQ_EINVAL,
				 "expected a {claim}: all tokens would be one user");
	return 0;
}

bool rule_prefixes_meet(const char *a, const char *b)
{
	const size_t n = rule_prefix(a), m = rule_prefix(b);

	return strncmp(a, b, n < m ? n : m) == 0;
}

static bool same_claims(const struct gpuq_strmap *a, const struct gpuq_strmap *b)
{
	bool same = a->n == b->n;

	for (size_t i = 0; same && i < a->n; i++)
		same = strcmp(a->keys[i], b->keys[i]) == 0 && strcmp(a->vals[i], b->vals[i]) == 0;
	return same;
}

bool rule_same(const struct auth_rule *a, const struct auth_rule *b)
{
	return gpuq_same_text(a->name, b->name) && gpuq_same_text(a->issuer, b->issuer) &&
	       gpuq_same_text(a->audience, b->audience) && gpuq_same_text(a->user, b->user) &&
	       gpuq_same_text(a->groups, b->groups) && same_claims(&a->require, &b->require) &&
	       gpuq_strlist_same(&a->queues, &b->queues) && a->scopes == b->scopes &&
	       a->trusted_names == b->trusted_names;
}

/* Put the value of the claim between { and } at s to out. */
static int put_claim(const char *s, size_t n, rule_claim_fn claim, const void *arg,
		     char out[RULE_USER_BYTES], size_t *at, struct gpuq_err *err)
{
	char name[CLAIM_BYTES + 1];
	const char *value;
	size_t len;

	snprintf(name, sizeof(name), "%.*s", (int)n, s + 1);
	value = claim(arg, name);
	if (!value)
		return gpuq_fail(err, GPUQ_EAUTH, "it has no claim %s that is a string", name);
	if (!rule_is_name(value))
		return gpuq_fail(err, GPUQ_EAUTH,
				 "its claim %s is not 1 to %u letters, digits and ._:/@+-", name,
				 GPUQ_IDENTITY_BYTES_MAX);
	/* The text behind a claim divides it from the next: {a}:{b} would else be "x:y:z" of x and y:z,
	 * and of x:y and z. */
	if (s[n + 2] && strchr(s + n + 2, '{') && strchr(value, s[n + 2]))
		return gpuq_fail(err, GPUQ_EAUTH,
				 "its claim %s has a '%c', which divides it from the next claim",
				 name, s[n + 2]);
	len = strlen(value);
	if (len > GPUQ_IDENTITY_BYTES_MAX - *at)
		return gpuq_fail(err, GPUQ_EAUTH, "its user would have more than %u bytes",
				 GPUQ_IDENTITY_BYTES_MAX);
	memcpy(out + *at, value, len);
	*at += len;
	return 0;
}

int rule_user(const char *text, rule_claim_fn claim, const void *arg, char out[RULE_USER_BYTES],
	      struct gpuq_err *err)
{
	size_t at = 0;

	for (const char *s = text; *s;) {
		const size_t n = *s == '{' ? strcspn(s + 1, "}") : 0;
		int rc;

		if (*s == '{') {
			rc = put_claim(s, n, claim, arg, out, &at, err);
			if (rc < 0)
				return rc;
			s += n + 2;
		} else if (at >= GPUQ_IDENTITY_BYTES_MAX) {
			return gpuq_fail(err, GPUQ_EAUTH, "its user would have more than %u bytes",
					 GPUQ_IDENTITY_BYTES_MAX);
		} else {
			out[at++] = *s++;
		}
	}
	out[at] = '\0';
	return 0;
}
