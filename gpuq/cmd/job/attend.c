#include "gpuq/cmd/job/attend.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuq/cmd/job/follow.h"
#include "gpuq/job.h"
#include "gpuq/cmd/job/logs.h"
#include "gpuq/out.h"
#include "gpuq/cmd/job/stdio.h"
#include "libgpuq/names.h"
#include "libgpuq/units.h"

#define ASK_AGAIN_US (2 * GPUQ_US_PER_S) /* a second ^C within this cancels */
#define ATTACH_TRIES 10
#define ATTACH_MS 300 /* between them */
#define CANCEL_WAIT_US (60 * GPUQ_US_PER_S)

/* Where one attendance stands. */
struct stay {
	struct cli *c;
	const struct attend *t;
	struct follow f;
	struct logs logs;
	bool output; /* still to be printed */
	bool told_start; /* started within its time, or there was no limit */
	bool never; /* cancelled because it never started */
	bool cancelling;
	bool terminal; /* our terminal is still to become the job's */
	unsigned tries; /* to attach */
	bool seen; /* it was, and what it wrote first has been shown */
	bool detached;
	pid_t feeder; /* it passes standard input on; 0 = none does */
	int64_t asked_at_us;
};

bool attend_options(struct cli *c, struct attend *t, int *code)
{
	static const struct {
		enum opt_id id;
		const char *name;
		size_t offset;
	} rows[] = {
		{ OPT_TIMEOUT, "timeout", offsetof(struct attend, timeout_us) },
		{ OPT_START_TIMEOUT, "start-timeout", offsetof(struct attend, start_timeout_us) },
	};
	struct gpuq_err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *text = c->args.val[rows[i].id];
		int64_t us;

		if (!text)
			continue;
		if (gpuq_duration_parse(text, &us, &err) < 0) {
			*code = cli_usage(c, "--%s %s: expected a duration such as 90s or 2h",
					  rows[i].name, text);
			return false;
		}
		/* 0 would mean none: at once is after the shortest time there is. */
		us = us == GPUQ_UNLIMITED ? 0 : us ? us : 1;
		memcpy((char *)t + rows[i].offset, &us, sizeof(us));
	}
	return true;
}

/* Cancel all targets; only_waiting leaves alone what has started meanwhile.
 * Returns how many there were, or an error code. */
static int64_t cancel(struct stay *s, bool only_waiting, struct gpuq_err *err)
{
	struct gpuq_arena *a = &s->c->arena;
	struct gpuq_val *params = gpuq_map(a), *ids = gpuq_list(a), *states = gpuq_list(a), *reply;
	char text[48];
	int rc;

	for (size_t i = 0; i < s->t->n_targets; i++) {
		job_name(s->t->targets[i].id, s->t->targets[i].index, text, sizeof(text));
		gpuq_add(a, ids, gpuq_str(a, text));
	}
	gpuq_put(a, params, "ids", ids);
	if (only_waiting) {
		for (int st = GPUQ_JOB_PENDING; st <= GPUQ_JOB_STARTING; st++)
			gpuq_add(a, states,
				 gpuq_str(a, gpuq_job_state_word((enum gpuq_job_state)st)));
		gpuq_put(a, params, "states", states);
	}
	rc = cli_call(s->c, "job.cancel", params, NULL, &reply, err);
	return rc < 0 ? rc : gpuq_get_int(reply, "matched", 0);
}

static bool has_array(const struct board *b)
{
	return b->n > 1 || (b->n == 1 && b->items[0].index >= 0);
}

static struct gpuq_val *attach_params(const struct stay *s)
{
	struct gpuq_arena *a = &s->c->arena;
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "id", gpuq_int(a, s->t->targets[0].id));
	return v;
}

/* Our terminal is the job's: what it writes is seen there, and read there. */
static enum follow_end be_terminal(struct stay *s, struct gpuq_err *err)
{
	struct stdio *io = s->t->io;
	struct gpuq_arena *a = &s->c->arena;
	enum stdio_end end;

	io->params = attach_params(s);
	gpuq_put(a, io->params, "replay", gpuq_bool(a, !s->seen));
	end = stdio_run(s->c, io);
	cli_signals_catch();
	s->seen |= io->heard;
	s->terminal = false;
	switch (end) {
	case STDIO_DETACHED:
		s->detached = true;
		return FOLLOW_SIGNAL;
	case STDIO_SIGNAL:
		raise(io->signo); /* what it means is in one place */
		return FOLLOW_SIGNAL;
	case STDIO_LOST:
		/* The server may come back; the job has not noticed that it was away. */
		s->terminal = true;
		break;
	case STDIO_FAILED:
		/* A job that has only just started may not be ready for an attach. */
		if (!io->opened && s->tries++ < ATTACH_TRIES && follow_refresh(&s->f, err) == 0 &&
		    !board_ended(&s->f.board, s->t->targets, s->t->n_targets)) {
			s->terminal = true;
			poll(NULL, 0, ATTACH_MS);
			break;
		}
		/* It ended before we came: its words are in its log. */
		s->output = !s->seen;
		s->terminal = io->err.code == GPUQ_EGONE && io->opened;
		if (!s->output && !s->terminal)
			cli_say("%s", io->err.text);
		break;
	case STDIO_ENDED:
		/* A job that ended at once may have output that was not shown yet. */
		s->output = !s->seen;
		break;
	}
	return s->terminal ? follow_wait(&s->f, true, err) : FOLLOW_MET;
}

