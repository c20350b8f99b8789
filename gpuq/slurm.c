#include "gpuq/slurm.h"

#include <stdlib.h>
#include <string.h>

#include "libgpuq/spec.h"

/* Names and options. An option is a row that says which of gpuq's it is; OPT_S_NOTHING is
 * accepted and means nothing here. */

/* clang-format off */
#define END { 0, NULL, 0, 0, NULL, NULL }
#define NOTHING(name, letter, arg) { OPT_S_NOTHING, name, letter, arg, "VALUE", "is accepted, and means nothing here" }

static const struct opt which_jobs[] = {
	{ OPT_USERS, "user", 'u', ARG_MANY, "USERS", "jobs of these users" },
	{ OPT_USERS, "users", 0, ARG_MANY, "USERS", "same as --user" },
	{ OPT_ME, "me", 0, ARG_NONE, NULL, "my own jobs" },
	{ OPT_QUEUES, "partition", 'p', ARG_MANY, "QUEUES", "jobs of these queues" },
	{ OPT_QUEUES, "partitions", 0, ARG_MANY, "QUEUES", "same as --partition" },
	{ OPT_S_ACCOUNTS, "account", 'A', ARG_MANY, "ACCOUNTS", "jobs of these accounts" },
	{ OPT_S_ACCOUNTS, "accounts", 0, ARG_MANY, "ACCOUNTS", "same as --account" },
	{ OPT_S_QOS, "qos", 'q', ARG_MANY, "QOS", "jobs of these qualities of service" },
	{ OPT_NAMES, "name", 'n', ARG_MANY, "NAMES", "jobs with these names" },
	{ OPT_NODES, "nodelist", 'w', ARG_MANY, "NODES", "jobs on these nodes" },
	END
};

static const struct opt sbatch_opts[] = {
	{ OPT_HELP, "help", 'h', ARG_NONE, NULL, "print this help and exit" },
	{ OPT_PARSABLE, "parsable", 0, ARG_NONE, NULL, "print the bare job id" },
	{ OPT_S_WAIT, "wait", 'W', ARG_NONE, NULL, "wait until the job has ended; its exit code is ours" },
	{ OPT_S_QUIET, "quiet", 'Q', ARG_NONE, NULL, "print nothing but errors" },
	{ OPT_DRY_RUN, "test-only", 0, ARG_NONE, NULL, "tell when and where it would start, submit nothing" },
	{ OPT_IGNORE_UNKNOWN, "ignore-unknown", 0, ARG_NONE, NULL, "skip unknown #SBATCH options" },
	NOTHING("verbose", 'v', ARG_NONE),
	END
};

static const struct opt squeue_opts[] = {
	{ OPT_NO_HEADER, "noheader", 'h', ARG_NONE, NULL, "leave the header out" },
	{ OPT_FORMAT, "format", 'o', ARG_REQUIRED, "FORMAT", "columns by letter: %.18i %j" },
	{ OPT_S_FORMAT, "Format", 'O', ARG_REQUIRED, "FIELDS", "columns by word: JobID:18,Name" },
	{ OPT_SORT, "sort", 'S', ARG_REQUIRED, "LETTERS", "sort by these columns, -p is downwards" },
	{ OPT_JOBS, "jobs", 'j', ARG_MANY, "JOBS", "these jobs" },
	{ OPT_STATES, "states", 't', ARG_MANY, "STATES", "jobs in these states, or all" },
	{ OPT_LONG, "long", 'l', ARG_NONE, NULL, "more columns" },
	{ OPT_ARRAY, "array", 'r', ARG_NONE, NULL, "a line for each element of an array" },
	{ OPT_START, "start", 0, ARG_NONE, NULL, "when waiting jobs are expected to start" },
	{ OPT_WATCH, "iterate", 'i', ARG_REQUIRED, "SECONDS", "again and again" },
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "gpuq's objects, one a line" },
	NOTHING("all", 'a', ARG_NONE), NOTHING("clusters", 'M', ARG_REQUIRED), NOTHING("local", 0, ARG_NONE),
	NOTHING("federation", 0, ARG_NONE), NOTHING("hide", 0, ARG_NONE), NOTHING("sibling", 0, ARG_NONE),
	NOTHING("verbose", 'v', ARG_NONE),
	END
};

