#include "gpuq/cmd/job/session.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpuq/server.h"
#include "libgpuq/limits.h"

#define CTRL_P '\020'
#define CTRL_Q '\021'
#define WRITE_BYTES 4096 /* so much a pipe takes at once when it takes anything */

enum { SERVER, IN, OUT, ERRS };

int session_begin(struct session *s, struct cli *c, const char *method,
		  const struct gpuq_val *params, struct gpuq_err *err)
{
	struct server_places places;
	int rc = server_find(&c->arena, c->args.val[OPT_SERVER], &places, err);

	if (rc == 0)
		rc = server_connect(&c->arena, &places, -1, &s->conn, err);
	if (rc == 0)
		rc = gpuq_duplex_open(s->conn, method, params, &s->d, err);
	return rc;
}

void session_done(struct session *s)
{
	gpuq_duplex_close(&s->d);
	gpuq_close(s->conn);
	gpuq_buf_done(&s->out);
	gpuq_buf_done(&s->errs);
	gpuq_arena_done(&s->mem);
	s->conn = NULL;
}

/* ---- from the server ---- */

static void take_bytes(struct session *s, const struct gpuq_val *v, struct gpuq_buf *to,
		       struct term_log *log)
{
	if (s->clean)
		term_log_add(log, to, v->s, v->n);
	else
		gpuq_buf_add(to, v->s, v->n);
}

static bool is_bytes(const struct gpuq_val *v)
{
	return v && (v->type == GPUQ_BIN || v->type == GPUQ_STR);
}

static int on_item(void *arg, const struct gpuq_val *item)
{
	struct session *s = arg;
	const struct gpuq_val *out = gpuq_get(item, "out"), *errs = gpuq_get(item, "err");

	if (gpuq_get_bool(item, "open", false)) {
		s->open = true;
		s->tty = gpuq_get_bool(item, "tty", false);
		s->takes_input = gpuq_get_bool(item, "input", false);
	}
	s->heard |= is_bytes(out) || is_bytes(errs);
	if (is_bytes(out))
		take_bytes(s, out, &s->out, &s->out_log);
	if (is_bytes(errs))
		take_bytes(s, errs, &s->errs, &s->err_log);
	if (gpuq_get_bool(item, "eof", false))
		s->out_end = true;
	s->taken++;
	return 0;
}

static void hear(struct session *s)
{
	struct gpuq_val *reply = NULL;
	int rc = gpuq_duplex_turn(&s->d, on_item, s, &s->mem, &reply, &s->code, &s->err);

	if (rc == 0)
		return;
	s->ended = true;
	if (rc < 0) {
		s->lost = true;
		s->code = rc;
	} else if (s->code == 0) {
		s->exit_code = (int)gpuq_get_int(reply, "exit_code", 0);
	}
	if (s->clean) {
		term_log_end(&s->out_log, &s->out);
		term_log_end(&s->err_log, &s->errs);
	}
}

/* ---- to the server ---- */

static bool put(struct session *s, const char *key, const char *bytes, size_t n)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = gpuq_map(&mem);

	gpuq_put(&mem, v, key, bytes ? gpuq_bin(&mem, bytes, n) : gpuq_bool(&mem, true));
	if (gpuq_duplex_put(&s->d, v) < 0)
		s->ended = s->lost = true;
	gpuq_arena_done(&mem);
	return !s->lost;
}

/* Take the keys that leave a session out of what was typed. A ctrl-p is kept until the
 * next key tells what it was. */
static size_t look_for_keys(struct session *s, const char *bytes, size_t n, char *out)
{
	size_t m = 0;

	for (size_t i = 0; i < n && !s->detached; i++) {
		if (s->ctrl_p && bytes[i] == CTRL_Q) {
			s->detached = true;
			break;
		}
		if (s->ctrl_p)
			out[m++] = CTRL_P;
		s->ctrl_p = bytes[i] == CTRL_P;
		if (!s->ctrl_p)
			out[m++] = bytes[i];
	}
	return m;
}

static void read_input(struct session *s)
{
	char bytes[GPUQ_SESSION_PIECE_BYTES / 2], typed[2 * sizeof(bytes)];
	ssize_t n = read(s->in_fd, bytes, sizeof(bytes));
	size_t m;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		s->in_end = true;
		put(s, "eof", NULL, 0);
		return;
	}
	if (!s->keys) {
		put(s, "in", bytes, (size_t)n);
		return;
	}
	m = look_for_keys(s, bytes, (size_t)n, typed);
	if (m > 0)
		put(s, "in", typed, m);
}

void session_resize(struct session *s, int cols, int rows)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = gpuq_map(&mem), *size;

	if (s->ended || !s->open || s->d.credit == 0) {
		gpuq_arena_done(&mem);
		return;
	}
	size = gpuq_put(&mem, v, "size", gpuq_list(&mem));
	gpuq_add(&mem, size, gpuq_int(&mem, cols));
	gpuq_add(&mem, size, gpuq_int(&mem, rows));
	gpuq_duplex_put(&s->d, v);
	gpuq_arena_done(&mem);
}

/* ---- our own descriptors ---- */

/* false: the reader is gone. */
static bool write_some(struct session *s, int fd, struct gpuq_buf *b)
{
	const size_t most = s->socket || b->len < WRITE_BYTES ? b->len : WRITE_BYTES;
	const ssize_t n =
		s->socket ? send(fd, b->data, most, MSG_NOSIGNAL) : write(fd, b->data, most);

	if (n > 0)
		gpuq_buf_drop(b, (size_t)n);
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

void session_polls(const struct session *s, struct pollfd p[SESSION_POLLS])
{
	const bool reads = s->in_fd >= 0 && s->open && s->takes_input && !s->in_end && !s->ended &&
			   s->d.credit > 0;

	p[SERVER] = (struct pollfd){ .fd = s->ended ? -1 : gpuq_duplex_fd(&s->d),
				     .events = (short)(POLLIN |
						       (gpuq_duplex_unsent(&s->d) ? POLLOUT : 0)) };
	p[IN] = (struct pollfd){ .fd = reads ? s->in_fd : -1, .events = POLLIN };
	p[OUT] = (struct pollfd){ .fd = s->out.len ? s->out_fd : -1, .events = POLLOUT };
	p[ERRS] = (struct pollfd){ .fd = s->errs.len ? s->err_fd : -1, .events = POLLOUT };
}

static void end_lost(struct session *s, const char *why)
{
	s->ended = true;
	s->code = gpuq_fail(&s->err, GPUQ_EIO, "%s", why);
	gpuq_buf_clear(&s->out);
	gpuq_buf_clear(&s->errs);
}

enum session_way session_turn(struct session *s, const struct pollfd p[SESSION_POLLS])
{
	if (p[IN].revents)
		read_input(s);
	if (p[OUT].revents && !write_some(s, s->out_fd, &s->out))
		end_lost(s, "standard output could not be written");
	if (p[ERRS].revents && !write_some(s, s->err_fd, &s->errs))
		end_lost(s, "standard error could not be written");
	if (s->out.failed || s->errs.failed)
		end_lost(s, "out of memory");
	if (s->out.len == 0 && s->errs.len == 0) {
		gpuq_duplex_grant(&s->d, s->taken);
		s->taken = 0;
		if (s->socket && s->out_end) {
			shutdown(s->out_fd, SHUT_WR);
			s->out_end = false;
		}
	}
	if (!s->ended)
		hear(s);
	if (s->detached)
		return SESSION_DETACHED;
	return s->ended && s->out.len == 0 && s->errs.len == 0 ? SESSION_ENDED : SESSION_ON;
}