/* Without a terminal the job's output comes from its log, where none of it is lost,
 * whenever we came; a process of its own passes our input on meanwhile. */
static void feed(struct stay *s)
{
	struct stdio *io = s->t->io;
	struct gpuq_arena *a = &s->c->arena;
	enum stdio_end end;

	fflush(NULL);
	s->feeder = cli_fork(SIG_IGN);
	if (s->feeder != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	io->params = attach_params(s);
	gpuq_put(a, io->params, "output", gpuq_bool(a, false));
	end = stdio_run(s->c, io);
	if (end == STDIO_LOST || (end == STDIO_FAILED && !io->opened && io->err.code != GPUQ_EGONE))
		cli_say("standard input is not passed on: %s", io->err.text);
	_exit(0);
}

static void stop_feeding(struct stay *s)
{
	if (s->feeder <= 0)
		return;
	kill(s->feeder, SIGTERM);
	waitpid(s->feeder, NULL, 0);
	s->feeder = 0;
}

/* Wait for the next event. */
static enum follow_end next(struct stay *s, struct gpuq_err *err)
{
	const struct attend *t = s->t;
	enum follow_end e;

	/* An element of an array cannot be told from here; its output is in gpuq logs. */
	if (s->output && has_array(&s->f.board) && t->targets[0].index < 0)
		s->output = false;
	if ((s->output || s->terminal || s->t->io || !s->told_start) && !s->cancelling) {
		e = follow_wait(&s->f, true, err);
		if (e != FOLLOW_MET)
			return e;
		s->told_start = true;
		s->f.start_by_us = 0;
	}
	if (s->output && has_array(&s->f.board) && t->targets[0].index < 0)
		s->output = false;
	if (s->terminal && s->f.board.n == 1 && s->f.board.items[0].started && !s->cancelling) {
		s->f.attempt = s->f.board.items[0].attempt;
		e = be_terminal(s, err);
		if (e != FOLLOW_MET || s->terminal)
			return e == FOLLOW_MET ? FOLLOW_AGAIN : e;
	}
	if (!s->output)
		return follow_wait(&s->f, false, err);
	if (s->t->io && !s->t->io->tty && !s->feeder && !s->cancelling)
		feed(s);
	if (s->f.board.n == 1 && s->f.board.items[0].started) {
		s->f.attempt = s->f.board.items[0].attempt;
		e = logs_print(&s->logs, &s->f, err);
		if (e == FOLLOW_FAILED && cli_exit_code(err, true) != EXIT_SERVER) {
			/* Without its output a job can still be waited for. */
			cli_say("no output: %s", err->text);
			e = FOLLOW_MET;
			s->output = false;
		}
		if (e != FOLLOW_MET)
			return e;
	}
	return follow_wait(&s->f, false, err);
}

/* A signal came: 0 = go on, else the exit code. */
static int on_signal(struct stay *s)
{
	const int signo = cli_signals_take();
	const int64_t now_us = cli_mono_us();
	struct gpuq_err err = GPUQ_ERR_INIT;
	char text[48];

	cli_disconnect(s->c); /* what was under way on it was given up with it */
	job_name(s->t->targets[0].id, s->t->targets[0].index, text, sizeof(text));
	follow_clear(&s->f);
	if (s->detached) {
		cli_say("detached; job %s keeps running: gpuq attach -it %s connects again", text,
			text);
		return EXIT_LIVES_ON;
	}
	if (!s->t->ours) {
		cli_say("stopped waiting; job %s keeps running: gpuq wait %s waits again, gpuq "
			"cancel %s "
			"ends it",
			text, text, text);
		return EXIT_LIVES_ON;
	}
	if (s->cancelling) {
		cli_say("stopped waiting; job %s has been asked to end", text);
		return EXIT_CANCELLED;
	}
	/* A hand at a terminal may slip; a signal from a program means it. */
	if (signo == SIGINT && isatty(STDERR_FILENO) &&
	    (!s->asked_at_us || now_us - s->asked_at_us > ASK_AGAIN_US)) {
		s->asked_at_us = now_us;
		cli_say("press ^C again within 2 seconds to cancel job %s", text);
		return 0;
	}
	cli_say("cancelling job %s", text);
	if (cancel(s, false, &err) < 0)
		return cli_fail(&err, true);
	s->cancelling = true;
	return 0;
}

/* Nothing started in time. 0 = go on waiting, else the exit code. */
static int on_never_started(struct stay *s)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	char text[48];
	int64_t n;

	job_name(s->t->targets[0].id, s->t->targets[0].index, text, sizeof(text));
	s->f.start_by_us = 0;
	s->told_start = true;
	/* For an array the stream reports only its pending part. */
	if (follow_refresh(&s->f, &err) == 0 &&
	    board_started(&s->f.board, s->t->targets, s->t->n_targets))
		return 0;
	if (s->t->keep) {
		cli_say("job %s did not start in time; it stays pending", text);
		return EXIT_NEVER_STARTED;
	}
	n = cancel(s, true, &err);
	if (n < 0)
		return cli_fail(&err, true);
	if (n == 0)
		return 0; /* it started, or ended, at the last moment */
	cli_say("job %s did not start in time: cancelled", text);
	s->never = s->cancelling = true;
	s->output = false;
	s->f.until_us = cli_mono_us() + CANCEL_WAIT_US;
	return 0;
}

