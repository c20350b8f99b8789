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
#include "gpuq/out.h"
#include "gpuq/term.h"
#include "libgpuq/units.h"

struct copying {
	int fd;
	int64_t bytes;
	int error; /* errno of a write */
};

static int write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		const ssize_t k = write(fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return -1;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

static int on_item(void *arg, const struct gpuq_val *item)
{
	struct copying *x = arg;
	const struct gpuq_val *data = gpuq_get(item, "data");

	if (cli_signals_seen())
		return GPUQ_ECANCELED;
	if (!data || data->type != GPUQ_BIN)
		return 0;
	if (write_all(x->fd, data->s, data->n) < 0) {
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

int cmd_backup(struct cli *c)
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
