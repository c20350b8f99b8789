#include "config.h"

#include "gpuq/cmd/job/stdio.h"

#include <unistd.h>

#include "gpuq/cmd/job/session.h"
#include "gpuq/tty.h"

#define TURN_S 1

bool stdio_options(struct cli *c, struct stdio *io, int *code)
{
	io->input = opt_given(&c->args, OPT_STDIN);
	io->tty = opt_given(&c->args, OPT_TTY);
	if (!io->tty || tty_there())
		return true;
	*code = cli_usage(c, "--tty: standard input is not a terminal; omit --tty");
	return false;
}

/* Set the job's terminal to the size of this one. A terminal without any output yet gets another
 * size first, so that its program redraws. */
static void tell_size(struct session *s, bool redraw)
{
	int cols, rows;

	if (!tty_size(&cols, &rows))
		return;
	if (redraw)
		session_resize(s, cols, rows + 1);
	session_resize(s, cols, rows);
}

static void on_open(struct session *s, const struct stdio *io)
{
	if (io->input && !s->takes_input)
		cli_say("the job has no open standard input: input is discarded");
	if (io->tty && !s->tty)
		cli_say("the job has no terminal: --tty has no effect");
	if (s->tty && io->tty) {
		s->clean = false;
		if (io->input && !tty_raw())
			cli_say("the terminal cannot be set to raw mode");
	}
}

static enum stdio_end ended(const struct session *s, struct stdio *io)
{
	io->exit_code = s->exit_code;
	io->err = s->err;
	if (s->lost)
		return STDIO_LOST;
	return s->code ? STDIO_FAILED : STDIO_ENDED;
}

static enum stdio_end pump(struct session *s, struct stdio *io)
{
	const struct timespec turn = { TURN_S, 0 };
	struct pollfd p[SESSION_POLLS];
	enum session_way way = SESSION_ON;
	bool sized = false;
	sigset_t during;

	tty_signals(&during);
	while (way == SESSION_ON) {
		session_polls(s, p);
		if (ppoll(p, SESSION_POLLS, &turn, &during) < 0)
			for (size_t i = 0; i < SESSION_POLLS; i++)
				p[i].revents = 0;
		way = session_turn(s, p);
		if (s->open && !io->opened) {
			io->opened = true;
			on_open(s, io);
		}
		if (s->tty && io->tty && s->d.credit > 1 && (tty_resized() || !sized)) {
			tell_size(s, !sized && s->in_fd >= 0);
			sized = true;
		}
		io->signo = way == SESSION_ON ? tty_signal_taken() : 0;
		if (io->signo)
			return STDIO_SIGNAL;
	}
	return way == SESSION_DETACHED ? STDIO_DETACHED : ended(s, io);
}

enum stdio_end stdio_run(struct cli *c, struct stdio *io)
{
	struct session s = { .in_fd = io->input ? STDIN_FILENO : -1,
			     .out_fd = STDOUT_FILENO,
			     .err_fd = STDERR_FILENO,
			     .keys = io->keys && io->input && io->tty,
			     .clean = isatty(STDOUT_FILENO) == 1 };
	enum stdio_end end = STDIO_FAILED;
	int cols, rows;

	gpuq_set(&c->arena, io->params, "input", gpuq_bool(&c->arena, io->input));
	if (io->tty && tty_size(&cols, &rows)) {
		gpuq_set(&c->arena, io->params, "cols", gpuq_int(&c->arena, cols));
		gpuq_set(&c->arena, io->params, "rows", gpuq_int(&c->arena, rows));
	}
	io->opened = io->heard = false;
	if (session_begin(&s, c, io->method, io->params, &io->err) == 0)
		end = pump(&s, io);
	io->heard = s.heard;
	tty_restore();
	tty_signals_done();
	session_done(&s);
	return end;
}
