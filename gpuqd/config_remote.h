/* config_remote.h - `tls` and `auth` of gpuqd.yaml: certificates of tls:// sockets, rules of identities
 *
 * Owns     their keys. Touches nothing.
 * Used by  config.c.
 */
#ifndef GPUQD_CONFIG_REMOTE_H
#define GPUQD_CONFIG_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "libgpuq/schema.h"

struct auth_rule;

struct config_tls {
	const char *cert, *key; /* after config_read never NULL */
	const char *client_ca; /* NULL = none */
};

struct config_auth {
	int certificate_user; /* 0 = a URI, 1 = an email address */
	bool trusted_names;
	int64_t token_max_age_us;
	struct gpuq_objects oidc; /* struct auth_rule */
	struct auth_rule *kubernetes; /* NULL = not given */
	const char *proxy; /* to issuers; NULL = none */
};

extern const struct gpuq_schema config_tls_schema, config_auth_schema;

#endif
