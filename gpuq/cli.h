/* cli.h - what the commands of gpuq share: the exit codes, one connection
 *
 * Owns     struct cli, which lives as long as the process runs its one command.
 * Touches  standard error (cli_say), the server.
 * Used by  every command.
 */
#ifndef GPUQ_CLI_H
#define GPUQ_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "gpuq/opt.h"
#include "libgpuq/arena.h"
#include "libgpuq/client.h"
#include "libgpuq/err.h"
#include "libgpuq/val.h"

/* Exit codes. Those of waiting commands stand at the top of the byte, where
 * programs rarely put theirs, because a job's own code passes through. */
enum cli_exit {
	EXIT_DONE = 0,
	EXIT_REFUSED = 1, /* reason on standard error */
	EXIT_USAGE = 2,
	EXIT_NEVER_STARTED = 248, /* not within --start-timeout, or not before its deadline */
	EXIT_REJECTED = 249, /* at submission; of exec: not allowed, or nothing to run it in */
	EXIT_INFRA = 250, /* NODE_FAIL, PREEMPTED; of exec: the session broke */
	EXIT_TIME = 251, /* time limit or deadline */
	EXIT_CANCELLED = 252,
	EXIT_LIVES_ON = 253, /* waiting ended before the job did */
	EXIT_NO_JOB = 254,
	EXIT_SERVER = 255, /* unreachable; for waiting commands wrong usage too */
};

struct command;

struct cli {
	const struct command *cmd;
	char **argv; /* as it was called */
	struct args args;
	struct gpuq_arena arena; /* options, replies: until the process ends */
	struct gpuq *conn; /* NULL until cli_connect */
	bool busy; /* the server answered last that it takes no more of this user for now */
};

/* Say it in this name from now on, not gpuq's: commands of Slurm. It must stay. */
void cli_say_as(const char *name);

/* "gpuq: " and a line, on standard error, with what could harm a terminal escaped. */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A wrong use of the command: says so and returns its exit code for that. */
int cli_usage(const struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Print err and return the exit code for it; job_missing says that GPUQ_ENOENT is
 * about a job (254) and not about something that a job names (1). */
int cli_fail(const struct gpuq_err *err, bool job_missing);
int cli_exit_code(const struct gpuq_err *err, bool job_missing);

/* The connection, made on the first call. Returns 0 or an error code. */
/* Connect, if need be. A server that is busy is asked again for some seconds. */
int cli_connect(struct cli *c, struct gpuq_err *err);
void cli_disconnect(struct cli *c);

/* The connection is of no use after this error: connect again. */
bool cli_broken(int code);

/* Call with one more try over a new connection when this one breaks. A call that
 * changes something carries an idempotency key, so that it happens once: key, or a
 * random one when that is NULL; key "" = the call only reads. */
int cli_call(struct cli *c, const char *method, const struct gpuq_val *params, const char *key,
	     struct gpuq_val **reply, struct gpuq_err *err);

/* A new idempotency key of 32 hex digits. */
void cli_key(char out[33]);

/* The name under which the server knows us, or NULL. */
const char *cli_user(const struct cli *c);

int64_t cli_now_us(void); /* since 1970 */
int64_t cli_mono_us(void); /* never runs back */

/* SIGINT or SIGTERM since the last call of cli_signals_take (which resets it), after
 * cli_signals_catch. 0 = none. From the signal to that call every call of the server ends
 * with GPUQ_ECANCELED, after which cli_disconnect. */
void cli_signals_catch(void);
int cli_signals_take(void);
int cli_signals_seen(void);

/* fork(). SIGTERM ends the child, SIGINT does what is said, from its first moment on: none that
 * is sent at once is lost to the handler of the parent. */
pid_t cli_fork(void (*interrupt)(int signo));

#endif
