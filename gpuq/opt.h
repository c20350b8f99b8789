/* opt.h - options of the commands: one table, from which parsing, --help,
 * completion and the check of the manual pages follow
 *
 * Owns     the groups of options that several commands share.
 * Touches  standard error when an option is wrong.
 * Used by  main.c, help.c, completion.c and every cmd_*.c.
 *
 * An option is a row with a number of its own (enum opt_id); what was given on the
 * command line is looked up by that number. Options of a job (gpuq_spec_options of
 * libgpuq) have no number: they are handed on as "--name=value". Those of Slurm that do
 * nothing here are rows as well, so that each is answered: OPT_S_IGNORED, OPT_S_REFUSED.
 */
#ifndef GPUQ_OPT_H
#define GPUQ_OPT_H

#include <stdbool.h>
#include <stddef.h>

#include "libgpuq/arena.h"

enum opt_id {
	OPT_HELP,
	OPT_SERVER,
	OPT_VERBOSE,
	OPT_JSON,
	OPT_CSV,
	OPT_NO_HEADER,
	OPT_FORMAT,
	OPT_SORT,
	OPT_LIMIT,
	OPT_WATCH,
	OPT_USERS,
	OPT_ME,
	OPT_QUEUES,
	OPT_STATES,
	OPT_NAMES,
	OPT_NODES,
	OPT_LABELS,
	OPT_JOBS,
	OPT_ALL,
	OPT_SINCE,
	OPT_UNTIL,
	OPT_EXCEPT,
	OPT_TIMEZONE,
	OPT_EXTERNAL,
	OPT_CALENDAR,
	OPT_DAYS,
	OPT_LONG,
	OPT_ARRAY,
	OPT_WAIT,
	OPT_DRY_RUN,
	OPT_OUTPUT,
	OPT_KEY,
	OPT_PARSABLE,
	OPT_START_TIMEOUT,
	OPT_TIMEOUT,
	OPT_KEEP,
	OPT_IGNORE_UNKNOWN,
	OPT_IGNORE_OTHER_KINDS,
	OPT_SIGNAL,
	OPT_FOLLOW,
	OPT_TAIL,
	OPT_ATTEMPT,
	OPT_TIMESTAMPS,
	OPT_POD,
	OPT_RAW,
	OPT_CLIENT,
	OPT_SCENARIO,
	OPT_HOLD,
	OPT_TOP,
	OPT_LEASE,
	OPT_SUMMARY,
	OPT_AUDIT,
	OPT_BY,
	OPT_ISOLATION,
	OPT_REASON,
	OPT_REQUEUE,
	OPT_FILE,
	OPT_PRUNE,
	OPT_YES_EVICT,
	OPT_GENERATION,
	OPT_REMOVE,
	OPT_DELETE,
	OPT_START,
	OPT_DURATION,
	OPT_GPUS,
	OPT_FLAVOR,
	OPT_POOL,
	OPT_POOLS,
	OPT_QUEUE,
	OPT_FLAGS,
	OPT_EVERY,
	OPT_RELEASE_AFTER,
	OPT_AT_END,
	OPT_WEIGHTS,
	OPT_STDIN,
	OPT_TTY,
	OPT_CONTAINER,
	OPT_SERVER_PATH,
	OPT_RESET,
	OPT_FINISH,
	OPT_FAILED,
	OPT_CA,
	OPT_CERT,
	OPT_CERT_KEY,
	OPT_TOKEN_FILE,
	OPT_ISSUER,
	OPT_SCOPE,
	OPT_EXPIRES,
	OPT_COMMENT,
	OPT_FOR,
	/* Only in Slurm's names. */
	OPT_S_ASSOC,
	OPT_S_NOTHING, /* is accepted: what it requests is so anyway */
	OPT_S_IGNORED, /* is accepted with a warning, which is its doc */
	OPT_S_REFUSED, /* is not; its doc says what to do instead */
	OPT_S_VERSION,
	OPT_S_ACCOUNTS,
	OPT_S_QOS,
	OPT_S_FORMAT,
	OPT_S_WAIT,
	OPT_S_QUIET,
	OPT_S_INTERACTIVE,
	OPT_S_BY_NODE,
	OPT_S_ALLOCATIONS,
	OPT_S_BRIEF,
	OPT_S_PARSABLE2,
	OPT_S_DELIMITER,
	OPT_S_HELPFORMAT,
	OPT_S_ONELINER,
	OPT_S_NTASKS,
	OPT_S_PER_NODE,
	OPT_S_NNODES,
	OPT_S_LABEL,
	OPT_S_CHDIR,
	OPT_S_CPUS_PER_TASK,
	OPT_S_EXACT,
	OPT_S_EXCLUSIVE,
	OPT_S_GPUS,
	OPT_S_GPUS_PER_NODE,
	OPT_S_GPUS_PER_TASK,
	OPT_S_GRES,
	OPT_S_OVERLAP,
	OPT_S_BATCH,
	OPT_S_DEAD,
	OPT_S_ERROR,
	OPT_S_EXPORT,
	OPT_S_FULL,
	OPT_S_IMMEDIATE,
	OPT_S_INPUT,
	OPT_S_JOBID,
	OPT_S_KILL_COMMAND,
	OPT_S_KILL_ON_BAD_EXIT,
	OPT_S_MPI,
	OPT_S_CARRY_TO,
	OPT_S_NODELIST,
	OPT_S_NORMALISED,
	OPT_S_NOTME,
	OPT_S_NO_SHELL,
	OPT_S_OUTPUT,
	OPT_S_PTY,
	OPT_S_RESPONDING,
	N_OPTS,
};

/* How an option takes its value. */
enum opt_arg {
	ARG_NONE = 'n',
	ARG_REQUIRED = 'r',
	ARG_OPTIONAL = 'o', /* only as --name=value or -Nvalue */
	ARG_MANY = 'm', /* required; given again, the values are joined by commas */
};

struct opt {
	int id; /* enum opt_id; -1 for an option of the job */
	const char *name; /* long name without dashes; NULL ends a table */
	char letter; /* or 0 */
	char arg; /* enum opt_arg */
	const char *metavar, *doc;
};

#define OPT_GROUPS_MAX 5

struct command;

extern const struct opt opts_common[]; /* every command */
extern const struct opt opts_help[]; /* -h as well, where it does not mean "no header" */
extern const struct opt opts_list[]; /* every command that prints a list */
extern const struct opt opts_filter[]; /* which jobs */
extern const struct opt opts_waiting[]; /* commands that wait for a job */

/* The given options. Values point into argv or into the arena. */
struct args {
	struct gpuq_arena *arena;
	const char *val[N_OPTS]; /* NULL = not given, "" = given without a value */
	const char **job; /* options of the job, "--name=value"; ends with NULL */
	size_t n_job;
	char **rest; /* what is no option */
	int n_rest;
	bool dashes; /* "--" stood before rest */
};

/* Calls fn for each option of cmd, in the order of --help: its own, the groups, the
 * job's. A row that repeats an earlier name is left out, an earlier letter dropped. */
typedef void (*opt_fn)(void *arg, const struct opt *o);
void opt_each(const struct command *cmd, opt_fn fn, void *arg);

/* Read argv[first..argc). With stop_first the first argument that is no option ends
 * the options, as for sbatch; without, options and arguments may be mixed. May be
 * called again for the rest; what was given adds up.
 * Returns 0, or -1 after a line on standard error. */
int opt_parse(const struct command *cmd, int argc, char **argv, bool stop_first, struct args *args);

bool opt_given(const struct args *args, enum opt_id id);

#endif
