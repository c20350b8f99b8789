/* daemon.h - the only place that knows everyone
 *
 * Owns     every room's object: builds them in order, wires them, tears them down in
 *          reverse. No logic of its own.
 * Used by  main.c.
 */
#ifndef GPUQD_DAEMON_H
#define GPUQD_DAEMON_H

#include "gpuqd/config.h"
#include "libgpuq/err.h"

/* Exit codes, as sysexits(3) has them where one fits. */
enum daemon_exit {
	EXIT_OK = 0,
	EXIT_ANY = 1,
	EXIT_USAGE = 2,
	EXIT_CLUSTER = 69,
	EXIT_IO = 74,
	EXIT_BUSY = 75,
	EXIT_CONFIG = 78
};

/* Run until SIGTERM or SIGINT. argv0 is this program, which local jobs' shepherds are
 * started from. Returns an exit code; the reason has been logged. */
int daemon_run(struct config *c, int argc, char **argv);

/* --check: read the configuration and the site file. Returns an exit code. */
int daemon_check(const struct config *c);

/* The exit code of an error of the start. */
int daemon_exit_of(int rc);

/* --audit: check the database of c->state, changing nothing. Returns an exit code. */
int daemon_audit(const struct config *c);

#endif
