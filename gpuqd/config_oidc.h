/* config_oidc.h - `auth.oidc` and `auth.kubernetes` of gpuqd.yaml: web tokens that are users
 *
 * Owns     its keys and checks. Touches nothing.
 * Used by  config_remote.c, daemon.c.
 */
#ifndef GPUQD_CONFIG_OIDC_H
#define GPUQD_CONFIG_OIDC_H

#include "libgpuq/schema.h"

struct auth_rule;

extern const struct gpuq_schema config_oidc_schema;
/* `auth.kubernetes`, a struct auth_rule as well. */
extern const struct gpuq_schema config_reviews_schema;

/* Check items against each other; v is `auth`. */
int config_oidc_check(struct gpuq_reader *r, const struct gpuq_val *v,
		      const struct gpuq_objects *oidc, const struct auth_rule *kubernetes);

#endif
