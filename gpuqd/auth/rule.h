/* rule.h - which tokens of others are users, and which users they are
 *
 * Owns     the form of `user` in auth.oidc and auth.kubernetes of gpuqd.yaml: text with {claim} in it.
 * Touches  memory only.
 * Used by  jwt.c, review.c beside it; config_oidc.c, which reads the rules.
 *
 * Unless its names are trusted, a rule's user begins with text of its own that has a ':', which no account of a
 * host has: an issuer's ann is never the host's.
 */
#ifndef GPUQD_AUTH_RULE_H
#define GPUQD_AUTH_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/limits.h"
#include "libgpuq/schema.h"

#define RULE_USER_BYTES (GPUQ_IDENTITY_BYTES_MAX + 1)

/* An item of auth.oidc; of auth.kubernetes, which has no name, issuer, ca, groups, require and logins. */
struct auth_rule {
	const char *name, *issuer, *audience, *user;
	const char *groups; /* the claim with the names of groups; NULL = none */
	const char *ca; /* PEM, of the issuer's server; NULL = the CAs of the system */
	struct gpuq_strmap require; /* claims and their values */
	struct gpuq_strlist scope_words, queues;
	uint32_t scopes; /* enum scope; of scope_words */
	bool trusted_names;
	/* Logins by device.c. */
	const char *client_id; /* NULL = there are none */
	const char *client_secret; /* file; NULL = none */
	struct gpuq_strlist login_scopes; /* beside openid */
	int64_t login_age_us; /* of the token that one brings */
};

/* True if s is 1 to 128 of A-Z a-z 0-9 . _ : / @ + - */
bool rule_is_name(const char *s);

/* Check the text of `user`: 0, or GPUQ_EINVAL and what it lacks. */
int rule_check_user(const char *text, bool trusted_names, struct gpuq_err *err);

/* The length of the text before the first {claim}. */
size_t rule_prefix(const char *text);

/* True if one rule could give a name that the other gives too. */
bool rule_prefixes_meet(const char *a, const char *b);

/* True if the same tokens are the same users by both. */
bool rule_same(const struct auth_rule *a, const struct auth_rule *b);

/* Return the value of a claim: a string, or NULL where there is none or it is no string. */
typedef const char *(*rule_claim_fn)(const void *arg, const char *claim);

/* Put the user together. text has passed rule_check_user(). 0, or GPUQ_EAUTH naming the claim. */
int rule_user(const char *text, rule_claim_fn claim, const void *arg, char out[RULE_USER_BYTES],
	      struct gpuq_err *err);

#endif
