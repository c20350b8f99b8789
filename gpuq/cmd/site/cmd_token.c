/* gpuq token create, list, revoke. The secret of a token is printed once, and never requested again. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/list.h"
#include "gpuq/lines.h"
#include "gpuq/out.h"
#include "gpuq/view.h"

static void joined(struct gpuq_buf *out, const struct row *r, const char *key)
{
	const struct gpuq_val *v = gpuq_get(r->obj, key);

	for (uint32_t i = 0; v && v->type == GPUQ_LIST && i < v->n; i++)
		gpuq_buf_printf(out, "%s%s", i ? "," : "",
				v->items[i]->type == GPUQ_STR ? v->items[i]->s : "?");
}

static void scopes_text(struct gpuq_buf *out, const struct row *r)
{
	joined(out, r, "scopes");
}

static void queues_text(struct gpuq_buf *out, const struct row *r)
{
	joined(out, r, "queues");
}

/* clang-format off */
static const struct column cols[] = {
	{ "ID", 'i', 0, "id", NULL, NULL, "name of the token; it is not secret" },
	{ "USER", 'u', 0, "user", NULL, NULL, "user whose rights it carries" },
	{ "STATE", 't', COL_STATE, "state", NULL, NULL, "valid, expired or revoked" },
	{ "SCOPES", 0, COL_CUT, "scopes", scopes_text, NULL, "permitted uses" },
	{ "QUEUES", 'q', COL_CUT, "queues", queues_text, NULL, "queues to which it is restricted" },
	{ "EXPIRES", 'e', 0, "expires_time", NULL, NULL, "when it expires" },
	{ "USED", 0, 0, "used_time", NULL, NULL, "last use, within an hour" },
	{ "CREATED", 0, 0, "created_time", NULL, NULL, "when it was created" },
	{ "REVOKED", 0, 0, "revoked_time", NULL, NULL, "when it was revoked" },
	{ "BY", 0, 0, "by", NULL, NULL, "user who created it, or rule of its login" },
	{ "COMMENT", 'c', COL_CUT, "comment", NULL, NULL, "note given at its creation" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};
/* clang-format on */

static const struct out_def list_def = {
	.cols = cols,
	.usual = "ID,USER,STATE,SCOPES,QUEUES,EXPIRES,USED,COMMENT",
	.spare = "QUEUES,USED,COMMENT",
	.sort = NULL,
};

static int create(struct cli *c)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *reply;
	struct gpuq_err err = GPUQ_ERR_INIT;

	list_put(c, OPT_SCOPE, params, "scopes");
	list_put(c, OPT_QUEUES, params, "queues");
	if (c->args.val[OPT_EXPIRES])
		gpuq_put(a, params, "expires", gpuq_str(a, c->args.val[OPT_EXPIRES]));
	if (c->args.val[OPT_COMMENT])
		gpuq_put(a, params, "comment", gpuq_str(a, c->args.val[OPT_COMMENT]));
	if (c->args.val[OPT_FOR])
		gpuq_put(a, params, "user", gpuq_str(a, c->args.val[OPT_FOR]));
	if (cli_call(c, "token.create", params, "", &reply, &err) < 0)
		return cli_fail(&err, false);
	if (opt_given(&c->args, OPT_JSON))
		return out_json(reply) < 0 ? EXIT_REFUSED : EXIT_DONE;
	printf("%s\n", gpuq_get_str(reply, "token", ""));
	return EXIT_DONE;
}

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	(void)err;
	list_put(c, OPT_USERS, params, "users");
	if (opt_given(&c->args, OPT_ALL))
		gpuq_put(&c->arena, params, "all", gpuq_bool(&c->arena, true));
	return 0;
}

static int revoke_some(struct cli *c)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *ids = gpuq_list(a), *reply;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t n;

	for (int i = 1; i < c->args.n_rest; i++)
		gpuq_add(a, ids, gpuq_str(a, c->args.rest[i]));
	if (c->args.n_rest > 1)
		gpuq_put(a, params, "ids", ids);
	list_put(c, OPT_USERS, params, "users");
	if (c->args.n_rest < 2 && !c->args.val[OPT_USERS])
		return cli_usage(c, "revoke: expected ids of tokens, or --user");
	if (cli_call(c, "token.revoke", params, "", &reply, &err) < 0)
		return cli_fail(&err, false);
	if (opt_given(&c->args, OPT_JSON))
		return out_json(reply) < 0 ? EXIT_REFUSED : EXIT_DONE;
	n = gpuq_get_int(reply, "revoked", 0);
	printf("Revoked %" PRId64 " token%s\n", n, line_s(n));
	return EXIT_DONE;
}

int cmd_token(struct cli *c)
{
	const char *verb = c->args.n_rest > 0 ? c->args.rest[0] : "list";

	if (strcmp(verb, "revoke") == 0)
		return revoke_some(c);
	if (c->args.n_rest > 1)
		return cli_usage(c, "%s: one argument too many", c->args.rest[1]);
	if (strcmp(verb, "create") == 0)
		return create(c);
	if (strcmp(verb, "list") == 0)
		return list_run(c, "token.list", &list_def, NULL, fill, NULL);
	return cli_usage(c, "%s: expected create, list or revoke", verb);
}
