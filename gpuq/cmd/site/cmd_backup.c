/* gpuq backup: a copy of everything that the server has stored. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/lines.h"
#include "gpuq/list.h"
#include "gpuq/out.h"
#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/base/write.h"
#include "libgpuq/units.h"

struct copying {
	int fd;
	int64_t bytes;
	int error; /* errno of a write */
};

static int on_item(void *arg, const struct gpuq_val *item)
{
	struct copying *x = arg;
	const struct gpuq_val *data = gpuq_get(item, "data");

	if (cli_signals_seen())
		return GPUQ_ECANCELED;
	if (!data || data->type != GPUQ_BIN)
		return 0;
	if (gpuq_write_all(x->fd, data->s, data->n) < 0) {
		x->error = errno;
		return GPUQ_EIO;
	}
	x->bytes += data->n;
	return 0;
}

/* Takes it all, or says what went wrong. */
static int receive(struct cli *c, struct copying *x, const char *path, struct gpuq_err *err)
{
	struct gpuq_val *reply = NULL;
	int rc = gpuq_stream(c->conn, "backup.get", NULL, GPUQ_US_PER_S, on_item, x, &c->arena,
			     &reply, err);

	if (x->error)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(x->error));
	if (cli_signals_seen())
		return gpuq_fail(err, GPUQ_ECANCELED, "interrupted");
	if (rc == 0 && gpuq_get_int(reply, "bytes", -1) != x->bytes)
		rc = gpuq_fail(err, GPUQ_EPROTO, "%" PRId64 " bytes came, %" PRId64 " were sent",
			       x->bytes, gpuq_get_int(reply, "bytes", -1));
	return rc;
}

/* Under another name until it is whole, so that an older copy is replaced by a good one
 * only. */
static int to_file(struct cli *c, struct copying *x, const char *path, struct gpuq_err *err)
{
	char *part = gpuq_arena_printf(&c->arena, "%s.part-XXXXXX", path);
	int rc;

	x->fd = part ? mkstemp(part) : -1;
	if (x->fd < 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	rc = receive(c, x, path, err);
	if (rc == 0 && fsync(x->fd) != 0)
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	close(x->fd);
	if (rc == 0 && rename(part, path) != 0)
		rc = gpuq_fail(err, GPUQ_EIO, "%s: %s", path, strerror(errno));
	if (rc < 0)
		unlink(part);
	return rc;
}

static int tell(struct cli *c, const struct copying *x, const char *path)
{
	struct gpuq_buf size = GPUQ_BUF_INIT;

	if (opt_given(&c->args, OPT_JSON)) {
		struct gpuq_val *v = gpuq_map(&c->arena);

		gpuq_put(&c->arena, v, "file", gpuq_str(&c->arena, path));
		gpuq_put(&c->arena, v, "bytes", gpuq_int(&c->arena, x->bytes));
		return out_json(v) < 0 ? EXIT_REFUSED : EXIT_DONE;
	}
	line_bytes(&size, x->bytes);
	gpuq_buf_adds(&size, " to ");
	term_clean_str(&size, path);
	printf("Backed up %s\n", gpuq_buf_str(&size));
	gpuq_buf_done(&size);
	return EXIT_DONE;
}

/* Written by the server; what is sent is a line. */
static int there(struct cli *c, const char *path, struct copying *x, struct gpuq_err *err)
{
	struct gpuq_val *params = gpuq_map(&c->arena), *reply;
	int rc = cli_connect(c, err);

	gpuq_put(&c->arena, params, "path", gpuq_str(&c->arena, path));
	if (rc == 0)
		rc = cli_call(c, "backup.write", params, NULL, &reply, err);
	if (rc == 0)
		x->bytes = gpuq_get_int(reply, "bytes", 0);
	return rc;
}

static int copy_here(struct cli *c)
{
	const char *on_server = c->args.val[OPT_SERVER_PATH];
	const char *path = on_server ? on_server : c->args.n_rest ? c->args.rest[0] : NULL;
	struct copying x = { .fd = STDOUT_FILENO };
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc;

	if (!path || (on_server && c->args.n_rest))
		return cli_usage(c, "expected a file, or --server-path with a file on the server");
	if (on_server) {
		rc = there(c, path, &x, &err);
		return rc < 0 ? cli_fail(&err, false) : tell(c, &x, path);
	}
	if (strcmp(path, "-") == 0 && isatty(STDOUT_FILENO))
		return cli_usage(c, "-: refusing to write a database to a terminal");
	cli_signals_catch();
	rc = cli_connect(c, &err);
	if (rc == 0)
		rc = strcmp(path, "-") == 0 ? receive(c, &x, path, &err)
					    : to_file(c, &x, path, &err);
	if (rc < 0)
		return cli_fail(&err, false);
	if (strcmp(path, "-") == 0)
		return EXIT_DONE;
	return tell(c, &x, path);
}

/* ---- copies that gpuqd makes by itself ---- */

static void cell_time(struct gpuq_buf *out, const struct row *r)
{
	view_time(out, gpuq_get(r->obj, "time"));
}

static double rank_time(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "time"), 0);
}

