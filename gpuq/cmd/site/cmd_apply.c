/* gpuq apply: merge a site file into the current site. */
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/file.h"
#include "gpuq/cmd/site/site_change.h"
#include "libgpuq/limits.h"
#include "libgpuq/utf8.h"

/* The place of the first byte that is no text. */
static int not_text(const char *path, const struct gpuq_buf *text, size_t at, struct gpuq_err *err)
{
	size_t line = 1, col = 1;

	for (size_t i = 0; i < at; i++) {
		col = text->data[i] == '\n' ? 1 : col + 1;
		line += text->data[i] == '\n';
	}
	return gpuq_fail(err, GPUQ_EINVAL, "%s:%zu:%zu: not a text in UTF-8", path, line, col);
}

static int add_file(struct cli *c, struct gpuq_val *params, const char *path, struct gpuq_err *err)
{
	struct gpuq_buf text = GPUQ_BUF_INIT_MAX(GPUQ_YAML_BYTES_MAX);
	struct gpuq_arena *a = &c->arena;
	int rc = file_read(path, &text, err);
	size_t text_len = rc == 0 && text.len ? gpuq_utf8_check(text.data, text.len) : 0;

	if (text_len && memchr(text.data, '\0', text_len))
		text_len = (size_t)((const char *)memchr(text.data, '\0', text_len) -
				    (const char *)text.data);
	if (rc == 0 && text_len < text.len)
		rc = not_text(path, &text, text_len, err);
	if (rc == 0) {
		gpuq_put(a, params, "text", gpuq_str(a, gpuq_buf_str(&text)));
		gpuq_put(a, params, "file", gpuq_str(a, path));
	}
	gpuq_buf_done(&text);
	return rc;
}

int cmd_apply(struct cli *c)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *remove = gpuq_list(a);
	const char *path = c->args.val[OPT_FILE], *words = c->args.val[OPT_REMOVE];
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (!path && !words)
		return cli_usage(c, "expected -f FILE");
	if (path && add_file(c, params, path, &err) < 0)
		return cli_fail(&err, false);
	while (words && *words) {
		const size_t n = strcspn(words, ",");

		if (n)
			gpuq_add(a, remove, gpuq_strn(a, words, n));
		words += n + (words[n] == ',');
	}
	if (remove->n)
		gpuq_put(a, params, "remove", remove);
	if (opt_given(&c->args, OPT_PRUNE)) {
		if (!path)
			return cli_usage(c, "--prune: needs -f FILE");
		gpuq_put(a, params, "prune", gpuq_bool(a, true));
	}
	return site_change(c, params, NULL);
}
