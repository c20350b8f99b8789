/* A command that takes and gives copies: an object store's client, a tape, another host. */
#include "gpuqd/flow/copies/target_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuqd/net/command.h"

#define VAR_BYTES (NAMES_BYTES + 32)
#define LINES_BYTES_MAX (64u << 20)

struct call {
	const char *action, *name, *sha256;
	int in, out;
};

static int run(const struct target *t, const struct call *c, struct gpuq_err *err)
{
	const struct gpuq_strlist *words = &t->plan.command;
	char action[VAR_BYTES], name[VAR_BYTES], sha[VAR_BYTES], said[COMMAND_SAID_BYTES];
	const char *env[] = { action, name, c->sha256 ? sha : NULL, NULL };
	const char **argv = calloc(words->n + 1, sizeof(*argv));
	struct command cmd = { .argv = argv,
			       .env = env,
			       .in = c->in,
			       .out = c->out,
			       .limit_us = t->plan.timeout_us,
			       .stop = t->stop };
	int code = 0, rc;

	if (!argv)
		return gpuq_no_memory(err);
	memcpy(argv, words->items, words->n * sizeof(*argv));
	snprintf(action, sizeof(action), "GPUQ_BACKUP_ACTION=%s", c->action);
	snprintf(name, sizeof(name), "GPUQ_BACKUP_NAME=%s", c->name);
	snprintf(sha, sizeof(sha), "GPUQ_BACKUP_SHA256=%s", c->sha256 ? c->sha256 : "");
	rc = command_run(&cmd, &code, said, err);
	free(argv);
	if (rc == 0 && code != 0)
		rc = gpuq_fail(err, GPUQ_EIO, "%s %s %s: exit code %d%s%s", words->items[0],
			       c->action, c->name, code, *said ? ": " : "", said);
	return rc;
}

/* Keep the output in a file without a name. */
static int output(const struct target *t, const char *action, const char *name, int *fd,
		  struct gpuq_err *err)
{
	struct call c = { .action = action, .name = name, .in = -1 };
	int rc = c.out = target_scratch(t, err);

	if (rc >= 0)
		rc = run(t, &c, err);
	if (rc < 0 && c.out >= 0)
		close(c.out);
	else
		*fd = c.out;
	return rc;
}

/* "NAME" or "NAME BYTES" */
static int add_line(struct target_list *out, char *line, const char *prefix, struct gpuq_err *err)
{
	char *blank = line + strcspn(line, " \t\r"), *end = blank;
	int64_t bytes = -1;

	if (*blank) {
		*blank++ = '\0';
		errno = 0;
		bytes = strtoll(blank, &end, 10);
		if (end == blank || errno || bytes < 0)
			bytes = -1;
	}
	return strncmp(line, prefix, strlen(prefix)) == 0 ? target_list_add(out, line, bytes, err)
							  : 0;
}

static int command_list(struct target *t, const char *prefix, struct target_list *out,
			struct gpuq_err *err)
{
	struct gpuq_buf text = GPUQ_BUF_INIT_MAX(LINES_BYTES_MAX);
	char chunk[4096], *next, *line;
	int64_t at = 0;
	ssize_t n;
	int fd = -1, rc = output(t, "list", prefix, &fd, err);

	if (rc < 0)
		return rc;
	while ((n = pread(fd, chunk, sizeof(chunk), at)) > 0) {
		gpuq_buf_add(&text, chunk, (size_t)n);
		at += n;
	}
	close(fd);
	if (n < 0 || text.failed)
		rc = gpuq_fail(err, GPUQ_ETOOBIG, "%s list: more than %u bytes",
			       t->plan.command.items[0], LINES_BYTES_MAX);
	next = (char *)gpuq_buf_str(&text);
	while (rc == 0 && text.len && (line = strsep(&next, "\n")))
		rc = add_line(out, line, prefix, err);
	gpuq_buf_done(&text);
	return rc;
}

static int command_put(struct target *t, const char *name, int fd, const char *sha256, bool replace,
		       struct gpuq_err *err)
{
	const struct call c = { "put", name, sha256, fd, -1 };

	(void)replace;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return gpuq_fail(err, GPUQ_EIO, "%s: %s", name, strerror(errno));
	return run(t, &c, err);
}

static int command_open(struct target *t, const char *name, int *fd, struct gpuq_err *err)
{
	return output(t, "get", name, fd, err);
}

static int command_remove(struct target *t, const char *name, struct gpuq_err *err)
{
	const struct call c = { "delete", name, NULL, -1, -1 };

	return run(t, &c, err);
}

const struct target_ops target_command_ops = { command_list, NULL, command_put, command_open,
					       command_remove };