static const struct opt scancel_opts[] = {
	{ OPT_NAMES, "jobname", 0, ARG_MANY, "NAMES", "same as --name" },
	{ OPT_STATES, "state", 't', ARG_MANY, "STATES", "jobs in these states" },
	{ OPT_SIGNAL, "signal", 's', ARG_REQUIRED, "SIGNAL", "send this instead" },
	{ OPT_S_INTERACTIVE, "interactive", 'i', ARG_NONE, NULL, "ask for each job" },
	{ OPT_VERBOSE, "verbose", 'v', ARG_NONE, NULL, "tell what is done" },
	NOTHING("batch", 'b', ARG_NONE), NOTHING("full", 'f', ARG_NONE), NOTHING("hurry", 'H', ARG_NONE),
	NOTHING("quiet", 'Q', ARG_NONE), NOTHING("clusters", 'M', ARG_REQUIRED), NOTHING("ctld", 0, ARG_NONE),
	END
};

static const struct opt sinfo_opts[] = {
	{ OPT_NO_HEADER, "noheader", 'h', ARG_NONE, NULL, "leave the header out" },
	{ OPT_FORMAT, "format", 'o', ARG_REQUIRED, "FORMAT", "columns by letter: %n %G %t" },
	{ OPT_S_FORMAT, "Format", 'O', ARG_REQUIRED, "FIELDS", "columns by word: NodeList,Gres,StateCompact" },
	{ OPT_SORT, "sort", 'S', ARG_REQUIRED, "LETTERS", "sort by these columns" },
	{ OPT_S_BY_NODE, "Node", 'N', ARG_NONE, NULL, "a line for each node" },
	{ OPT_S_BY_NODE, "exact", 'e', ARG_NONE, NULL, "same as --Node" },
	{ OPT_SUMMARY, "summarize", 's', ARG_NONE, NULL, "a line for each partition" },
	{ OPT_REASON, "list-reasons", 'R', ARG_NONE, NULL, "nodes that are not used, and why" },
	{ OPT_LONG, "long", 'l', ARG_NONE, NULL, "more columns" },
	{ OPT_QUEUES, "partition", 'p', ARG_MANY, "QUEUES", "these queues" },
	{ OPT_STATES, "states", 't', ARG_MANY, "STATES", "nodes in these states" },
	{ OPT_NODES, "nodes", 'n', ARG_MANY, "NODES", "these nodes" },
	{ OPT_WATCH, "iterate", 'i', ARG_REQUIRED, "SECONDS", "again and again" },
	NOTHING("all", 'a', ARG_NONE), NOTHING("clusters", 'M', ARG_REQUIRED), NOTHING("local", 0, ARG_NONE),
	NOTHING("responding", 'r', ARG_NONE), NOTHING("verbose", 'v', ARG_NONE),
	END
};

