/* result.h - outcome of jobs that a command waits for: exit code and last line
 *
 * Owns     the latest known state of each job (and array element) that is waited for.
 * Touches  standard error (result_print).
 * Used by  follow.c, attend.c.
 *
 * The exit code is the job's own where it has one; 248..255 are gpuq's own
 * (gpuq-wait(1), EXIT STATUS). The last line on standard error distinguishes them.
 */
#ifndef GPUQ_CMD_JOB_RESULT_H
#define GPUQ_CMD_JOB_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/val.h"

struct board_job {
	int64_t element_id; /* the own number of an element; 0 = none */
	int64_t id, index; /* index -1: the job, or the pending elements of an array */
	int state; /* enum gpuq_job_state, -1 unknown */
	bool has_exit, started;
	int64_t exit_code, attempt;
	char reason[48];
	char place[128]; /* nodes, folded; for progress lines */
	char queue[64];
};

struct board {
	struct board_job *items; /* by id and index */
	size_t n, room;
};

struct target { /* what was requested: "17" or "17_3" */
	int64_t id, index;
};

void board_done(struct board *b);
void board_clear(struct board *b);

/* Take in a job object. Returns the entry, *changed (may be NULL) when its state,
 * reason or attempt is new; NULL without memory. */
struct board_job *board_update(struct board *b, const struct gpuq_val *job, bool *changed);

bool board_started(const struct board *b, const struct target *targets, size_t n);
bool board_ended(const struct board *b, const struct target *targets, size_t n);

/* Exit code of one job in its present state; EXIT_LIVES_ON while it has not ended. */
int result_code(const struct board_job *j);

struct result {
	bool has_id;
	int64_t id, index;
	int state; /* -1 = null */
	bool has_exit;
	int64_t exit_code;
	char reason[48]; /* "" = null */
	int code; /* gpuq's exit code */
};

/* The result of a target: the job's, or of all elements of an array that with the
 * highest exit code. */
void result_of(const struct board *b, const struct target *t, struct result *out);

/* gpuq-result: {"id":17,"state":"COMPLETED","exit_code":0,"reason":null} */
void result_print(const struct result *r);

/* Print the line for a job that does not exist; reason is the error's name. Returns code. */
int result_none(const struct target *t, const char *reason, int code);

#endif
