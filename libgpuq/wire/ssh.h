/* ssh.h - a connection through `ssh host gpuq proxy`
 *
 * Owns     the process ssh, its standard error.
 * Touches  PATH and the environment, which ssh gets as they are; processes.
 * Used by  transport.c. Not installed.
 *
 * ssh has a process group of its own: a ^C at the terminal is for the caller, who may have something to
 * tell the server because of it.
 */
#ifndef LIBGPUQ_WIRE_SSH_H
#define LIBGPUQ_WIRE_SSH_H

#include <sys/types.h>

#include "libgpuq/err.h"

struct gpuq_ssh {
	pid_t pid; /* 0 = none */
	int errs; /* what it said, a file in memory; -1 = none */
};

/* Run ssh to "ssh://[user@]host[:port]"; *fd is its input and output, nonblocking.
 * Returns 0, GPUQ_EINVAL (address), GPUQ_EUNREACH (no ssh), GPUQ_EIO. */
int gpuq_ssh_open(struct gpuq_ssh *s, const char *addr, int *fd, struct gpuq_err *err);

/* After its end of input, or where it is of no more use: wait for its end a moment, then end it. */
void gpuq_ssh_close(struct gpuq_ssh *s);

/* The connection has ended before the server answered: replace err by the reason that ssh, or gpuq at
 * the other end, gave; as it is where there was none. Closes s. */
void gpuq_ssh_explain(struct gpuq_ssh *s, const char *addr, struct gpuq_err *err);

#endif
