#include "gpuq/cmd/job/logs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpuq/view.h"

/* A line that is longer is printed in pieces. */
#define LINE_BYTES_MAX (64u << 10)

struct reader {
	struct logs *l;
	struct follow *f;
};

static struct log_pod *find(struct logs *l, const char *name)
{
	struct gpuq_buf clean = GPUQ_BUF_INIT;
	struct log_pod *more;

	for (size_t i = 0; i < l->n_pods; i++)
		if (strcmp(l->pods[i].name, name) == 0)
			return &l->pods[i];
	more = realloc(l->pods, (l->n_pods + 1) * sizeof(*more));
	if (!more)
		return NULL;
	l->pods = more;
	more += l->n_pods++;
	memset(more, 0, sizeof(*more));
	snprintf(more->name, sizeof(more->name), "%s", name);
	/* It stands before each line of output, whatever that may do. */
	term_clean_str(&clean, more->name);
	snprintf(more->label, sizeof(more->label), "%s", gpuq_buf_str(&clean));
	gpuq_buf_done(&clean);
	return more;
}

static int put(const char *bytes, size_t n)
{
	return fwrite(bytes, 1, n, stdout) == n ? 0 : GPUQ_EIO;
}

static int put_lines(struct log_pod *p, const char *bytes, size_t n)
{
	int rc = 0;

	while (n > 0 && rc == 0) {
		const char *nl = memchr(bytes, '\n', n);
		const size_t part = nl ? (size_t)(nl - bytes) + 1 : n;

		if (gpuq_buf_add(&p->line, bytes, part) < 0)
			return GPUQ_ENOMEM;
		if (nl || p->line.len > LINE_BYTES_MAX) {
			if (printf("[%s] ", p->label) < 0)
				rc = GPUQ_EIO;
			if (rc == 0)
				rc = put(p->line.data, p->line.len);
			if (!nl && rc == 0)
				rc = put("\n", 1);
			gpuq_buf_clear(&p->line);
		}
		bytes += part;
		n -= part;
	}
	return rc;
}

static int show(const struct logs *l, struct log_pod *p, const char *bytes, size_t n, bool last)
{
	struct gpuq_buf clean = GPUQ_BUF_INIT;
	int rc;

	if (!l->raw && isatty(STDOUT_FILENO)) {
		term_log_add(&p->clean, &clean, bytes, n);
		if (last)
			term_log_end(&p->clean, &clean);
		bytes = clean.data;
		n = clean.len;
	}
	if (n == 0)
		rc = 0;
	else
		rc = l->prefix ? put_lines(p, bytes, n) : put(bytes, n);
	gpuq_buf_done(&clean);
	return rc;
}

/* Print an unfinished line: half a character, or a line without end. */
static void end_line(struct logs *l, struct log_pod *p)
{
	show(l, p, "", 0, true);
	if (p->line.len > 0)
		put_lines(p, "\n", 1);
}

static int on_item(void *arg, const struct gpuq_val *item)
{
	struct reader *r = arg;
	struct gpuq_buf name = GPUQ_BUF_INIT;
	const struct gpuq_val *bytes;
	struct log_pod *p;
	int64_t offset;
	size_t skip = 0;
	int rc = 0;

	follow_back(r->f);
	if (!item)
		return follow_tick(r->f);
	bytes = gpuq_get(item, "bytes");
	if (!bytes || (bytes->type != GPUQ_BIN && bytes->type != GPUQ_STR))
		return follow_tick(r->f);
	view_cell(&name, gpuq_get(item, "pod"));
	p = find(r->l, gpuq_buf_str(&name));
	gpuq_buf_done(&name);
	if (!p)
		return GPUQ_ENOMEM;
	/* Evicted and started again: the new attempt's output begins at 0. */
	if (gpuq_get_int(item, "attempt", p->attempt) != p->attempt) {
		end_line(r->l, p);
		p->attempt = gpuq_get_int(item, "attempt", 0);
		p->offset_bytes = 0;
	}
	offset = gpuq_get_int(item, "offset", p->offset_bytes);
	/* After a break the server may begin earlier than where we were. */
	if (offset < p->offset_bytes)
		skip = p->offset_bytes - offset < bytes->n ? (size_t)(p->offset_bytes - offset)
							   : bytes->n;
	if (skip < bytes->n) {
		rc = show(r->l, p, bytes->s + skip, bytes->n - skip, false);
		p->offset_bytes = offset + bytes->n;
	}
	if (rc == 0 && fflush(stdout) != 0)
		rc = GPUQ_EIO;
	return rc < 0 ? rc : follow_tick(r->f);
}

