#include "gpuqd/config_notify.h"

#include <string.h>

#include "libgpuq/notify.h"
#include "libgpuq/units.h"

#define HOOK(key_, kind_, member_, ...)                                                            \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct config_hook, member_),   \
		__VA_ARGS__                                                                        \
	}
#define N(key_, kind_, member_, ...)                                                               \
	{                                                                                          \
		.key = (key_), .kind = (kind_), .offset = offsetof(struct config_notify, member_), \
		__VA_ARGS__                                                                        \
	}

static int hook_check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	struct config_hook *h = obj;
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (gpuq_url_check(h->url, &err) < 0)
		return gpuq_reader_fail(r, gpuq_get(v, "url"), GPUQ_EINVAL, "%s", err.text);
	h->bits = h->on.n ? 0 : GPUQ_NOTIFY_END | GPUQ_NOTIFY_FAIL | GPUQ_NOTIFY_REFUSED;
	for (size_t i = 0; i < h->on.n; i++)
		if (strcmp(h->on.items[i], gpuq_notify_name(GPUQ_NOTIFY_REFUSED)) == 0)
			h->bits |= GPUQ_NOTIFY_REFUSED;
		else if (!gpuq_notify_word(h->on.items[i], false, &h->bits))
			return gpuq_reader_fail(
				r, gpuq_get(v, "on"), GPUQ_EINVAL,
				"expected words of notify such as end and fail, not "
				"'%.80s'",
				h->on.items[i]);
	if ((h->bits & GPUQ_NOTIFY_ALL) == GPUQ_NOTIFY_ALL)
		h->bits |= GPUQ_NOTIFY_REFUSED;
	return 0;
}

/* clang-format off */
static const struct gpuq_field hook_fields[] = {
	HOOK("name", GPUQ_K_NAME, name, .flags = GPUQ_F_KEY | GPUQ_F_REQUIRED, .doc = "name of the webhook in pending messages"),
	HOOK("url", GPUQ_K_STR, url, .flags = GPUQ_F_REQUIRED, .doc = "URL for messages of all jobs"),
	HOOK("on", GPUQ_K_STRLIST, on, .doc = "events, as in a job's notify, and refused: the cluster refuses jobs; default: end, fail, refused"),
	{ .key = NULL },
};
/* clang-format on */

static const struct gpuq_schema hook_schema = { .name = "webhook",
						.size = sizeof(struct config_hook),
						.fields = hook_fields,
						.check = hook_check };

static void defaults(void *obj)
{
	struct config_notify *c = obj;

	c->mail_from = "gpuq";
	c->mail_timeout_us = 30 * GPUQ_US_PER_S;
	c->webhook_timeout_us = 10 * GPUQ_US_PER_S;
	c->keep_us = INT64_C(86400) * GPUQ_US_PER_S;
}

static int check(struct gpuq_reader *r, const struct gpuq_val *v, void *obj)
{
	const struct config_notify *c = obj;
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (c->mail_command.n && c->mail_command.items[0][0] != '/')
		return gpuq_reader_fail(r, gpuq_get(v, "mail_command"), GPUQ_EINVAL,
					"expected the absolute path of a command, then its "
					"arguments; no shell is involved");
	if (gpuq_mail_check(c->mail_from, &err) < 0)
		return gpuq_reader_fail(r, gpuq_get(v, "mail_from"), GPUQ_EINVAL, "%s", err.text);
	for (size_t i = 0; i < c->mail_allowed.n; i++)
		if (c->mail_allowed.items[i][0] != '@')
			return gpuq_reader_fail(
				r, gpuq_get(v, "mail_allowed"), GPUQ_EINVAL,
				"expected suffixes of addresses such as @example.org");
	for (size_t i = 0; i < c->webhook_allowed.n; i++)
		if (gpuq_url_check(c->webhook_allowed.items[i], &err) < 0)
			return gpuq_reader_fail(r, gpuq_get(v, "webhook_allowed"), GPUQ_EINVAL,
						"%s (the '/' after the host is required)",
						err.text);
	if (c->hooks.n > POLICY_HOOKS_MAX)
		return gpuq_reader_fail(r, gpuq_get(v, "webhooks"), GPUQ_ERANGE,
					"expected at most %d webhooks", POLICY_HOOKS_MAX);
	return 0;
}

/* clang-format off */
static const struct gpuq_field fields[] = {
	N("mail_command", GPUQ_K_STRLIST, mail_command, .doc = "command that reads a mail with its headers on standard input: absolute path and arguments, such as [/usr/sbin/sendmail, -t, -i]"),
	N("mail_from", GPUQ_K_STR, mail_from, .form = "address", .doc = "sender of mails"),
	N("mail_allowed", GPUQ_K_STRLIST, mail_allowed, .doc = "suffixes of addresses that users may give, such as @example.org; their own user name is always allowed"),
	N("mail_timeout", GPUQ_K_DURATION, mail_timeout_us, .min = 100000, .max = INT64_C(3600000000), .doc = "time after which the command is killed"),
	N("webhook_allowed", GPUQ_K_STRLIST, webhook_allowed, .doc = "prefixes of URLs that users may give, including at least the / after the host"),
	N("webhook_timeout", GPUQ_K_DURATION, webhook_timeout_us, .min = 100000, .max = INT64_C(3600000000), .doc = "maximum time for a reply"),
	N("proxy", GPUQ_K_STR, proxy, .form = "URL", .doc = "proxy for webhooks; proxy settings of the environment are ignored"),
	N("keep", GPUQ_K_DURATION, keep_us, .min = 1000000, .max = INT64_C(2592000000000), .doc = "time for which delivery is retried, at intervals that grow to five minutes; after it the message is dropped and gpuq events --audit reports it"),
	N("webhooks", GPUQ_K_OBJECTS, hooks, .sub = &hook_schema, .doc = "webhooks of the site, called for events of every job: at most eight, each {name: NAME, url: URL, on: [fail]} with the events of a job's notify, and refused (the cluster refuses jobs); default: end, fail and refused"),
	{ .key = NULL },
};
/* clang-format on */

const struct gpuq_schema config_notify_schema = { .name = "notify",
						  .size = sizeof(struct config_notify),
						  .fields = fields,
						  .defaults = defaults,
						  .check = check };

void config_notify_policy(const struct config_notify *c, struct policy_notify *out)
{
	const struct config_hook *hooks = c->hooks.items;

	*out = (struct policy_notify){ .mail = c->mail_command.n > 0,
				       .mail_to = c->mail_allowed,
				       .urls = c->webhook_allowed };
	for (size_t i = 0; i < c->hooks.n; i++)
		out->hooks[out->n_hooks++] = (struct policy_hook){ hooks[i].name, hooks[i].bits };
}