static const struct opt sacct_opts[] = {
	{ OPT_S_ALLOCATIONS, "allocations", 'X', ARG_NONE, NULL, "no lines of batch steps" },
	{ OPT_JOBS, "jobs", 'j', ARG_MANY, "JOBS", "these jobs" },
	{ OPT_QUEUES, "partition", 'r', ARG_MANY, "QUEUES", "jobs of these queues" },
	{ OPT_SINCE, "starttime", 'S', ARG_REQUIRED, "TIME", "not those that ended before (today, or any time with --jobs)" },
	{ OPT_UNTIL, "endtime", 'E', ARG_REQUIRED, "TIME", "not those that ended after" },
	{ OPT_STATES, "state", 's', ARG_MANY, "STATES", "jobs in these states" },
	{ OPT_FORMAT, "format", 'o', ARG_MANY, "FIELDS", "columns: JobID,State%20,Elapsed" },
	{ OPT_S_BRIEF, "brief", 'b', ARG_NONE, NULL, "JobID, State and ExitCode" },
	{ OPT_LONG, "long", 'l', ARG_NONE, NULL, "more columns" },
	{ OPT_NO_HEADER, "noheader", 'n', ARG_NONE, NULL, "leave the header out" },
	{ OPT_PARSABLE, "parsable", 0, ARG_NONE, NULL, "columns end in |" },
	{ OPT_PARSABLE, "parsable1", 'p', ARG_NONE, NULL, "same as --parsable" },
	{ OPT_S_PARSABLE2, "parsable2", 'P', ARG_NONE, NULL, "columns are separated by |" },
	{ OPT_S_DELIMITER, "delimiter", 0, ARG_REQUIRED, "TEXT", "instead of |" },
	{ OPT_USERS, "uid", 'u', ARG_MANY, "USERS", "jobs of these users" },
	{ OPT_S_HELPFORMAT, "helpformat", 'e', ARG_NONE, NULL, "print the names of columns" },
	{ OPT_ALL, "allusers", 'a', ARG_NONE, NULL, "jobs of all users" },
	{ OPT_JSON, "json", 0, ARG_NONE, NULL, "gpuq's objects, one a line" },
	{ OPT_NODES, "nodelist", 'N', ARG_MANY, "NODES", "jobs on these nodes" },
	NOTHING("allclusters", 'L', ARG_NONE), NOTHING("clusters", 'M', ARG_REQUIRED),
	NOTHING("duplicates", 'D', ARG_NONE), NOTHING("truncate", 'T', ARG_NONE), NOTHING("units", 0, ARG_REQUIRED),
	NOTHING("verbose", 'v', ARG_NONE),
	END
};

static const struct opt scontrol_opts[] = {
	{ OPT_S_ONELINER, "oneliner", 'o', ARG_NONE, NULL, "a line for each object" },
	NOTHING("all", 'a', ARG_NONE), NOTHING("details", 'd', ARG_NONE), NOTHING("quiet", 'Q', ARG_NONE),
	NOTHING("verbose", 'v', ARG_NONE), NOTHING("clusters", 'M', ARG_REQUIRED),
	END
};

static const struct opt srun_opts[] = {
	{ OPT_HELP, "help", 'h', ARG_NONE, NULL, "print this help and exit" },
	{ OPT_S_QUIET, "quiet", 'Q', ARG_NONE, NULL, "print nothing but errors" },
	NOTHING("label", 'l', ARG_NONE), NOTHING("unbuffered", 'u', ARG_NONE), NOTHING("verbose", 'v', ARG_NONE),
	NOTHING("kill-on-bad-exit", 'K', ARG_OPTIONAL), NOTHING("mpi", 0, ARG_REQUIRED), NOTHING("cpu-bind", 0, ARG_REQUIRED),
	END
};

