/* command.h - start a program; run one from a thread, and wait for it
 *
 * Owns     the child of command_run(), in a process group of its own, until the call returns.
 * Touches  one child a call; no shell.
 * Used by  flow/copies: the command of a target, the audit of a copy; mail.
 *
 * command_run() blocks: never on the loop.
 */
#ifndef GPUQD_NET_COMMAND_H
#define GPUQD_NET_COMMAND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libgpuq/err.h"

#define COMMAND_SAID_BYTES 256

struct command {
	const char *const *argv; /* NULL at the end; found by PATH */
	const char *const *env; /* NAME=VALUE, besides the daemon's own; NULL = none */
	int in, out; /* descriptors to read from and to write to; -1 = nothing, and what is kept */
	int64_t limit_us; /* it is killed after that */
	bool nice; /* behind other programs */
	const atomic_bool *stop; /* once true, it is killed; NULL is fine */
};

/* Start it, in a process group of its own; what it prints on standard error goes to said, and so does
 * standard output without c->out. 0, or what errno would be. The caller waits for the child. */
int command_start(const struct command *c, int said, pid_t *pid);

/* Returns 0 when it ended by itself: *exit_code is its own, or 128 and the signal; said: the first line that
 * it printed on standard error, and on standard output when that is kept. GPUQ_EIO (it cannot be started),
 * GPUQ_ETIMEOUT, GPUQ_ECANCELED. */
int command_run(const struct command *c, int *exit_code, char said[COMMAND_SAID_BYTES],
		struct gpuq_err *err);

#endif
