/* follow.h - wait for jobs, through restarts of the server
 *
 * Owns     the board of their states, the progress line, the deadlines.
 * Touches  the server, standard error.
 * Used by  attend.c, logs.c (ticks), slurm_salloc.c.
 *
 * A stream that breaks is opened anew; a server that stays away for FOLLOW_AWAY_US
 * is given up. Signals and deadlines are looked at several times a second.
 */
#ifndef GPUQ_CMD_JOB_FOLLOW_H
#define GPUQ_CMD_JOB_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "gpuq/cli.h"
#include "gpuq/cmd/job/result.h"
#include "libgpuq/units.h"

#define FOLLOW_AWAY_US (60 * GPUQ_US_PER_S)
#define FOLLOW_TICK_US (GPUQ_US_PER_S / 5)

/* Why waiting ended; positive, since gpuq_stream hands them through. */
enum follow_end {
	FOLLOW_MET = 1, /* what was waited for is so */
	FOLLOW_AGAIN, /* a new attempt has begun */
	FOLLOW_TIMEOUT, /* until_us has come */
	FOLLOW_START_TIMEOUT, /* start_by_us has come and nothing has started */
	FOLLOW_SIGNAL, /* see cli_signals_take */
	FOLLOW_FAILED, /* err says why */
};

struct follow {
	struct cli *c;
	const struct target *targets;
	size_t n_targets;
	struct board board;
	int64_t until_us, start_by_us; /* cli_mono_us, 0 = none */
	int64_t begun_us; /* of the waiting, for the progress line */
	int64_t away_since_us; /* the server does not answer; 0 = it does */
	int64_t away_pause_us;
	bool met; /* the server has answered once: it exists */
	int64_t attempt; /* of the single target; -1 = a change does not matter */
	bool verbose, quiet; /* a line per change; no progress (output is running) */
	bool progress_shown;
	int64_t progress_at_us;
};

/* Wait until every target has started (or ended), or has ended. */
enum follow_end follow_wait(struct follow *f, bool until_start, struct gpuq_err *err);

/* Read the targets' present state. Returns 0 or an error code. */
int follow_refresh(struct follow *f, struct gpuq_err *err);

/* Deadlines and signals: 0 or why to stop. Also keeps the progress line up to date. */
int follow_tick(struct follow *f);

/* A call or stream failed with code (a server that never answered is not waited for): 1 = try again (the connection is new, or the
 * pause is over), 0 = give up, else as follow_tick. */
int follow_retry(struct follow *f, int code);
/* True if the server takes the call later, when other calls of this user have ended. */
bool follow_is_busy(int code, const struct gpuq_err *err);

/* The server has answered. */
void follow_back(struct follow *f);

/* Take the progress line off the screen. */
void follow_clear(struct follow *f);

void follow_done(struct follow *f);

#endif