/* Of srun inside a job: what tasks of one pod may be told. */
static const struct opt step_opts[] = {
	{ OPT_HELP, "help", 'h', ARG_NONE, NULL, "print this help and exit" },
	{ OPT_S_NTASKS, "ntasks", 'n', ARG_REQUIRED, "N", "tasks of the whole job (as many as it has)" },
	{ OPT_S_PER_NODE, "ntasks-per-node", 0, ARG_REQUIRED, "N", "tasks of each pod" },
	{ OPT_S_NNODES, "nodes", 'N', ARG_REQUIRED, "N", "the first N pods only" },
	{ OPT_S_LABEL, "label", 'l', ARG_NONE, NULL, "begin each line with the number of its task" },
	{ OPT_S_CHDIR, "chdir", 'D', ARG_REQUIRED, "DIR", "run there" },
	{ OPT_S_GPUS_PER_TASK, "gpus-per-task", 0, ARG_REQUIRED, "N", "each task sees N devices of its own" },
	NOTHING("cpu-bind", 0, ARG_REQUIRED), NOTHING("cpus-per-task", 'c', ARG_REQUIRED), NOTHING("distribution", 'm', ARG_REQUIRED),
	NOTHING("exact", 0, ARG_NONE), NOTHING("exclusive", 0, ARG_OPTIONAL), NOTHING("export", 0, ARG_REQUIRED),
	NOTHING("gpu-bind", 0, ARG_REQUIRED), NOTHING("gpus", 'G', ARG_REQUIRED), NOTHING("gres", 0, ARG_REQUIRED),
	NOTHING("immediate", 'I', ARG_OPTIONAL), NOTHING("job-name", 'J', ARG_REQUIRED), NOTHING("kill-on-bad-exit", 'K', ARG_OPTIONAL),
	NOTHING("mem", 0, ARG_REQUIRED), NOTHING("mem-per-cpu", 0, ARG_REQUIRED), NOTHING("mpi", 0, ARG_REQUIRED),
	NOTHING("overlap", 0, ARG_NONE), NOTHING("oversubscribe", 's', ARG_NONE), NOTHING("quiet", 'Q', ARG_NONE),
	NOTHING("time", 't', ARG_REQUIRED), NOTHING("unbuffered", 'u', ARG_NONE), NOTHING("verbose", 'v', ARG_NONE),
	NOTHING("wait", 'W', ARG_REQUIRED), NOTHING("nodelist", 'w', ARG_REQUIRED), NOTHING("container-image", 0, ARG_REQUIRED),
	NOTHING("container-mounts", 0, ARG_REQUIRED), NOTHING("gpus-per-node", 0, ARG_REQUIRED), NOTHING("partition", 'p', ARG_REQUIRED),
	NOTHING("account", 'A', ARG_REQUIRED), NOTHING("threads-per-core", 0, ARG_REQUIRED), NOTHING("hint", 0, ARG_REQUIRED),
	END
};

static const struct command names[] = {
	{ .name = "sbatch", .summary = "Submit a script", .synopsis = "[SCRIPT [ARGUMENT]...]", .slurm = true,
	  .opts = sbatch_opts, .job_options = true, .stop_first = true, .max_args = -1, .run = slurm_sbatch },
	{ .name = "squeue", .summary = "List jobs that have not ended", .synopsis = "", .slurm = true,
	  .opts = squeue_opts, .groups = { which_jobs }, .run = slurm_squeue },
	{ .name = "scancel", .summary = "Cancel jobs, or send them a signal", .synopsis = "[JOB]...", .slurm = true,
	  .opts = scancel_opts, .groups = { which_jobs }, .max_args = -1, .run = slurm_scancel },
	{ .name = "sinfo", .summary = "List partitions and nodes", .synopsis = "", .slurm = true,
	  .opts = sinfo_opts, .run = slurm_sinfo },
	{ .name = "sacct", .summary = "List jobs, those that have ended too", .synopsis = "", .slurm = true,
	  .opts = sacct_opts, .groups = { which_jobs }, .run = slurm_sacct },
	{ .name = "scontrol", .summary = "Show and change jobs and nodes", .slurm = true,
	  .synopsis = "show job|node|partition|hostnames|hostlist [NAME] | hold|uhold|release|requeue|requeuehold JOB... | update KEY=VALUE... | ping | version",
	  .opts = scontrol_opts, .min_args = 1, .max_args = -1, .run = slurm_scontrol },
	{ .name = "srun", .summary = "Run a command as a job, and wait for it", .synopsis = "COMMAND [ARGUMENT]...", .slurm = true,
	  .opts = srun_opts, .job_options = true, .stop_first = true, .min_args = 1, .max_args = -1, .run = slurm_srun },
	{ .name = NULL },
};

static const struct command step = {
	.name = "srun", .summary = "Start the tasks of this pod of the job", .synopsis = "COMMAND [ARGUMENT]...", .slurm = true,
	.opts = step_opts, .stop_first = true, .min_args = 1, .max_args = -1, .run = slurm_step,
};
/* clang-format on */

const struct command *slurm_find(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (strcmp(name, "srun") == 0 && getenv("GPUQ_JOB_ID"))
		return &step;
	for (const struct command *c = names; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}
