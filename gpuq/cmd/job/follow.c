#include "gpuq/cmd/job/follow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpuq/job.h"
#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"

#define PAUSE_MIN_US (GPUQ_US_PER_S / 10)
#define PAUSE_MAX_US (2 * GPUQ_US_PER_S)
#define REPAINT_US (GPUQ_US_PER_S / 2)

static const char *state_word(const struct board_job *j)
{
	return j->state < 0 ? "?" : gpuq_job_state_word((enum gpuq_job_state)j->state);
}

static void describe(struct gpuq_buf *out, const struct board_job *j)
{
	gpuq_buf_printf(out, "job %" PRId64, j->id);
	if (j->index >= 0)
		gpuq_buf_printf(out, "_%" PRId64, j->index);
	gpuq_buf_printf(out, " %s", state_word(j));
	if (j->state == GPUQ_JOB_PENDING || !j->place[0]) {
		if (j->reason[0])
			gpuq_buf_printf(out, " (%s)", j->reason);
		if (j->queue[0] && !gpuq_job_state_ended((enum gpuq_job_state)j->state))
			gpuq_buf_printf(out, " in queue %s", j->queue);
	} else {
		gpuq_buf_printf(out, " on %s", j->place);
	}
}

/* "3 jobs: 1 PENDING, 2 RUNNING" */
static void describe_many(struct gpuq_buf *out, const struct board *b)
{
	size_t by_state[N_GPUQ_JOB_STATES] = { 0 };
	const char *sep = "";

	for (size_t i = 0; i < b->n; i++)
		if (b->items[i].state >= 0)
			by_state[b->items[i].state]++;
	gpuq_buf_printf(out, "%zu jobs: ", b->n);
	for (int s = 0; s < N_GPUQ_JOB_STATES; s++) {
		if (!by_state[s])
			continue;
		gpuq_buf_printf(out, "%s%zu %s", sep, by_state[s],
				gpuq_job_state_word((enum gpuq_job_state)s));
		sep = ", ";
	}
}

void follow_clear(struct follow *f)
{
	if (f->progress_shown)
		fputs("\r\033[K", stderr);
	f->progress_shown = false;
}

static void paint(struct follow *f, bool now)
{
	struct gpuq_buf text = GPUQ_BUF_INIT, clean = GPUQ_BUF_INIT;
	const int width = term_width(stderr);
	const int64_t at_us = cli_mono_us();
	const char *dumb = getenv("TERM");
	char clock[48];

	if (width == 0 || f->quiet || (dumb && strcmp(dumb, "dumb") == 0))
		return;
	if (!now && at_us - f->progress_at_us < REPAINT_US)
		return;
	f->progress_at_us = at_us;
	if (f->away_since_us)
		gpuq_buf_adds(&text, "the server does not answer; retrying");
	else if (f->board.n == 1)
		describe(&text, &f->board.items[0]);
	else if (f->board.n > 1)
		describe_many(&text, &f->board);
	gpuq_duration_clock(at_us - f->begun_us, clock, sizeof(clock));
	gpuq_buf_printf(&text, "  %s", clock);
	/* ASCII, so that a byte is a column and the line can be cut to the width. */
	term_clean(&clean, gpuq_buf_str(&text), text.len, false);
	fflush(stdout);
	fprintf(stderr, "\r\033[K%.*s", width - 1, gpuq_buf_str(&clean));
	f->progress_shown = true;
	gpuq_buf_done(&text);
	gpuq_buf_done(&clean);
}

int follow_tick(struct follow *f)
{
	const int64_t now_us = cli_mono_us();

	if (cli_signals_seen())
		return FOLLOW_SIGNAL;
	if (f->until_us && now_us >= f->until_us)
		return FOLLOW_TIMEOUT;
	if (f->start_by_us && now_us >= f->start_by_us &&
	    !board_started(&f->board, f->targets, f->n_targets))
		return FOLLOW_START_TIMEOUT;
	paint(f, false);
	return 0;
}

void follow_back(struct follow *f)
{
	f->away_since_us = 0;
	f->away_pause_us = 0;
}

bool follow_is_busy(int code, const struct gpuq_err *err)
{
	return code == GPUQ_EBUSY && err->retry_ms > 0;
}

int follow_retry(struct follow *f, int code)
{
	const int64_t now_us = cli_mono_us();
	int rc;

	if (cli_signals_seen()) {
		cli_disconnect(f->c);
		return FOLLOW_SIGNAL;
	}
	if (!f->c->busy && ((!cli_broken(code) && !gpuq_err_retryable(code)) || !f->met))
		return 0;
	cli_disconnect(f->c);
	/* It is there, and takes this call once others of this user have ended: that may last. */
	if (!f->away_since_us || f->c->busy)
		f->away_since_us = now_us;
	if (now_us - f->away_since_us >= FOLLOW_AWAY_US)
		return 0;
	if (f->verbose && !f->away_pause_us)
		cli_say(f->c->busy ? "the server is busy with other calls of this user; retrying"
				   : "the server does not answer; retrying");
	f->away_pause_us = f->away_pause_us ? f->away_pause_us * 2 : PAUSE_MIN_US;
	if (f->away_pause_us > PAUSE_MAX_US)
		f->away_pause_us = PAUSE_MAX_US;
	paint(f, true);
	for (int64_t end_us = now_us + f->away_pause_us; cli_mono_us() < end_us;) {
		const struct timespec t = { 0, PAUSE_MIN_US / 2 * 1000 };

		nanosleep(&t, NULL);
		rc = follow_tick(f);
		if (rc)
			return rc;
	}
	return 1;
}

