/* gpuq version: the client's and the server's. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/out.h"
#include "gpuq/term.h"
#include "gpuq/view.h"

static void line(const char *what, const struct gpuq_val *v)
{
	struct gpuq_buf text = GPUQ_BUF_INIT, clean = GPUQ_BUF_INIT;

	view_cell(&text, v);
	term_clean_str(&clean, gpuq_buf_str(&text));
	printf("%s %s\n", what, gpuq_buf_str(&clean));
	gpuq_buf_done(&text);
	gpuq_buf_done(&clean);
}

int cmd_version(struct cli *c)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *v = gpuq_map(a);
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct gpuq_val *info = NULL;
	int code = EXIT_DONE;

	gpuq_put(a, v, "client", gpuq_str(a, PACKAGE_VERSION));
	if (!opt_given(&c->args, OPT_CLIENT)) {
		if (cli_connect(c, &err) == 0)
			info = gpuq_server_info(c->conn);
		if (info)
			gpuq_put(a, v, "server", gpuq_val_copy(a, gpuq_get(info, "version")));
		else
			gpuq_put(a, v, "server", gpuq_null(a));
	}
	if (opt_given(&c->args, OPT_JSON)) {
		out_json(v);
	} else {
		line("client", gpuq_get(v, "client"));
		if (info)
			line("server", gpuq_get(v, "server"));
	}
	if (!info && !opt_given(&c->args, OPT_CLIENT))
		code = cli_fail(&err, false);
	return code;
}
