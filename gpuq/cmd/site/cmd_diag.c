/* gpuq diag: internal statistics of the server, section by section. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/lines.h"
#include "gpuq/list.h"
#include "gpuq/out.h"
#include "gpuq/view.h"
#include "libgpuq/units.h"

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

static void figure(struct gpuq_buf *text, const char *key, const struct gpuq_val *v)
{
	if (v->type == GPUQ_INT && ends_with(key, "_us"))
		gpuq_buf_printf(text, "%.3f ms", (double)v->i / 1000);
	else if (v->type == GPUQ_INT && (ends_with(key, "_bytes") || strcmp(key, "bytes") == 0)) {
		line_bytes(text, v->i);
	} else if (v->type == GPUQ_INT && (ends_with(key, "_time") || ends_with(key, "_since")))
		view_time(text, v);
	else if (v->type == GPUQ_BOOL)
		gpuq_buf_adds(text, v->b ? "yes" : "no");
	else
		view_cell(text, v);
}

/* Two columns to a line would be read across; one figure a line can be cut by scripts. */
static void section(const char *name, const struct gpuq_val *map)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	char label[64];

	for (uint32_t i = 0; map && map->type == GPUQ_MAP && i < map->n; i++) {
		const char *key = map->pairs[i].key;

		if (map->pairs[i].val->type == GPUQ_MAP) {
			snprintf(label, sizeof(label), "%s.%s", name, key);
			section(label, map->pairs[i].val);
			continue;
		}
		snprintf(label, sizeof(label), "%s.%.*s", name,
			 (int)(strlen(key) - (ends_with(key, "_us") ? 3 : 0)), key);
		figure(&text, key, map->pairs[i].val);
		line_wide(label, &text);
	}
	gpuq_buf_done(&text);
}

static int once(struct cli *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *params = gpuq_map(&c->arena), *v;

	if (opt_given(&c->args, OPT_RESET))
		gpuq_put(&c->arena, params, "reset", gpuq_bool(&c->arena, true));
	if (cli_call(c, "diag.get", params, "", &v, &err) < 0)
		return cli_fail(&err, false);
	if (opt_given(&c->args, OPT_JSON))
		return out_json(v) < 0 ? EXIT_REFUSED : EXIT_DONE;
	for (uint32_t i = 0; v->type == GPUQ_MAP && i < v->n; i++)
		section(v->pairs[i].key, v->pairs[i].val);
	return EXIT_DONE;
}

int cmd_diag(struct cli *c)
{
	return watch_run(c, once);
}