/* Result lines: the one that decided the exit code last. code < 0: the jobs decide;
 * else it is the exit code and the lines tell where the jobs stand. */
static int report(struct stay *s, int code)
{
	struct result r, worst;
	size_t at = 0;

	result_of(&s->f.board, &s->t->targets[0], &worst);
	for (size_t i = 1; i < s->t->n_targets; i++) {
		result_of(&s->f.board, &s->t->targets[i], &r);
		if (r.code > worst.code) {
			worst = r;
			at = i;
		}
	}
	for (size_t i = 0; i < s->t->n_targets; i++) {
		if (i == at)
			continue;
		result_of(&s->f.board, &s->t->targets[i], &r);
		if (!s->t->quiet)
			result_print(&r);
	}
	if (!s->t->quiet)
		result_print(&worst);
	return code < 0 ? worst.code : code;
}

static int print_one(void *arg, const struct gpuq_val *job)
{
	(void)arg;
	return out_json(job);
}

static int ignore(void *arg, const struct gpuq_val *job)
{
	(void)arg, (void)job;
	return 0;
}

static void print_json(struct stay *s)
{
	struct gpuq_err err;

	for (size_t i = 0; i < s->t->n_targets; i++)
		if (job_for_each(s->c, s->t->targets[i].id, s->t->targets[i].index, print_one, NULL,
				 &err) < 0)
			cli_say("%s", err.text);
}

/* Return the target that was not found, of several. */
static const struct target *missing(struct stay *s)
{
	struct gpuq_err err;

	for (size_t i = 0; i < s->t->n_targets; i++)
		if (job_for_each(s->c, s->t->targets[i].id, s->t->targets[i].index, ignore, NULL,
				 &err) == GPUQ_ENOENT)
			return &s->t->targets[i];
	return &s->t->targets[0];
}

int attend(struct cli *c, const struct attend *t)
{
	struct stay s = {
		.c = c,
		.t = t,
		.f = { .c = c,
		       .targets = t->targets,
		       .n_targets = t->n_targets,
		       .begun_us = cli_mono_us(),
		       .attempt = -1,
		       .verbose = opt_given(&c->args, OPT_VERBOSE) },
		.logs = { .pod = -1,
			  .tail_lines = -1,
			  .attempt = -1,
			  .follow = true,
			  .prefix = t->prefix },
		.output = t->output && !(t->io && t->io->tty),
		.terminal = t->io && t->io->tty,
		.told_start = !t->start_timeout_us,
	};
	struct gpuq_err err = GPUQ_ERR_INIT;
	int code = 0;

	if (t->timeout_us)
		s.f.until_us = s.f.begun_us + t->timeout_us;
	if (t->start_timeout_us)
		s.f.start_by_us = s.f.begun_us + t->start_timeout_us;
	cli_signals_catch();
	while (code == 0) {
		switch (next(&s, &err)) {
		case FOLLOW_MET:
			code = s.never ? EXIT_NEVER_STARTED : -1;
			break;
		case FOLLOW_AGAIN:
			/* Evicted and queued again: its output goes on with the next start. */
			s.f.attempt = -1;
			s.terminal = t->io && t->io->tty;
			stop_feeding(&s);
			break;
		case FOLLOW_TIMEOUT:
			code = s.never ? EXIT_NEVER_STARTED : EXIT_LIVES_ON;
			break;
		case FOLLOW_START_TIMEOUT:
			code = on_never_started(&s);
			break;
		case FOLLOW_SIGNAL:
			code = on_signal(&s);
			break;
		case FOLLOW_FAILED:
			code = cli_fail(&err, true);
			/* A wait has no other way to refuse than these. */
			if (code != EXIT_NO_JOB)
				code = EXIT_SERVER;
			break;
		}
	}
	stop_feeding(&s);
	follow_clear(&s.f);
	if (t->json && code != EXIT_SERVER && code != EXIT_NO_JOB)
		print_json(&s);
	if (t->quiet && (code == EXIT_NO_JOB || code == EXIT_SERVER))
		;
	else if (code == EXIT_NO_JOB || (code == EXIT_SERVER && s.f.board.n == 0))
		result_none(code == EXIT_NO_JOB && t->n_targets > 1 ? missing(&s) : &t->targets[0],
			    gpuq_err_name(err.code), code);
	else
		code = report(&s, code);
	logs_done(&s.logs);
	follow_done(&s.f);
	return code;
}
