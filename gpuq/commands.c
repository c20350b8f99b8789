/* The table of commands, and the way into one: help, completion, the manual's check
 * follow from the rows. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/help.h"
#include "gpuq/command.h"
#include "gpuq/servers.h"
#include "gpuq/slurm/slurm.h"
#include "libgpuq/schema.h"

/* clang-format off */
static const struct opt submit_opts[] = {
	{ OPT_WAIT, "wait", 'W', ARG_NONE, NULL, "wait until the jobs have ended; exit with their exit code" },
	{ OPT_START_TIMEOUT, "start-timeout", 0, ARG_REQUIRED, "DURATION", "with --wait: cancel jobs not started within DURATION, exit 248" },
	{ OPT_KEEP, "keep", 0, ARG_NONE, NULL, "with --start-timeout: do not cancel the jobs" },
	{ OPT_LEASE, "lease", 0, ARG_REQUIRED, "DURATION", "cancel the jobs if the client is gone for DURATION" },
	{ OPT_DRY_RUN, "dry-run", 0, ARG_NONE, NULL, "check and print the jobs, submit nothing" },
	{ OPT_DRY_RUN, "test-only", 0, ARG_NONE, NULL, "same as --dry-run" },
	{ OPT_OUTPUT, "output", 'o', ARG_REQUIRED, "FILE", "output file of the job; with --dry-run also yaml or json: print the job in that form" },
	{ OPT_KEY, "key", 0, ARG_REQUIRED, "KEY", "submit only once under this key, however often it is called" },
	{ OPT_PARSABLE, "parsable", 0, ARG_NONE, NULL, "print the bare job id" },
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print the job object" },
	{ OPT_IGNORE_OTHER_KINDS, "ignore-other-kinds", 0, ARG_NONE, NULL, "submit the jobs of a manifest that also holds other objects" },
	{ OPT_IGNORE_UNKNOWN, "ignore-unknown", 0, ARG_NONE, NULL, "skip unknown #GPUQ and #SBATCH options of a script" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt resubmit_opts[] = {
	{ OPT_FAILED, "failed", 0, ARG_NONE, NULL, "submit only jobs and elements that did not complete" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt run_opts[] = {
	{ OPT_STDIN, "stdin", 0, ARG_NONE, NULL, "connect standard input to the job" },
	{ OPT_TTY, "tty", 0, ARG_NONE, NULL, "allocate a terminal; -it is --stdin --tty" },
	{ OPT_START_TIMEOUT, "start-timeout", 0, ARG_REQUIRED, "DURATION", "cancel the job if not started within DURATION, exit 248" },
	{ OPT_KEEP, "keep", 0, ARG_NONE, NULL, "with --start-timeout: do not cancel the job" },
	{ OPT_LEASE, "lease", 0, ARG_REQUIRED, "DURATION", "cancel the job if the client is gone for DURATION" },
	{ OPT_KEY, "key", 0, ARG_REQUIRED, "KEY", "submit only once under this key, however often it is called" },
	{ OPT_IGNORE_OTHER_KINDS, "ignore-other-kinds", 0, ARG_NONE, NULL, "submit the jobs of a manifest that also holds other objects" },
	{ OPT_IGNORE_UNKNOWN, "ignore-unknown", 0, ARG_NONE, NULL, "skip unknown #GPUQ and #SBATCH options of a script" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt wait_opts[] = {
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print the job objects at the end" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt status_opts[] = {
	{ OPT_OUTPUT, "output", 'o', ARG_REQUIRED, "FORM", "yaml or json: print the job file of the job" },
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print the object; of an array, one object a line" },
	{ OPT_WATCH, "watch", 0, ARG_OPTIONAL, "SECONDS", "print it again every SECONDS (2)" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt queue_opts[] = {
	{ OPT_LONG, "long", 0, ARG_NONE, NULL, "print more columns" },
	{ OPT_ALL, "all", 'a', ARG_NONE, NULL, "include jobs that have ended" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt history_opts[] = {
	{ OPT_LONG, "long", 0, ARG_NONE, NULL, "print more columns" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt events_opts[] = {
	{ OPT_AUDIT, "audit", 0, ARG_NONE, NULL, "list changes: user, object, old and new value" },
	{ OPT_FOLLOW, "follow", 'f', ARG_NONE, NULL, "print new events as they occur, until interrupted" },
	{ OPT_USERS, "users", 'u', ARG_MANY, "USERS", "with --audit: only changes by these users" },
	{ OPT_SINCE, "since", 0, ARG_REQUIRED, "TIME", "since TIME: an instant, or a duration before now" },
	{ OPT_UNTIL, "until", 0, ARG_REQUIRED, "TIME", "until TIME" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt act_opts[] = {
	{ OPT_DRY_RUN, "dry-run", 0, ARG_NONE, NULL, "only print which jobs match" },
	{ OPT_VERBOSE, "verbose", 'v', ARG_NONE, NULL, "print their ids" },
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print the reply as a JSON object" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt cancel_opts[] = {
	{ OPT_SIGNAL, "signal", 's', ARG_REQUIRED, "SIGNAL", "send this signal instead of ending the job" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt requeue_opts[] = {
	{ OPT_HOLD, "hold", 0, ARG_NONE, NULL, "hold the jobs until they are released" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt update_opts[] = {
	{ OPT_TOP, "top", 0, ARG_NONE, NULL, "rank the jobs before their owner's other pending jobs" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt logs_opts[] = {
	{ OPT_FOLLOW, "follow", 'f', ARG_NONE, NULL, "print new output until the job has ended" },
	{ OPT_TAIL, "tail", 0, ARG_REQUIRED, "N", "begin with the last N lines" },
	{ OPT_SINCE, "since", 0, ARG_REQUIRED, "TIME", "begin at TIME: an instant, or a duration before now" },
	{ OPT_TIMESTAMPS, "timestamps", 0, ARG_NONE, NULL, "print each line with the time when it was written" },
	{ OPT_ATTEMPT, "attempt", 0, ARG_REQUIRED, "N", "output of this attempt alone; 0 is the first" },
	{ OPT_POD, "pod", 0, ARG_REQUIRED, "INDEX", "only this pod of the job" },
	{ OPT_RAW, "raw", 0, ARG_NONE, NULL, "do not escape control characters on a terminal" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt exec_opts[] = {
	{ OPT_STDIN, "stdin", 'i', ARG_NONE, NULL, "pass standard input on" },
	{ OPT_TTY, "tty", 't', ARG_NONE, NULL, "allocate a terminal for the program" },
	{ OPT_POD, "pod", 0, ARG_REQUIRED, "INDEX", "index of the pod in the job (0)" },
	{ OPT_CONTAINER, "container", 'c', ARG_REQUIRED, "NAME", "container of the pod (the first)" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt attach_opts[] = {
	{ OPT_STDIN, "stdin", 'i', ARG_NONE, NULL, "pass standard input on" },
	{ OPT_TTY, "tty", 't', ARG_NONE, NULL, "connect this terminal to the job's terminal" },
	{ OPT_POD, "pod", 0, ARG_REQUIRED, "INDEX", "index of the pod in the job (0)" },
	{ OPT_CONTAINER, "container", 'c', ARG_REQUIRED, "NAME", "container of the pod (the first)" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt forward_opts[] = {
	{ OPT_POD, "pod", 0, ARG_REQUIRED, "INDEX", "index of the pod in the job (0)" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt nodes_opts[] = {
	{ OPT_SUMMARY, "summary", 's', ARG_NONE, NULL, "one line a node" },
	{ OPT_NODES, "nodes", 'w', ARG_MANY, "NODES", "only these nodes" },
	{ OPT_STATES, "states", 't', ARG_MANY, "STATES", "only nodes in these states" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt queues_opts[] = {
	{ OPT_QUEUES, "queues", 'q', ARG_MANY, "QUEUES", "only these queues" },
	{ OPT_REASON, "reason", 0, ARG_REQUIRED, "TEXT", "with grant: reason, recorded with the change" },
	{ OPT_DRY_RUN, "dry-run", 0, ARG_NONE, NULL, "with a verb: only print the changes and evictions" },
	{ OPT_YES_EVICT, "yes-evict", 0, ARG_REQUIRED, "N", "with a verb: apply even if up to N jobs are evicted" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt usage_opts[] = {
	{ OPT_QUEUES, "queues", 'q', ARG_MANY, "QUEUES", "only these queues" },
	{ OPT_USERS, "users", 'u', ARG_MANY, "USERS", "only these users, without totals of queues" },
	{ OPT_ME, "me", 0, ARG_NONE, NULL, "only the caller's use" },
	{ OPT_JOBS, "jobs", 'j', ARG_MANY, "JOBS", "what these jobs used: 17,17_3" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt report_opts[] = {
	{ OPT_SINCE, "since", 0, ARG_REQUIRED, "TIME", "begin at TIME: an instant, or a duration before now (this calendar month, UTC)" },
	{ OPT_UNTIL, "until", 0, ARG_REQUIRED, "TIME", "end at TIME (now)" },
	{ OPT_BY, "by", 0, ARG_MANY, "WHAT", "group by user, queue, flavor, isolation, day; or by reservation" },
	{ OPT_ISOLATION, "isolation", 0, ARG_MANY, "WORDS", "only devices isolated so: exclusive, mig, mps..." },
	{ OPT_QUEUES, "queues", 'q', ARG_MANY, "QUEUES", "only these queues" },
	{ OPT_USERS, "users", 'u', ARG_MANY, "USERS", "only these users" },
	{ OPT_ME, "me", 0, ARG_NONE, NULL, "only the caller's use" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt reserve_opts[] = {
	{ OPT_START, "start", 0, ARG_REQUIRED, "TIME", "start: an instant, or now+2h (now)" },
	{ OPT_DURATION, "duration", 't', ARG_REQUIRED, "DURATION", "duration of the reservation" },
	{ OPT_NODES, "nodes", 'w', ARG_MANY, "NODES", "whole nodes: n[01-04]" },
	{ OPT_GPUS, "gpus", 'g', ARG_REQUIRED, "N", "number of devices, on any node" },
	{ OPT_FLAVOR, "flavor", 0, ARG_REQUIRED, "FLAVOR", "devices of this flavor" },
	{ OPT_POOL, "pool", 0, ARG_REQUIRED, "POOL", "devices of this pool; without --gpus, all its nodes" },
	{ OPT_QUEUE, "queue", 'q', ARG_REQUIRED, "QUEUE", "for jobs of this queue and those below it" },
	{ OPT_USERS, "users", 'u', ARG_MANY, "USERS", "for jobs of these users" },
	{ OPT_FLAGS, "flags", 0, ARG_MANY, "FLAGS", "maintenance (no jobs at all), daily, weekly, release-unused" },
	{ OPT_EVERY, "every", 0, ARG_REQUIRED, "DURATION", "repeat with this period" },
	{ OPT_UNTIL, "until", 0, ARG_REQUIRED, "TIME", "end of the repetition: no occurrence begins then or later" },
	{ OPT_EXCEPT, "except", 0, ARG_MANY, "DATES", "days without an occurrence: 2026-12-24,2026-12-25" },
	{ OPT_TIMEZONE, "timezone", 0, ARG_REQUIRED, "ZONE", "time zone, such as Europe/Berlin (UTC)" },
	{ OPT_EXTERNAL, "external", 0, ARG_NONE, NULL, "nodes that a cloud provides: --nodes is their number" },
	{ OPT_RELEASE_AFTER, "release-after", 0, ARG_REQUIRED, "DURATION", "release unused devices this long after the start" },
	{ OPT_AT_END, "at-end", 0, ARG_REQUIRED, "evict|keep", "signal jobs before the end, or let them keep running (evict)" },
	{ OPT_DELETE, "delete", 0, ARG_NONE, NULL, "delete the named reservations" },
	{ OPT_DRY_RUN, "dry-run", 0, ARG_NONE, NULL, "only print the changes and the evictions they cause" },
	{ OPT_YES_EVICT, "yes-evict", 0, ARG_REQUIRED, "N", "apply even if up to N jobs are evicted" },
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print the reply as a JSON object" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt reservations_opts[] = {
	{ OPT_ALL, "all", 'a', ARG_NONE, NULL, "include reservations that are over" },
	{ OPT_CALENDAR, "calendar", 0, ARG_NONE, NULL, "show a chart of the coming days, by pool" },
	{ OPT_DAYS, "days", 0, ARG_REQUIRED, "N", "days of the calendar (14), which this shows as well" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt import_opts[] = {
	{ OPT_POOLS, "pools", 0, ARG_REQUIRED, "FILE", "pools with the shapes of nodes that are provisioned" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt apply_opts[] = {
	{ OPT_FILE, "file", 'f', ARG_REQUIRED, "FILE", "the site file; - is standard input" },
	{ OPT_DRY_RUN, "dry-run", 0, ARG_NONE, NULL, "only print the changes and the evictions they cause" },
	{ OPT_YES_EVICT, "yes-evict", 0, ARG_REQUIRED, "N", "apply even if up to N jobs are evicted" },
	{ OPT_PRUNE, "prune", 0, ARG_NONE, NULL, "remove what the file does not mention" },
	{ OPT_REMOVE, "remove", 0, ARG_MANY, "OBJECTS", "remove these objects, such as queue/old or flavor/k80" },
	{ OPT_GENERATION, "generation", 0, ARG_REQUIRED, "N", "refuse unless the site is at generation N" },
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print the reply as a JSON object" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt drain_opts[] = {
	{ OPT_REASON, "reason", 'r', ARG_REQUIRED, "TEXT", "reason, shown by gpuq nodes" },
	{ OPT_REQUEUE, "requeue", 0, ARG_NONE, NULL, "requeue the jobs that run there" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt nodes_act_opts[] = {
	{ OPT_DRY_RUN, "dry-run", 0, ARG_NONE, NULL, "only print which nodes match" },
	{ OPT_VERBOSE, "verbose", 'v', ARG_NONE, NULL, "print their names" },
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print the reply as a JSON object" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt why_opts[] = {
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print the reply as a JSON object, one a line" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt plan_opts[] = {
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print the reply as a JSON object, one job a line" },
	{ OPT_IGNORE_OTHER_KINDS, "ignore-other-kinds", 0, ARG_NONE, NULL, "submit the jobs of a manifest that also holds other objects" },
	{ OPT_IGNORE_UNKNOWN, "ignore-unknown", 0, ARG_NONE, NULL, "skip unknown #GPUQ and #SBATCH options of a script" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt shares_opts[] = {
	{ OPT_LONG, "long", 'l', ARG_NONE, NULL, "print more columns" },
	{ OPT_SUMMARY, "summary", 's', ARG_NONE, NULL, "queues without their users" },
	{ OPT_USERS, "users", 'u', ARG_MANY, "USERS", "only these users" },
	{ OPT_ME, "me", 0, ARG_NONE, NULL, "only the caller's rows of users" },
	{ OPT_QUEUES, "queues", 'q', ARG_MANY, "QUEUES", "only these queues, with their parents and children" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt prio_opts[] = {
	{ OPT_WEIGHTS, "weights", 'w', ARG_NONE, NULL, "print the weights of the terms instead of jobs" },
	{ OPT_USERS, "users", 'u', ARG_MANY, "USERS", "jobs of these users" },
	{ OPT_ME, "me", 0, ARG_NONE, NULL, "the caller's jobs" },
	{ OPT_QUEUES, "queues", 'q', ARG_MANY, "QUEUES", "jobs of these queues" },
	{ OPT_NAMES, "names", 'n', ARG_MANY, "NAMES", "jobs with these names" },
	{ OPT_LABELS, "labels", 'l', ARG_MANY, "LABELS", "jobs with these labels: team=a,stage!=b,has,!lacks" },
	{ OPT_JOBS, "jobs", 'j', ARG_MANY, "JOBS", "these jobs: 17, 17_3, 17_[4-9]" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt export_opts[] = {
	{ OPT_SCENARIO, "scenario", 0, ARG_NONE, NULL, "print the live cluster, queues and jobs for gpuq-sim" },
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print JSON instead of YAML" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt top_opts[] = {
	{ OPT_WATCH, "watch", 0, ARG_OPTIONAL, "SECONDS", "refresh every SECONDS (2)" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt diag_opts[] = {
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print a JSON object" },
	{ OPT_WATCH, "watch", 0, ARG_OPTIONAL, "SECONDS", "print it again every SECONDS (2)" },
	{ OPT_RESET, "reset", 0, ARG_NONE, NULL, "reset the statistics of the event loop after printing" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt doctor_opts[] = {
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print one JSON object a finding" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt backup_opts[] = {
	{ OPT_SERVER_PATH, "server-path", 0, ARG_REQUIRED, "PATH", "write to this new file on the server's machine instead" },
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print one JSON object a line" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt recover_opts[] = {
	{ OPT_FINISH, "finish", 0, ARG_NONE, NULL, "end the recovery; held jobs and kept pods remain" },
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print the reply as a JSON object" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt login_opts[] = {
	{ OPT_TOKEN_FILE, "token-file", 0, ARG_REQUIRED, "FILE", "file with the token; - reads standard input" },
	{ OPT_ISSUER, "issuer", 0, ARG_REQUIRED, "NAME", "log in in a browser, with this issuer of the server" },
	{ OPT_CA, "ca", 0, ARG_REQUIRED, "FILE", "certificates of the CA that signed the server's" },
	{ OPT_CERT, "cert", 0, ARG_REQUIRED, "FILE", "client certificate that identifies you" },
	{ OPT_CERT_KEY, "key", 0, ARG_REQUIRED, "FILE", "private key of the client certificate" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt whoami_opts[] = {
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print a JSON object" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt token_opts[] = {
	{ OPT_SCOPE, "scope", 0, ARG_REQUIRED, "SCOPES", "create: scopes of the token (read,submit,control)" },
	{ OPT_QUEUES, "queues", 'q', ARG_REQUIRED, "QUEUES", "create: restrict it to these queues and those below" },
	{ OPT_EXPIRES, "expires", 0, ARG_REQUIRED, "DURATION", "create: time until it expires (30d)" },
	{ OPT_COMMENT, "comment", 0, ARG_REQUIRED, "TEXT", "create: note shown by list" },
	{ OPT_FOR, "for", 0, ARG_REQUIRED, "USER", "create: user of the token, if another; operators only" },
	{ OPT_USERS, "user", 'u', ARG_REQUIRED, "USERS", "list, revoke: tokens of these users" },
	{ OPT_ALL, "all", 'a', ARG_NONE, NULL, "list: include expired and revoked tokens" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

static const struct opt version_opts[] = {
	{ OPT_CLIENT, "client", 0, ARG_NONE, NULL, "do not contact the server" },
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "print a JSON object" },
	{ 0, NULL, 0, 0, NULL, NULL },
};

const struct command commands[] = {
	{ .name = "submit", .alias = "sub", .summary = "Put jobs in a queue", .synopsis = "FILE|- [ARGUMENT]...",
	  .opts = submit_opts, .groups = { opts_help, opts_waiting }, .job_options = true, .stop_first = true,
	  .max_args = -1, .run = cmd_submit },
	{ .name = "run", .summary = "Submit a job, follow its output, return its exit code", .synopsis = "FILE [ARGUMENT]... | -- COMMAND [ARGUMENT]...",
	  .opts = run_opts, .groups = { opts_help, opts_waiting }, .job_options = true, .stop_first = true, .terminal = true, .waits = true,
	  .max_args = -1, .run = cmd_run },
	{ .name = "status", .alias = "show", .summary = "Show a job, or the cluster and its queues at a glance", .synopsis = "[JOB]",
	  .opts = status_opts, .groups = { opts_help }, .takes_jobs = true, .max_args = 1, .run = cmd_status },
	{ .name = "queue", .alias = "q", .summary = "List jobs", .synopsis = "[JOB]...",
	  .opts = queue_opts, .groups = { opts_list, opts_filter }, .takes_jobs = true, .max_args = -1, .run = cmd_queue },
	{ .name = "events", .summary = "List the events of a job, or changes by users", .synopsis = "[JOB]",
	  .opts = events_opts, .groups = { opts_list }, .takes_jobs = true, .max_args = 1, .run = cmd_events },
	{ .name = "history", .summary = "List jobs that have ended", .synopsis = "[JOB]...",
	  .opts = history_opts, .groups = { opts_list, opts_filter }, .takes_jobs = true, .max_args = -1, .run = cmd_history },
	{ .name = "cancel", .summary = "End jobs", .synopsis = "[JOB]...",
	  .opts = cancel_opts, .groups = { act_opts, opts_filter, opts_help }, .takes_jobs = true, .max_args = -1, .run = cmd_cancel },
	{ .name = "hold", .summary = "Prevent pending jobs from starting", .synopsis = "[JOB]...",
	  .opts = act_opts, .groups = { opts_filter, opts_help }, .takes_jobs = true, .max_args = -1, .run = cmd_hold },
	{ .name = "release", .summary = "Release held jobs", .synopsis = "[JOB]...",
	  .opts = act_opts, .groups = { opts_filter, opts_help }, .takes_jobs = true, .max_args = -1, .run = cmd_release },
	{ .name = "requeue", .summary = "Requeue jobs", .synopsis = "[JOB]...",
	  .opts = requeue_opts, .groups = { act_opts, opts_filter, opts_help }, .takes_jobs = true, .max_args = -1, .run = cmd_requeue },
	{ .name = "resubmit", .summary = "Submit jobs again as they were", .synopsis = "JOB...",
	  .opts = resubmit_opts, .groups = { submit_opts, opts_help, opts_waiting }, .job_options = true, .takes_jobs = true,
	  .min_args = 1, .max_args = -1, .run = cmd_resubmit },
	{ .name = "update", .summary = "Change the requests of jobs", .synopsis = "[JOB]... KEY=VALUE...",
	  .opts = update_opts, .groups = { act_opts, opts_filter, opts_help }, .takes_jobs = true, .max_args = -1, .run = cmd_update },
	{ .name = "wait", .summary = "Wait until jobs have ended, return their exit code", .synopsis = "JOB...",
	  .opts = wait_opts, .groups = { opts_help, opts_waiting }, .waits = true, .takes_jobs = true,
	  .min_args = 1, .max_args = -1, .run = cmd_wait },
	{ .name = "logs", .summary = "Print the output of a job", .synopsis = "JOB",
	  .opts = logs_opts, .groups = { opts_help }, .takes_jobs = true, .min_args = 1, .max_args = 1, .run = cmd_logs },
	{ .name = "exec", .summary = "Run a program beside a job, return its exit code", .synopsis = "JOB -- COMMAND [ARGUMENT]...",
	  .opts = exec_opts, .groups = { opts_help }, .stop_first = true, .waits = true, .takes_jobs = true,
	  .min_args = 1, .max_args = -1, .run = cmd_exec },
	{ .name = "attach", .summary = "Connect to the input and output of a job", .synopsis = "JOB",
	  .opts = attach_opts, .groups = { opts_help }, .takes_jobs = true, .min_args = 1, .max_args = 1, .run = cmd_attach },
	{ .name = "port-forward", .summary = "Forward local ports to a job", .synopsis = "JOB [LOCAL:]REMOTE...",
	  .opts = forward_opts, .groups = { opts_help }, .takes_jobs = true, .min_args = 2, .max_args = -1, .run = cmd_forward },
	{ .name = "nodes", .summary = "List nodes and their devices", .synopsis = "[NODE]...",
	  .opts = nodes_opts, .groups = { opts_list }, .max_args = -1, .run = cmd_nodes },
	{ .name = "queues", .summary = "List queues: quota, fair share, use; or change them",
	  .synopsis = "[QUEUE]... | set QUEUE KEY=VALUE... | stop|start|open|close QUEUE... | grant QUEUE MINUTES",
	  .opts = queues_opts, .groups = { opts_list }, .max_args = -1, .run = cmd_queues },
	{ .name = "usage", .summary = "List budgets and use of queues and users", .synopsis = "[QUEUE]...",
	  .opts = usage_opts, .groups = { opts_list }, .max_args = -1, .run = cmd_usage },
	{ .name = "report", .summary = "Report use: GPU-hours, waste, cost", .synopsis = "",
	  .opts = report_opts, .groups = { opts_list }, .run = cmd_report },
	{ .name = "apply", .summary = "Apply a site file: queues, pools, limits", .synopsis = "-f FILE",
	  .opts = apply_opts, .groups = { opts_help }, .run = cmd_apply },
	{ .name = "drain", .summary = "Drain nodes: start no more jobs on them", .synopsis = "NODE...",
	  .opts = drain_opts, .groups = { nodes_act_opts, opts_help }, .min_args = 1, .max_args = -1, .run = cmd_drain },
	{ .name = "resume", .summary = "Return drained nodes to service", .synopsis = "NODE...",
	  .groups = { nodes_act_opts, opts_help }, .min_args = 1, .max_args = -1, .run = cmd_resume },
	{ .name = "export", .summary = "Print the site file, or the live state as a scenario", .synopsis = "",
	  .opts = export_opts, .groups = { opts_help }, .run = cmd_export },
	{ .name = "import", .summary = "Convert Kueue's queues to a site file", .synopsis = "kueue FILE...",
	  .opts = import_opts, .groups = { opts_help }, .min_args = 2, .max_args = -1, .run = cmd_import },
	{ .name = "reserve", .summary = "Create, change or delete a reservation", .synopsis = "[NAME]",
	  .opts = reserve_opts, .groups = { opts_help }, .max_args = -1, .run = cmd_reserve },
	{ .name = "reservations", .summary = "List reservations", .synopsis = "[NAME]...",
	  .opts = reservations_opts, .groups = { opts_list }, .max_args = -1, .run = cmd_reservations },
	{ .name = "pools", .summary = "List pools, and what was requested for those that grow", .synopsis = "[NAME]...",
	  .groups = { opts_list }, .max_args = -1, .run = cmd_pools },
	{ .name = "why", .summary = "Explain why jobs are pending, started or were preempted", .synopsis = "JOB...",
	  .opts = why_opts, .groups = { opts_help }, .takes_jobs = true, .min_args = 1, .max_args = -1, .run = cmd_why },
	{ .name = "plan", .summary = "Show when and where a job would start, and what it would preempt", .synopsis = "FILE [ARGUMENT]... | -- COMMAND [ARGUMENT]...",
	  .opts = plan_opts, .groups = { opts_help }, .job_options = true, .stop_first = true, .max_args = -1, .run = cmd_plan },
	{ .name = "shares", .summary = "Show fair shares and use of queues and users", .synopsis = "[QUEUE]...",
	  .opts = shares_opts, .groups = { opts_list }, .max_args = -1, .run = cmd_shares },
	{ .name = "prio", .summary = "Show the priority terms of pending jobs", .synopsis = "[JOB]...",
	  .opts = prio_opts, .groups = { opts_list }, .takes_jobs = true, .max_args = -1, .run = cmd_prio },
	{ .name = "top", .summary = "Watch jobs, nodes and queues, full screen", .synopsis = "",
	  .opts = top_opts, .groups = { opts_help }, .run = cmd_top },
	{ .name = "diag", .summary = "Show internal statistics of the server", .synopsis = "",
	  .opts = diag_opts, .groups = { opts_help }, .run = cmd_diag },
	{ .name = "doctor", .summary = "Check client and server, and suggest remedies", .synopsis = "",
	  .opts = doctor_opts, .groups = { opts_help }, .run = cmd_doctor },
	{ .name = "backup", .summary = "Back up the server's database to a file", .synopsis = "FILE|- | --server-path PATH | list | verify [NAME]...",
	  .opts = backup_opts, .groups = { opts_help }, .min_args = 0, .max_args = -1, .run = cmd_backup },
	{ .name = "recover", .summary = "Show what is left to recover after a restore, or end the recovery", .synopsis = "",
	  .opts = recover_opts, .groups = { opts_help }, .run = cmd_recover },
	{ .name = "login", .summary = "Log in to a server on another machine", .synopsis = "[ADDRESS]",
	  .opts = login_opts, .groups = { opts_help }, .max_args = 1, .run = cmd_login },
	{ .name = "logout", .summary = "Forget the token and pin of a server", .synopsis = "[ADDRESS]",
	  .groups = { opts_help }, .max_args = 1, .run = cmd_logout },
	{ .name = "whoami", .summary = "Show the user and the rights that the server sees", .synopsis = "",
	  .opts = whoami_opts, .groups = { opts_help }, .run = cmd_whoami },
	{ .name = "token", .summary = "Create, list and revoke tokens", .synopsis = "[create | list | revoke ID...]",
	  .opts = token_opts, .groups = { opts_list }, .max_args = -1, .run = cmd_token },
	{ .name = "proxy", .summary = "Connect standard input and output to the server, for ssh", .synopsis = "",
	  .groups = { opts_help }, .run = cmd_proxy },
	{ .name = "version", .summary = "Print the versions of client and server", .synopsis = "",
	  .opts = version_opts, .groups = { opts_help }, .run = cmd_version },
	{ .name = "completion", .summary = "Print a shell completion script", .synopsis = "bash|zsh|fish",
	  .groups = { opts_help }, .min_args = 1, .max_args = 1, .run = cmd_completion },
	{ .name = "help", .summary = "Explain a command", .synopsis = "[COMMAND]",
	  .groups = { opts_help }, .max_args = 1, .run = cmd_help },
	{ .name = NULL },
};
/* clang-format on */

const struct command *commands_slurm(void)
{
	return slurm_commands();
}

const struct command *command_find(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (strcmp(c->name, name) == 0 || (c->alias && strcmp(c->alias, name) == 0))
			return c;
	return NULL;
}

static int no_command(const char *name)
{
	const char *names[64], *near;
	size_t n = 0;

	for (const struct command *c = commands; c->name && n < 63; c++)
		names[n++] = c->name;
	names[n] = NULL;
	near = gpuq_nearest(name, names);
	if (near)
		cli_say("no command %s; did you mean %s?", name, near);
	else
		cli_say("no command %s; gpuq help lists them", name);
	return EXIT_USAGE;
}

/* Where options are wrong, whether the command would have waited decides the code. */
static bool asks_to_wait(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--wait") == 0 || strcmp(argv[i], "-W") == 0)
			return true;
	return false;
}

static int run(struct cli *c, int argc, char **argv)
{
	const struct command *cmd = c->cmd;

	if (cmd->any_words)
		return cmd->run(c);
	if (opt_parse(cmd, argc, argv, cmd->stop_first, &c->args) < 0)
		return cmd->waits || (cmd->run == cmd_submit && asks_to_wait(argc, argv))
			       ? EXIT_SERVER
			       : EXIT_USAGE;
	if (opt_given(&c->args, OPT_HELP)) {
		help_print(cmd);
		return EXIT_DONE;
	}
	if (opt_given(&c->args, OPT_S_VERSION)) {
		puts(PACKAGE_NAME " " PACKAGE_VERSION);
		return EXIT_DONE;
	}
	if (c->args.n_rest < cmd->min_args)
		return cli_usage(c, "expected %s", cmd->synopsis);
	if (cmd->max_args >= 0 && c->args.n_rest > cmd->max_args)
		return cli_usage(c, "%s: one argument too many", c->args.rest[cmd->max_args]);
	return cmd->run(c);
}

/* The command line of c->cmd, from argv[at] on, which is its name. */
static int main_of(struct cli *c, int argc, char **argv)
{
	int code;

	c->args.arena = &c->arena;
	code = run(c, argc, argv);
	/* A failed write is a failure, but it does not replace a job's own exit code. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		cli_say("standard output: could not be written");
		if (code == EXIT_DONE)
			code = EXIT_REFUSED;
	}
	cli_disconnect(c);
	gpuq_arena_done(&c->arena);
	return code;
}

int cli_main(int argc, char **argv)
{
	struct cli c = { .cmd = slurm_find(argc, argv), .argv = argv };
	const char *server = NULL;
	int at = 1;

	if (c.cmd) {
		cli_say_as(c.cmd->name);
		return main_of(&c, argc, argv);
	}
	for (; at < argc && argv[at][0] == '-'; at++) {
		if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
			help_print(NULL);
			return EXIT_DONE;
		}
		if (strcmp(argv[at], "--version") == 0) {
			puts(PACKAGE_NAME " " PACKAGE_VERSION);
			return EXIT_DONE;
		}
		if (strncmp(argv[at], "--server=", 9) == 0) {
			server = argv[at] + 9;
		} else if (strcmp(argv[at], "--server") == 0 && at + 1 < argc) {
			server = argv[++at];
		} else if (strncmp(argv[at], "--ca=", 5) == 0) {
			servers_given.ca = argv[at] + 5;
		} else if (strcmp(argv[at], "--ca") == 0 && at + 1 < argc) {
			servers_given.ca = argv[++at];
		} else if (strncmp(argv[at], "--token-file=", 13) == 0) {
			servers_given.token_file = argv[at] + 13;
		} else if (strcmp(argv[at], "--token-file") == 0 && at + 1 < argc) {
			servers_given.token_file = argv[++at];
		} else {
			cli_say("%s: no such option here; gpuq help lists commands", argv[at]);
			return EXIT_USAGE;
		}
	}
	if (at >= argc) {
		cli_say("expected a command; gpuq help lists them");
		return EXIT_USAGE;
	}
	c.args.val[OPT_SERVER] = server;
	/* gpuq slurm squeue: without a link of that name. */
	if (strcmp(argv[at], "slurm") == 0 && at + 1 < argc) {
		at++;
		c.argv = argv + at;
		c.cmd = slurm_find(argc - at, argv + at);
		if (c.cmd)
			cli_say_as(c.cmd->name);
	} else {
		c.cmd = command_find(argv[at]);
	}
	if (!c.cmd)
		return no_command(argv[at]);
	return main_of(&c, argc - at, argv + at);
}
