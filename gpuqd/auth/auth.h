/* auth.h - users that others vouch for: web tokens of issuers (auth.oidc), and of the cluster (auth.kubernetes)
 *
 * Owns     the issuers and their keys, the questions whose a token is while they are open.
 * Touches  the network through issuer.h.
 * Used by  rpc/method/m_token.c, which passes on what is no token of gpuqd's own; daemon.c.
 */
#ifndef GPUQD_AUTH_AUTH_H
#define GPUQD_AUTH_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuqd/auth/device.h"
#include "gpuqd/auth/rule.h"
#include "libgpuq/err.h"

struct auth;
struct cluster;
struct loop;

struct auth_opts {
	/* Of one issuer several may be given: the first that a token fits counts. They live on. */
	const struct auth_rule *rules;
	size_t n_rules;
	const char *proxy, *agent; /* live on; proxy NULL = none */
	/* Tokens of the cluster's service accounts; NULL = they are refused. The rest belongs to it. */
	const struct auth_rule *kubernetes;
	void *arg;
	/* True if a connection is there by this credential. */
	bool (*in_use)(void *arg, const char *credential);
	/* End those that are. */
	void (*drop)(void *arg, const char *credential, const struct gpuq_err *why);
};

/* The user of a token; borrowed. */
struct auth_identity {
	const char *user, *groups, *queues; /* groups and queues are joined by commas */
	const char *credential; /* "oidc:NAME" of the rule, "review:N" */
	uint32_t scopes;
	bool reviewed; /* by the cluster; else its signature was verified */
	int64_t expires_wall_us;
};

/* id NULL: why there is none, GPUQ_EAUTH. */
typedef void (*auth_fn)(void *arg, const struct auth_identity *id, const struct gpuq_err *why);

int auth_new(struct loop *l, const struct auth_opts *o, struct auth **out, struct gpuq_err *err);
void auth_free(struct auth *a); /* answers what is open; NULL is allowed */
void auth_set_cluster(struct auth *a, struct cluster *c); /* NULL = there is none now */

/* Other rules from now on. Connections by a rule that is no more, or another one, end, as do logins; keys that are
 * known of issuers that stay are kept. */
int auth_set_opts(struct auth *a, const struct auth_opts *o, struct gpuq_err *err);

/* Find out whose token it is. fn is called once, perhaps at once. */
void auth_check(struct auth *a, const char *token, auth_fn fn, void *arg);

/* Begin a login with the issuer of the rule of that name; NULL = of the only one that has logins. See device.h. */
void auth_login(struct auth *a, const char *name, const char *from, device_begun_fn fn, void *arg);

/* How the login stands: id is the user, by the rule in s, once it is over; NULL = it is pending. s NULL: it failed. */
typedef void (*auth_login_fn)(void *arg, const struct device_state *s,
			      const struct auth_identity *id, const struct gpuq_err *why);
void auth_login_finish(struct auth *a, const char *login, auth_login_fn fn, void *arg);

#endif
