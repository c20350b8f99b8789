/* gpuq update: describe pending jobs anew. */
#include <string.h>

#include "gpuq/cmd/job/act.h"
#include "gpuq/command.h"
#include "libgpuq/yaml.h"

/* KEY=VALUE, where VALUE is what follows KEY: in a job file. */
static int add_change(struct cli *c, const char *text, struct gpuq_val *set)
{
	const char *eq = strchr(text, '=');
	const char *key = gpuq_arena_strndup(&c->arena, text, (size_t)(eq - text));
	struct gpuq_val *v, **docs = NULL;
	struct gpuq_err err = GPUQ_ERR_INIT;
	size_t n = 0;

	if (!key)
		return cli_usage(c, "out of memory");
	/* An array's throttle; YAML would take it for a directive. */
	if (eq[1] == '%') {
		gpuq_set(&c->arena, set, key, gpuq_str(&c->arena, eq + 1));
		return -1;
	}
	if (gpuq_yaml_parse(&c->arena, key, eq + 1, strlen(eq + 1), &docs, &n, &err) < 0)
		return cli_usage(c, "%s", err.text);
	if (n > 1)
		return cli_usage(c, "%s: expected one value", text);
	v = n ? docs[0] : gpuq_null(&c->arena);
	gpuq_set(&c->arena, set, key, v);
	return -1;
}

int cmd_update(struct cli *c)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *extra = gpuq_map(a), *set = gpuq_map(a);
	const bool top = opt_given(&c->args, OPT_TOP);
	int n = 0, code;

	for (int i = 0; i < c->args.n_rest; i++) {
		if (!strchr(c->args.rest[i], '=')) {
			c->args.rest[n++] = c->args.rest[i];
			continue;
		}
		code = add_change(c, c->args.rest[i], set);
		if (code >= 0)
			return code;
	}
	c->args.n_rest = n;
	if (top ? set->n > 0 : set->n == 0)
		return cli_usage(c, top ? "--top goes without KEY=VALUE"
					: "expected a change, such as time=2h");
	if (top)
		gpuq_put(a, extra, "top", gpuq_bool(a, true));
	else
		gpuq_put(a, extra, "set", set);
	return act(c, "job.update", extra, "Updated", "Would update");
}
