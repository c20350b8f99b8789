/* config_oidc.h - `auth.oidc` of gpuqd.yaml: issuers whose web tokens are users
 *
 * Owns     its keys and checks. Touches nothing.
 * Used by  config_remote.c, daemon.c.
 */
#ifndef GPUQD_CONFIG_OIDC_H
#define GPUQD_CONFIG_OIDC_H

#include "libgpuq/schema.h"

/* An item is a struct auth_rule of auth/rule.h. */
extern const struct gpuq_schema config_oidc_schema;

/* Check items against each other; v is `auth`. */
int config_oidc_check(struct gpuq_reader *r, const struct gpuq_val *v,
		      const struct gpuq_objects *oidc);

#endif
