/* gpuq import kueue: the queues of another system as a site file. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/file.h"
#include "gpuq/import/import_kueue.h"
#include "libgpuq/limits.h"
#include "libgpuq/yaml.h"

struct gathered {
	struct import_doc *docs;
	size_t n;
	size_t n_notes;
};

static int read_file(struct cli *c, const char *path, struct gathered *g, struct gpuq_err *err)
{
	struct gpuq_buf text = GPUQ_BUF_INIT_MAX(GPUQ_YAML_BYTES_MAX);
	struct gpuq_arena *a = &c->arena;
	struct import_doc *more;
	struct gpuq_val **docs;
	size_t n = 0;
	int rc = file_read(path, &text, err);

	if (rc == 0)
		rc = gpuq_yaml_parse(a, path, text.data ? text.data : "", text.len, &docs, &n, err);
	gpuq_buf_done(&text);
	if (rc < 0)
		return rc;
	more = gpuq_arena_calloc(a, g->n + n + 1, sizeof(*more));
	if (!more)
		return gpuq_no_memory(err);
	if (g->n)
		memcpy(more, g->docs, g->n * sizeof(*more));
	for (size_t i = 0; i < n; i++)
		more[g->n++] = (struct import_doc){ path, docs[i] };
	g->docs = more;
	return 0;
}

static void on_note(void *arg, const char *text)
{
	struct gathered *g = arg;

	g->n_notes++;
	cli_say("%s", text);
}

int cmd_import(struct cli *c)
{
	struct gathered g = { NULL, 0, 0 }, shapes = { NULL, 0, 0 };
	struct gpuq_buf text = GPUQ_BUF_INIT, comment = GPUQ_BUF_INIT;
	struct import_from from;
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *site;
	int rc = 0;

	if (strcmp(c->args.rest[0], "kueue") != 0)
		return cli_usage(c, "%s: what can be imported is kueue", c->args.rest[0]);
	for (int i = 1; rc == 0 && i < c->args.n_rest; i++)
		rc = read_file(c, c->args.rest[i], &g, &err);
	if (rc == 0 && c->args.val[OPT_POOLS])
		rc = read_file(c, c->args.val[OPT_POOLS], &shapes, &err);
	from = (struct import_from){ g.docs, shapes.docs, g.n, shapes.n };
	if (rc == 0)
		rc = import_kueue(&c->arena, &from, &site, &comment, on_note, &g, &err);
	if (rc == 0) {
		gpuq_yaml_write(&text, site);
		fputs(gpuq_buf_str(&text), stdout);
		fputs(gpuq_buf_str(&comment), stdout);
	}
	gpuq_buf_done(&text);
	gpuq_buf_done(&comment);
	if (rc < 0)
		return cli_fail(&err, false);
	if (g.n_notes)
		cli_say("%zu field%s without a counterpart, above", g.n_notes,
			g.n_notes == 1 ? "" : "s");
	return EXIT_DONE;
}
