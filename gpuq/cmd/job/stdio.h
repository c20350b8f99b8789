/* stdio.h - a session with our own standard input, output and error
 *
 * Owns     the terminal while it lasts.
 * Touches  the server, the three descriptors, signals.
 * Used by  cmd_exec.c, cmd_attach.c, attend.c (gpuq run -it).
 */
#ifndef GPUQ_CMD_JOB_STDIO_H
#define GPUQ_CMD_JOB_STDIO_H

#include <stdbool.h>

#include "gpuq/cli.h"

enum stdio_end {
	STDIO_ENDED, /* exit_code */
	STDIO_DETACHED, /* by ctrl-p ctrl-q */
	STDIO_SIGNAL, /* signo */
	STDIO_LOST, /* the connection broke; err */
	STDIO_FAILED, /* err */
};

struct stdio {
	const char *method; /* job.exec or job.attach */
	struct gpuq_val *params; /* without input, tty, cols and rows */
	bool input, tty, keys;
	int exit_code, signo;
	bool opened; /* the other side was there */
	bool heard; /* and said something */
	struct gpuq_err err;
};

/* Read -i and -t. Returns false after a message if -t is given without a terminal. */
bool stdio_options(struct cli *c, struct stdio *io, int *code);

enum stdio_end stdio_run(struct cli *c, struct stdio *io);

#endif
