/* gpuq reserve: put a slice of the cluster into the calendar, or take it out. */
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/cmd/site/site_change.h"
#include "gpuq/command.h"
#include "libgpuq/hostlist.h"

/* Options that become a key of the reservation as they are. */
static const struct {
	enum opt_id id;
	const char *key;
} texts[] = {
	{ OPT_START, "start" },
	{ OPT_DURATION, "duration" },
	{ OPT_FLAVOR, "flavor" },
	{ OPT_POOL, "pool" },
	{ OPT_QUEUE, "queue" },
	{ OPT_EVERY, "every" },
	{ OPT_RELEASE_AFTER, "release_after" },
};

static struct gpuq_val *words(struct gpuq_arena *a, const char *text)
{
	struct gpuq_val *list = gpuq_list(a);

	while (text && *text) {
		const size_t n = strcspn(text, ",");

		if (n)
			gpuq_add(a, list, gpuq_strn(a, text, n));
		text += n + (text[n] == ',');
	}
	return list;
}

static int delete_them(struct cli *c)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *remove = gpuq_list(a);

	for (int i = 0; i < c->args.n_rest; i++)
		gpuq_add(a, remove,
			 gpuq_str(a, gpuq_arena_printf(a, "reservation/%s", c->args.rest[i])));
	gpuq_put(a, params, "remove", remove);
	return site_change(c, params, "Deleted reservations:");
}

static int fill(struct cli *c, struct gpuq_val *r, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;
	const struct args *args = &c->args;
	struct gpuq_val *nodes = gpuq_list(a);
	int rc = 0;

	gpuq_put(a, r, "name", gpuq_str(a, args->rest[0]));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (args->val[texts[i].id])
			gpuq_put(a, r, texts[i].key, gpuq_str(a, args->val[texts[i].id]));
	if (!args->val[OPT_START])
		gpuq_put(a, r, "start", gpuq_str(a, "now"));
	if (args->val[OPT_NODES]) {
		rc = hostlist_expand(a, args->val[OPT_NODES], HOSTLIST_GLOBS, nodes, err);
		gpuq_put(a, r, "nodes", nodes);
	}
	if (rc == 0 && args->val[OPT_GPUS])
		rc = site_put(a, r, gpuq_arena_printf(a, "gpus=%s", args->val[OPT_GPUS]), err);
	if (args->val[OPT_USERS])
		gpuq_put(a, r, "users", words(a, args->val[OPT_USERS]));
	if (args->val[OPT_FLAGS])
		gpuq_put(a, r, "flags", words(a, args->val[OPT_FLAGS]));
	return rc;
}

int cmd_reserve(struct cli *c)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *list = gpuq_list(a), *r = gpuq_map(a);
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (opt_given(&c->args, OPT_DELETE))
		return delete_them(c);
	if (c->args.n_rest != 1)
		return cli_usage(c, "expected one name for the reservation");
	if (!opt_given(&c->args, OPT_DURATION))
		return cli_usage(c, "expected --duration");
	if (!opt_given(&c->args, OPT_NODES) && !opt_given(&c->args, OPT_GPUS) &&
	    !opt_given(&c->args, OPT_POOL))
		return cli_usage(c, "expected --nodes, --gpus or --pool: what is reserved?");
	if (fill(c, r, &err) < 0)
		return cli_usage(c, "%s", err.text);
	gpuq_add(a, list, r);
	gpuq_put(a, params, "site", site_tree(a, "reservations", list));
	gpuq_put(a, params, "fresh", gpuq_bool(a, true));
	return site_change(c, params, NULL);
}