static struct gpuq_val *params(struct gpuq_arena *a, const struct logs *l, const struct target *t)
{
	struct gpuq_val *map = gpuq_map(a), *offsets = gpuq_map(a);

	gpuq_put(a, map, "id", gpuq_int(a, t->id));
	if (t->index >= 0)
		gpuq_put(a, map, "index", gpuq_int(a, t->index));
	if (l->pod >= 0)
		gpuq_put(a, map, "pod", gpuq_int(a, l->pod));
	gpuq_put(a, map, "follow", gpuq_bool(a, l->follow));
	if (l->attempt >= 0)
		gpuq_put(a, map, "attempt", gpuq_int(a, l->attempt));
	if (l->since_us > 0)
		gpuq_put(a, map, "since_us", gpuq_int(a, l->since_us));
	if (l->timestamps)
		gpuq_put(a, map, "timestamps", gpuq_bool(a, true));
	/* Offsets are of that attempt, or of the present one. */
	for (size_t i = 0; i < l->n_pods; i++)
		gpuq_put(a, offsets, l->pods[i].name, gpuq_int(a, l->pods[i].offset_bytes));
	/* After the first output its position is more exact than a count of lines. */
	if (l->n_pods > 0)
		gpuq_put(a, map, "offsets", offsets);
	else if (l->tail_lines >= 0)
		gpuq_put(a, map, "tail_lines", gpuq_int(a, l->tail_lines));
	return map;
}

static void finish(struct logs *l)
{
	for (size_t i = 0; i < l->n_pods; i++)
		end_line(l, &l->pods[i]);
	fflush(stdout);
}

/* A new attempt may have begun while the server was away: what was printed was the
 * old one's, and offsets in it mean nothing any more. */
static void catch_up(struct logs *l, struct follow *f)
{
	struct gpuq_err err;

	if (l->attempt >= 0 || follow_refresh(f, &err) < 0 || f->board.n != 1)
		return;
	for (size_t i = 0; i < l->n_pods; i++) {
		if (l->pods[i].attempt == f->board.items[0].attempt)
			continue;
		end_line(l, &l->pods[i]);
		l->pods[i].attempt = f->board.items[0].attempt;
		l->pods[i].offset_bytes = 0;
	}
}

enum follow_end logs_print(struct logs *l, struct follow *f, struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct reader r = { l, f };
	struct gpuq_val *reply;
	int rc, again;

	follow_clear(f);
	f->quiet = true;
	for (;;) {
		rc = cli_connect(f->c, err);
		f->met |= rc == 0;
		if (rc == 0)
			rc = gpuq_stream(f->c->conn, "job.logs", params(&a, l, f->targets),
					 FOLLOW_TICK_US, on_item, &r, &a, &reply, err);
		f->c->busy |= follow_is_busy(rc, err);
		if (rc == 0)
			rc = FOLLOW_MET;
		if (rc > 0)
			break;
		if (ferror(stdout)) {
			gpuq_fail(err, GPUQ_EINTERNAL, "standard output: %s", strerror(errno));
			rc = FOLLOW_FAILED;
			break;
		}
		/* Not a server that is gone, but output. */
		again = rc == GPUQ_EGONE ? 0 : follow_retry(f, rc);
		if (again == 1) {
			catch_up(l, f);
			continue;
		}
		rc = again > 1 ? again : FOLLOW_FAILED;
		break;
	}
	if (rc == FOLLOW_MET || rc == FOLLOW_FAILED)
		finish(l);
	f->quiet = false;
	gpuq_arena_done(&a);
	return (enum follow_end)rc;
}

void logs_done(struct logs *l)
{
	for (size_t i = 0; i < l->n_pods; i++)
		gpuq_buf_done(&l->pods[i].line);
	free(l->pods);
	l->pods = NULL;
	l->n_pods = 0;
}