struct watcher {
	struct follow *f;
	bool until_start;
};

static int take(struct follow *f, const struct gpuq_val *job)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct board_job *j;
	bool changed;

	j = board_update(&f->board, job, &changed);
	if (!j)
		return GPUQ_ENOMEM;
	if (!changed)
		return 0;
	if (f->verbose) {
		follow_clear(f);
		describe(&text, j);
		cli_say("%s", gpuq_buf_str(&text));
		gpuq_buf_done(&text);
	}
	paint(f, true);
	return f->attempt >= 0 && j->attempt > f->attempt ? FOLLOW_AGAIN : 0;
}

static int on_item(void *arg, const struct gpuq_val *item)
{
	struct watcher *w = arg;
	int rc = 0;

	follow_back(w->f);
	if (item)
		rc = take(w->f, item);
	return rc ? rc : follow_tick(w->f);
}

static int take_one(void *arg, const struct gpuq_val *job)
{
	return board_update(arg, job, NULL) ? 0 : GPUQ_ENOMEM;
}

int follow_refresh(struct follow *f, struct gpuq_err *err)
{
	struct board fresh = { NULL, 0, 0 };
	int rc = 0;

	for (size_t i = 0; i < f->n_targets && rc == 0; i++)
		rc = job_for_each(f->c, f->targets[i].id, f->targets[i].index, take_one, &fresh,
				  err);
	if (rc < 0) {
		board_done(&fresh);
		return rc;
	}
	follow_back(f);
	board_done(&f->board);
	f->board = fresh;
	return 0;
}

/* The reply's list is complete, so it takes the place of what was seen on the way:
 * an array's waiting line, for one, is gone by then. */
static void take_all(struct follow *f, const struct gpuq_val *reply)
{
	const struct gpuq_val *jobs = gpuq_get(reply, "jobs");
	struct gpuq_err err;
	bool arrays = false;

	if (!jobs || jobs->type != GPUQ_LIST || jobs->n == 0)
		return;
	board_clear(&f->board);
	for (size_t i = 0; i < jobs->n; i++) {
		const struct gpuq_val *job = jobs->items[i], *array = gpuq_get(job, "array");

		board_update(&f->board, job, NULL);
		arrays |= array && array->type == GPUQ_MAP;
	}
	/* An array as a whole hides its elements. */
	if (arrays)
		follow_refresh(f, &err);
}

static struct gpuq_val *wait_params(struct gpuq_arena *a, const struct follow *f, bool until_start)
{
	struct gpuq_val *params = gpuq_map(a), *ids = gpuq_list(a);

	for (size_t i = 0; i < f->n_targets; i++) {
		char text[48];

		job_name(f->targets[i].id, f->targets[i].index, text, sizeof(text));
		gpuq_add(a, ids, gpuq_str(a, text));
	}
	gpuq_put(a, params, "ids", ids);
	gpuq_put(a, params, "until", gpuq_str(a, until_start ? "start" : "end"));
	return params;
}

enum follow_end follow_wait(struct follow *f, bool until_start, struct gpuq_err *err)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct watcher w = { f, until_start };
	const struct gpuq_val *params = wait_params(&a, f, until_start);
	struct gpuq_val *reply = NULL;
	int rc, again;

	for (;;) {
		rc = cli_connect(f->c, err);
		f->met |= rc == 0;
		if (rc == 0)
			rc = gpuq_stream(f->c->conn, "job.wait", params, FOLLOW_TICK_US, on_item,
					 &w, &a, &reply, err);
		f->c->busy |= follow_is_busy(rc, err);
		if (rc == 0) {
			take_all(f, reply);
			if (until_start ? board_started(&f->board, f->targets, f->n_targets)
					: board_ended(&f->board, f->targets, f->n_targets)) {
				rc = FOLLOW_MET;
				break;
			}
			/* The stream ended early; what the server says now decides. */
			rc = follow_refresh(f, err);
			if (rc == 0 &&
			    (until_start ? board_started(&f->board, f->targets, f->n_targets)
					 : board_ended(&f->board, f->targets, f->n_targets))) {
				rc = FOLLOW_MET;
				break;
			}
			if (rc == 0)
				rc = gpuq_fail(
					err, GPUQ_EBUSY,
					"the server stopped reporting the job before it had %s",
					until_start ? "started" : "ended");
		}
		if (rc > 0)
			break;
		again = follow_retry(f, rc);
		if (again == 1)
			continue;
		rc = again > 1 ? again : FOLLOW_FAILED;
		break;
	}
	gpuq_arena_done(&a);
	follow_clear(f);
	return (enum follow_end)rc;
}

void follow_done(struct follow *f)
{
	follow_clear(f);
	board_done(&f->board);
}
