/* gpuq export: what the server knows, in a form that can be read again. */
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/out.h"
#include "libgpuq/yaml.h"

/* The lists of a case, in the order of the file. */
static const char *const parts[] = { "nodes", "pools", "queues", "users", "running", "pending" };
enum { N_PARTS = sizeof(parts) / sizeof(parts[0]) };

struct gathered {
	struct gpuq_arena *a;
	struct gpuq_val *config, *lists[N_PARTS];
};

static int on_item(void *arg, const struct gpuq_val *item)
{
	struct gathered *g = arg;
	const char *part = gpuq_get_str(item, "part", "");
	struct gpuq_val *value = gpuq_val_copy(g->a, gpuq_get(item, "value"));

	if (!item)
		return 0;
	if (!value)
		return GPUQ_ENOMEM;
	if (strcmp(part, "config") == 0)
		g->config = value;
	for (int i = 0; i < N_PARTS; i++)
		if (strcmp(part, parts[i]) == 0)
			gpuq_add(g->a, g->lists[i], value);
	return 0;
}

static struct gpuq_val *as_case(struct gathered *g)
{
	struct gpuq_val *file = gpuq_map(g->a), *list = gpuq_list(g->a), *one = gpuq_map(g->a);

	gpuq_put(g->a, one, "id", gpuq_str(g->a, "live"));
	if (g->config)
		gpuq_put(g->a, one, "config", g->config);
	for (int i = 0; i < N_PARTS; i++)
		if (g->lists[i]->n)
			gpuq_put(g->a, one, parts[i], g->lists[i]);
	gpuq_add(g->a, list, one);
	gpuq_put(g->a, file, "version", gpuq_int(g->a, 1));
	gpuq_put(g->a, file, "cases", list);
	return file;
}

static void print(const struct cli *c, const struct gpuq_val *v)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;

	if (opt_given(&c->args, OPT_JSON))
		gpuq_json_write(&text, v, 0);
	else
		gpuq_yaml_write(&text, v);
	printf("%s%s", gpuq_buf_str(&text), opt_given(&c->args, OPT_JSON) ? "\n" : "");
	gpuq_buf_done(&text);
}

/* The site file that makes the site what it is. */
static int export_site(struct cli *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *reply;

	if (cli_call(c, "site.get", NULL, "", &reply, &err) < 0)
		return cli_fail(&err, false);
	print(c, gpuq_get(reply, "site"));
	return EXIT_DONE;
}

int cmd_export(struct cli *c)
{
	struct gathered g = { .a = &c->arena };
	struct gpuq_arena reply_mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *reply;
	int rc;

	if (!opt_given(&c->args, OPT_SCENARIO))
		return export_site(c);
	for (int i = 0; i < N_PARTS; i++)
		g.lists[i] = gpuq_list(g.a);
	rc = cli_connect(c, &err);
	if (rc == 0)
		rc = gpuq_stream(c->conn, "scenario.export", NULL, 0, on_item, &g, &reply_mem,
				 &reply, &err);
	gpuq_arena_done(&reply_mem);
	if (rc < 0)
		return cli_fail(&err, false);
	print(c, as_case(&g));
	return EXIT_DONE;
}