static void cell_size(struct gpuq_buf *out, const struct row *r)
{
	const int64_t n = gpuq_get_int(r->obj, "bytes", -1);

	if (n < 0)
		gpuq_buf_addc(out, '-');
	else
		line_bytes(out, n);
}

static double rank_size(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "bytes"), 0);
}

static void cell_audited(struct gpuq_buf *out, const struct row *r)
{
	view_time(out, gpuq_get(r->obj, "audit_time"));
}

/* clang-format off */
static const struct column cols[] = {
	{ "NAME", 0, 0, "name", NULL, NULL, "name in the target" },
	{ "TIME", 0, 0, NULL, cell_time, rank_time, "time of the state in the copy" },
	{ "SIZE", 0, COL_RIGHT, NULL, cell_size, rank_size, "size" },
	{ "POSITION", 0, COL_RIGHT, "position", NULL, NULL, "epoch and number of its last batch" },
	{ "AUDITED", 0, 0, NULL, cell_audited, NULL, "time of its last audit" },
	{ "AUDIT", 0, COL_CUT, "audit", NULL, NULL, "result of the last audit" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};
/* clang-format on */

static const struct out_def copy_list = {
	.cols = cols,
	.usual = "NAME,TIME,SIZE,POSITION,AUDITED,AUDIT",
	.spare = "AUDITED,POSITION",
	.sort = NULL,
};

static int verify_one(struct cli *c, const char *name, bool *damaged, struct gpuq_err *err)
{
	struct gpuq_val *params = gpuq_map(&c->arena), *reply;
	struct gpuq_buf line = GPUQ_BUF_INIT;
	int rc;

	if (name)
		gpuq_put(&c->arena, params, "name", gpuq_str(&c->arena, name));
	rc = cli_call(c, "backup.verify", params, "", &reply, err);
	if (rc < 0)
		return rc;
	*damaged |= strncmp(gpuq_get_str(reply, "audit", ""), "whole", 5) != 0;
	if (opt_given(&c->args, OPT_JSON))
		return out_json(reply);
	gpuq_buf_printf(&line, "%s: ", gpuq_get_str(reply, "name", "?"));
	term_clean_str(&line, gpuq_get_str(reply, "audit", "?"));
	puts(gpuq_buf_str(&line));
	gpuq_buf_done(&line);
	return 0;
}

static int verify(struct cli *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool damaged = false;
	int rc = 0;

	if (c->args.n_rest == 1)
		rc = verify_one(c, NULL, &damaged, &err);
	for (int i = 1; rc >= 0 && i < c->args.n_rest; i++)
		rc = verify_one(c, c->args.rest[i], &damaged, &err);
	if (rc < 0)
		return cli_fail(&err, false);
	return damaged ? EXIT_REFUSED : EXIT_DONE;
}

int cmd_backup(struct cli *c)
{
	const char *verb = c->args.n_rest ? c->args.rest[0] : "";

	if (!opt_given(&c->args, OPT_SERVER_PATH) && strcmp(verb, "verify") == 0)
		return verify(c);
	if (c->args.n_rest > 1)
		return cli_usage(c, "unexpected argument %s", c->args.rest[1]);
	if (!opt_given(&c->args, OPT_SERVER_PATH) && strcmp(verb, "list") == 0)
		return list_run(c, "backup.list", &copy_list, NULL, NULL, NULL);
	return copy_here(c);
}
