/* follow.h - wait for jobs, through restarts of the server
 *
 * Owns     the board of their states, the progress line, the deadlines.
 * Touches  the server, standard error.
 * Used by  attend.c, logs.c (ticks), slurm_salloc.c.
 *
 * A broken stream is reopened; after FOLLOW_AWAY_US without a server, waiting fails.
 * Signals and deadlines are checked several times a second.
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

/* Why waiting ended; positive, since gpuq_stream returns them unchanged. */
enum follow_end {
	FOLLOW_MET = 1, /* the condition holds */
	FOLLOW_AGAIN, /* a new attempt has begun */
	FOLLOW_TIMEOUT, /* until_us has passed */
	FOLLOW_START_TIMEOUT, /* start_by_us has passed and nothing has started */
	FOLLOW_SIGNAL, /* see cli_signals_take */
	FOLLOW_FAILED, /* err says why */
};

struct follow {
	struct cli *c;
	const struct target *targets;
	size_t n_targets;
	struct board board;
	int64_t until_us, start_by_us; /* cli_mono_us, 0 = none */
	int64_t begun_us; /* start of the wait, for the progress line */
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

/* Read the targets' current states. Returns 0 or an error code. */
int follow_refresh(struct follow *f, struct gpuq_err *err);

/* Check deadlines and signals, and update the progress line. Returns 0 or the reason to stop. */
int follow_tick(struct follow *f);

/* Handle the failure of a call or stream. Returns 1 = try again (the connection is new, or the pause is
 * over), 0 = give up (also if the server has never answered), else as follow_tick. */
int follow_retry(struct follow *f, int code);
/* True if the server will accept the call when other calls of this user have ended. */
bool follow_is_busy(int code, const struct gpuq_err *err);

/* Note that the server has answered. */
void follow_back(struct follow *f);

/* Erase the progress line. */
void follow_clear(struct follow *f);

void follow_done(struct follow *f);

#endif
