/* session.h - one session with a job's pod, between local descriptors and the server
 *
 * Owns     a connection to the server and the bytes under way in both directions, never
 *          more than both sides have given credit for.
 * Touches  the server, the descriptors; never blocks.
 * Used by  stdio.c (exec, attach), cmd_forward.c.
 */
#ifndef GPUQ_CMD_JOB_SESSION_H
#define GPUQ_CMD_JOB_SESSION_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "gpuq/cli.h"
#include "gpuq/term.h"
#include "libgpuq/wire/duplex.h"

#define SESSION_POLLS 4

enum session_way { SESSION_ON, SESSION_ENDED, SESSION_DETACHED };

struct session {
	struct gpuq *conn;
	struct gpuq_duplex d;
	struct gpuq_arena mem; /* of the reply */
	int in_fd, out_fd, err_fd; /* -1 = none; in_fd and out_fd may be one socket */
	bool socket; /* they are: its halves are shut down, not closed */
	bool keys; /* ctrl-p ctrl-q in the input leaves it */
	bool clean; /* output passes term_log */
	/* Result of the session. */
	bool open, tty,
		takes_input; /* what the other side reports: it is there, has a terminal, reads input */
	int code; /* of the call: 0, or an error's, with err */
	int exit_code;
	bool heard; /* something came from the other side */
	bool lost; /* the connection broke: the outcome is unknown */
	struct gpuq_err err;
	/* Inside. */
	struct gpuq_buf out, errs;
	struct term_log out_log, err_log;
	uint32_t taken; /* items whose bytes are not all written yet */
	bool in_end, out_end, ctrl_p, ended, detached;
};

/* Begin. Returns 0 or an error code. */
int session_begin(struct session *s, struct cli *c, const char *method,
		  const struct gpuq_val *params, struct gpuq_err *err);
void session_done(struct session *s); /* ends the session if it is still open */

/* Fill the descriptors to wait for, always SESSION_POLLS of them; and handle them, or call it
 * once a second. */
void session_polls(const struct session *s, struct pollfd p[SESSION_POLLS]);
enum session_way session_turn(struct session *s, const struct pollfd p[SESSION_POLLS]);

void session_resize(struct session *s, int cols, int rows);

#endif
