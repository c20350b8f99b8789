/* gpuq queues set, stop, start, open and close. */
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/cmd/site/queues_act.h"
#include "gpuq/cmd/site/site_change.h"

/* Change of the queue's object for each verb; NULL = from the arguments. */
static const struct verb {
	const char *name, *key;
	bool value;
	const char *done; /* printed with the number of changes behind it; NULL = show them */
} verbs[] = {
	{ "set", NULL, false, NULL },
	{ "stop", "stopped", true, "Stopped queues:" },
	{ "start", "stopped", false, "Started queues:" },
	{ "open", "closed", false, "Opened queues:" },
	{ "close", "closed", true, "Closed queues:" },
};

bool queues_is_verb(const char *word)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i].name, word) == 0)
			return true;
	return false;
}

static struct gpuq_val *member(struct gpuq_arena *a, const char *name)
{
	struct gpuq_val *q = gpuq_map(a);

	gpuq_put(a, q, "name", gpuq_str(a, name));
	return q;
}

static int set(struct cli *c, struct gpuq_val *list)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *q;

	if (c->args.n_rest < 3)
		return cli_usage(c, "expected set QUEUE KEY=VALUE...");
	q = member(a, c->args.rest[1]);
	for (int i = 2; i < c->args.n_rest; i++)
		if (site_put(a, q, c->args.rest[i], &err) < 0)
			return cli_usage(c, "%s", err.text);
	gpuq_add(a, list, q);
	return 0;
}

int queues_act(struct cli *c)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *list = gpuq_list(a);
	const struct verb *v = verbs;
	int code = 0;

	while (strcmp(v->name, c->args.rest[0]) != 0)
		v++;
	if (c->args.n_rest < 2)
		return cli_usage(c, "expected %s QUEUE%s", v->name,
				 v->key ? "..." : " KEY=VALUE...");
	if (!v->key)
		code = set(c, list);
	for (int i = 1; v->key && i < c->args.n_rest; i++) {
		struct gpuq_val *q = member(a, c->args.rest[i]);

		gpuq_put(a, q, v->key, gpuq_bool(a, v->value));
		gpuq_add(a, list, q);
	}
	if (code)
		return code;
	gpuq_put(a, params, "site", site_tree(a, "queues", list));
	gpuq_put(a, params, "existing", gpuq_bool(a, true));
	return site_change(c, params, v->done);
}
