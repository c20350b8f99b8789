/* config_notify.h - `notify` of gpuqd.yaml: allowed recipients and delivery of notifications
 *
 * Owns     its keys, defaults and checks. Touches nothing.
 * Used by  config.c, daemon.c.
 */
#ifndef GPUQD_CONFIG_NOTIFY_H
#define GPUQD_CONFIG_NOTIFY_H

#include <stdint.h>

#include "gpuqd/site/policy.h"
#include "libgpuq/schema.h"

struct config_hook {
	const char *name, *url;
	struct gpuq_strlist on;
	unsigned bits; /* of on */
};

struct config_notify {
	struct gpuq_strlist mail_command; /* none = mail is off */
	const char *mail_from;
	struct gpuq_strlist mail_allowed, webhook_allowed;
	const char *proxy;
	int64_t mail_timeout_us, webhook_timeout_us, keep_us;
	struct gpuq_objects hooks; /* struct config_hook */
};

extern const struct gpuq_schema config_notify_schema;

/* The part of it that the model needs; its strings belong to the configuration. */
void config_notify_policy(const struct config_notify *c, struct policy_notify *out);

#endif
