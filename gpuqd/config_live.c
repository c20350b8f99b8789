#include "gpuqd/config_live.h"

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <stdlib.h>
#include <string.h>

#include "gpuqd/base/log.h"
#include "libgpuq/buf.h"

const char *const *config_live_operators(const struct config *c, struct gpuq_arena *a)
{
	const char **names = gpuq_arena_calloc(a, c->operators.n + 1, sizeof(*names));

	for (size_t i = 0; names && i < c->operators.n; i++)
		names[i] = c->operators.items[i];
	return names;
}

void config_live_outbox(const struct config *c, struct gpuq_arena *a, struct outbox_opts *out)
{
	const struct config_notify *n = &c->notify;
	const struct config_hook *hooks = n->hooks.items;
	struct outbox_hook *list = gpuq_arena_calloc(a, n->hooks.n + 1, sizeof(*list));

	if (!list)
		abort(); /* a few words that were just read */
	for (size_t i = 0; i < n->hooks.n; i++)
		list[i] = (struct outbox_hook){ hooks[i].name, hooks[i].url };
	*out = (struct outbox_opts){ .mail_command = n->mail_command,
				     .mail_from = n->mail_from,
				     .mail_timeout_us = n->mail_timeout_us,
				     .webhook_timeout_us = n->webhook_timeout_us,
				     .proxy = n->proxy,
				     .keep_us = n->keep_us,
				     .hooks = list,
				     .n_hooks = n->hooks.n,
				     .agent = "gpuqd/" PACKAGE_VERSION };
}

bool config_live_is_same(const struct config *a, const struct config *b)
{
	struct gpuq_buf x = GPUQ_BUF_INIT, y = GPUQ_BUF_INIT;
	bool same;

	config_print(a, &x);
	config_print(b, &y);
	same = strcmp(gpuq_buf_str(&x), gpuq_buf_str(&y)) == 0;
	gpuq_buf_done(&x);
	gpuq_buf_done(&y);
	return same;
}

void config_live_tell_others(const struct config *is, const struct config *c)
{
	struct gpuq_buf keys = GPUQ_BUF_INIT;

	config_not_live(is, c, &keys);
	if (keys.len)
		log_warn("config.reload", "keys=%s: these take effect at the next start",
			 gpuq_buf_str(&keys));
	gpuq_buf_done(&keys);
}

void config_live_put(struct config *is, const struct config *c)
{
	is->auth = c->auth;
	is->operators = c->operators;
	is->connections_per_user = c->connections_per_user;
	is->log_level = c->log_level;
	is->finished_pod_keep_us = c->finished_pod_keep_us;
	is->start_timeout_us = c->start_timeout_us;
	is->backup_dir = c->backup_dir;
	is->operators_act_as_user = c->operators_act_as_user;
	is->history_keep_us = c->history_keep_us;
	is->history_max = c->history_max;
	is->history_bytes = c->history_bytes;
	is->notify = c->notify;
	is->policy.notify = c->policy.notify;
	is->policy.weights = c->policy.weights;
	is->policy.usage_k_milli = c->policy.usage_k_milli;
	is->policy.sched = c->policy.sched;
}

struct history_limits config_live_history(const struct config *c)
{
	return (struct history_limits){ c->history_keep_us, c->history_max, c->history_bytes };
}
