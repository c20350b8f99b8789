/* gpuq wait: wait until jobs have ended. */
#include <string.h>

#include "gpuq/cmd/job/attend.h"
#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/filter.h"

int cmd_wait(struct cli *c)
{
	struct gpuq_val *ids = gpuq_list(&c->arena);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct attend t = { .n_targets = 0 };
	struct target *targets;
	int code;

	for (int i = 0; i < c->args.n_rest; i++)
		if (filter_ids(&c->arena, c->args.rest[i], ids, &err) < 0)
			return cli_usage(c, "%s", err.text);
	if (!attend_options(c, &t, &code))
		return code;
	targets = gpuq_arena_calloc(&c->arena, ids->n, sizeof(*targets));
	if (!targets)
		return cli_usage(c, "out of memory");
	for (size_t i = 0; i < ids->n; i++)
		if (filter_id(ids->items[i]->s, &targets[i].id, &targets[i].index, &err) < 0)
			return cli_usage(c, "%s", err.text);
	t.targets = targets;
	t.n_targets = ids->n;
	t.json = opt_given(&c->args, OPT_JSON);
	return attend(c, &t);
}
