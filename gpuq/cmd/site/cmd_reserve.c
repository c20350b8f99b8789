/* gpuq reserve: put a slice of the cluster into the calendar, move it, or take it out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/cmd/site/site_change.h"
#include "gpuq/command.h"
#include "libgpuq/client.h"
#include "libgpuq/hostlist.h"

/* Options that become a key of the reservation as they are. */
static const struct {
	enum opt_id id;
	const char *key;
} texts[] = {
	{ OPT_START, "start" },       { OPT_DURATION, "duration" },
	{ OPT_FLAVOR, "flavor" },     { OPT_POOL, "pool" },
	{ OPT_QUEUE, "queue" },       { OPT_EVERY, "every" },
	{ OPT_UNTIL, "until" },       { OPT_RELEASE_AFTER, "release_after" },
	{ OPT_TIMEZONE, "timezone" }, { OPT_AT_END, "at_end" },
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

/* is_external: of one that exists. */
static int fill(struct cli *c, struct gpuq_val *r, bool is_external, struct gpuq_err *err)
{
	struct gpuq_arena *a = &c->arena;
	const struct args *args = &c->args;
	struct gpuq_val *nodes = gpuq_list(a);
	int rc = 0;

	is_external |= opt_given(args, OPT_EXTERNAL);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (args->val[texts[i].id])
			gpuq_put(a, r, texts[i].key, gpuq_str(a, args->val[texts[i].id]));
	if (opt_given(args, OPT_EXTERNAL))
		gpuq_put(a, r, "external", gpuq_bool(a, true));
	if (args->val[OPT_NODES] && is_external) {
		rc = site_put(a, r, gpuq_arena_printf(a, "count=%s", args->val[OPT_NODES]), err);
	} else if (args->val[OPT_NODES]) {
		rc = hostlist_expand(a, args->val[OPT_NODES], HOSTLIST_GLOBS, nodes, err);
		gpuq_put(a, r, "nodes", nodes);
	}
	if (rc == 0 && args->val[OPT_GPUS])
		rc = site_put(a, r, gpuq_arena_printf(a, "gpus=%s", args->val[OPT_GPUS]), err);
	if (args->val[OPT_EXCEPT])
		gpuq_put(a, r, "except", words(a, args->val[OPT_EXCEPT]));
	if (args->val[OPT_USERS])
		gpuq_put(a, r, "users", words(a, args->val[OPT_USERS]));
	if (args->val[OPT_FLAGS])
		gpuq_put(a, r, "flags", words(a, args->val[OPT_FLAGS]));
	return rc;
}

/* A search through the reservations that there are. */
struct known {
	const char *name; /* the one that is looked for; NULL: a free name is */
	const char *stem; /* of the free name: "vision" of vision-1 */
	bool is, is_external;
	long last; /* highest number behind the stem */
};

static int on_known(void *arg, const struct gpuq_val *item)
{
	struct known *k = arg;
	const char *name = item ? gpuq_get_str(item, "name", "") : "";
	const size_t n = strlen(k->stem);
	char *end;

	if (k->name && strcmp(name, k->name) == 0) {
		k->is = true;
		k->is_external = gpuq_get_bool(item, "external", false);
	}
	if (k->name)
		return 0;
	if (strncmp(name, k->stem, n) == 0 && name[n] == '-' &&
	    strtol(name + n + 1, &end, 10) > k->last && *end == '\0')
		k->last = strtol(name + n + 1, NULL, 10);
	return 0;
}

/* A new reservation is named after its queue, else its first user. */
static const char *stem_of(struct cli *c)
{
	const char *queue = c->args.val[OPT_QUEUE], *users = c->args.val[OPT_USERS];

	if (queue && *queue)
		return queue;
	return users && *users ? gpuq_arena_strndup(&c->arena, users, strcspn(users, ","))
			       : "maintenance";
}

static int look(struct cli *c, struct known *k, struct gpuq_err *err)
{
	struct gpuq_val *reply;
	int rc;

	*k = (struct known){ .name = c->args.n_rest ? c->args.rest[0] : NULL, .stem = stem_of(c) };
	rc = cli_connect(c, err);
	if (rc == 0)
		rc = gpuq_stream(c->conn, "reservation.list", NULL, 0, on_known, k, &c->arena,
				 &reply, err);
	return rc;
}

/* In a reservation that exists, a new amount replaces its nodes, and new nodes its amount. */
static void forget_the_other(struct cli *c, struct gpuq_val *r)
{
	struct gpuq_arena *a = &c->arena;

	if (gpuq_get(r, "gpus") && !gpuq_get(r, "nodes"))
		gpuq_put(a, r, "nodes", gpuq_null(a));
	else if (gpuq_get(r, "nodes") && !gpuq_get(r, "gpus"))
		gpuq_put(a, r, "gpus", gpuq_null(a));
}

/* A new one: all that it needs is said. */
static int check_new(struct cli *c)
{
	if (!opt_given(&c->args, OPT_DURATION))
		return cli_usage(c, "expected --duration");
	if (!opt_given(&c->args, OPT_NODES) && !opt_given(&c->args, OPT_GPUS) &&
	    !opt_given(&c->args, OPT_POOL))
		return cli_usage(c, "expected --nodes, --gpus or --pool: what is reserved?");
	return 0;
}

int cmd_reserve(struct cli *c)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *list = gpuq_list(a), *r = gpuq_map(a);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct known known;
	int rc;

	if (opt_given(&c->args, OPT_DELETE))
		return c->args.n_rest ? delete_them(c)
				      : cli_usage(c, "expected the names of reservations");
	if (c->args.n_rest > 1)
		return cli_usage(c, "expected at most one name for the reservation");
	if (c->args.n_rest == 0) {
		rc = check_new(c);
		if (rc != 0)
			return rc;
	}
	if (look(c, &known, &err) < 0)
		return cli_fail(&err, false);
	if (!known.is) {
		rc = check_new(c);
		if (rc != 0)
			return rc;
	}
	gpuq_put(a, r, "name",
		 gpuq_str(a, known.name
				     ? known.name
				     : gpuq_arena_printf(a, "%s-%ld", known.stem, known.last + 1)));
	if (fill(c, r, known.is_external, &err) < 0)
		return cli_usage(c, "%s", err.text);
	if (known.is && r->n == 1)
		return cli_usage(c, "%s exists: expected options that change it", known.name);
	if (known.is)
		forget_the_other(c, r);
	else if (!gpuq_get(r, "start"))
		gpuq_put(a, r, "start", gpuq_str(a, "now"));
	gpuq_add(a, list, r);
	gpuq_put(a, params, "site", site_tree(a, "reservations", list));
	gpuq_put(a, params, "fresh", gpuq_bool(a, !known.is));
	return site_change(c, params, NULL);
}
