/* The handling of each option of Slurm's commands: it works, as the row of one of gpuq's; it has
 * no effect to begin with (ANYWAY), is ignored with a warning (IGNORED) or refused (REFUSED),
 * and the row says why, or names an alternative. Options of jobs are in
 * libgpuq/spec/spec_options.c and spec_unused.c. gpuq-slurm(7) has these tables;
 * tests/sharness/slurm_tables.py compares. */
#include "gpuq/slurm/slurm_options.h"

/* clang-format off */
#define END { 0, NULL, 0, 0, NULL, NULL }
#define ANYWAY(name, letter, arg, why) { OPT_S_NOTHING, name, letter, arg, "VALUE", why }
#define IGNORED(name, letter, arg, why) { OPT_S_IGNORED, name, letter, arg, "VALUE", why }
#define REFUSED(name, letter, arg, why) { OPT_S_REFUSED, name, letter, arg, "VALUE", why }

#define ONE_CLUSTER "a server has one cluster; --server names another"

const struct opt slurm_common_opts[] = {
	IGNORED("clusters", 'M', ARG_REQUIRED, ONE_CLUSTER), ANYWAY("verbose", 'v', ARG_NONE, "accepted without effect"),
	{ OPT_HELP, "usage", 0, ARG_NONE, NULL, "same as --help" },
	{ OPT_S_VERSION, "version", 'V', ARG_NONE, NULL, "print the version" },
	ANYWAY("autocomplete", 0, ARG_REQUIRED, "accepted without effect; see gpuq completion"),
	END
};

const struct opt slurm_which_opts[] = {
	{ OPT_USERS, "user", 'u', ARG_MANY, "USERS", "jobs of these users" },
	{ OPT_USERS, "users", 0, ARG_MANY, "USERS", "same as --user" },
	{ OPT_ME, "me", 0, ARG_NONE, NULL, "the caller's jobs" },
	{ OPT_QUEUES, "partition", 'p', ARG_MANY, "QUEUES", "jobs of these queues" },
	{ OPT_QUEUES, "partitions", 0, ARG_MANY, "QUEUES", "same as --partition" },
	{ OPT_S_ACCOUNTS, "account", 'A', ARG_MANY, "ACCOUNTS", "jobs of these accounts" },
	{ OPT_S_ACCOUNTS, "accounts", 0, ARG_MANY, "ACCOUNTS", "same as --account" },
	{ OPT_S_QOS, "qos", 'q', ARG_MANY, "QOS", "jobs of these qualities of service" },
	{ OPT_NAMES, "name", 'n', ARG_MANY, "NAMES", "jobs with these names" },
	{ OPT_NODES, "nodelist", 'w', ARG_MANY, "NODES", "jobs on these nodes" },
	END
};

const struct opt sbatch_opts[] = {
	{ OPT_HELP, "help", 'h', ARG_NONE, NULL, "print this help and exit" },
	{ OPT_PARSABLE, "parsable", 0, ARG_NONE, NULL, "print the bare job id" },
	{ OPT_S_WAIT, "wait", 'W', ARG_NONE, NULL, "wait until the job has ended; exit with its exit code" },
	{ OPT_S_QUIET, "quiet", 'Q', ARG_NONE, NULL, "print only errors" },
	{ OPT_DRY_RUN, "test-only", 0, ARG_NONE, NULL, "print when and where it would start, submit nothing" },
	{ OPT_IGNORE_UNKNOWN, "ignore-unknown", 0, ARG_NONE, NULL, "skip unknown #SBATCH options" },
	REFUSED("het-group", 0, ARG_REQUIRED, "use a job file with groups"),
	END
};

const struct opt salloc_opts[] = {
	{ OPT_HELP, "help", 'h', ARG_NONE, NULL, "print this help and exit" },
	{ OPT_S_QUIET, "quiet", 'Q', ARG_NONE, NULL, "print only errors" },
	{ OPT_S_IMMEDIATE, "immediate", 'I', ARG_OPTIONAL, "SECONDS", "give up if it has not started within SECONDS (1)" },
	{ OPT_S_NO_SHELL, "no-shell", 0, ARG_NONE, NULL, "run nothing: the job holds its devices until it is cancelled" },
	{ OPT_S_KILL_COMMAND, "kill-command", 'K', ARG_OPTIONAL, "SIGNAL", "signal for the command when the job ends (TERM; shells: HUP)" },
	{ OPT_LEASE, "lease", 0, ARG_REQUIRED, "DURATION", "time for which the job outlives a killed salloc (30s)" },
	ANYWAY("no-bell", 0, ARG_NONE, "accepted without effect; there is no bell"), IGNORED("bell", 0, ARG_NONE, "there is no bell"),
	IGNORED("wait", 'W', ARG_REQUIRED, "the job stays pending; --immediate limits that"),
	REFUSED("gpus-per-socket", 0, ARG_REQUIRED, "use --gpus-per-node"),
	REFUSED("het-group", 0, ARG_REQUIRED, "use a job file with groups"),
	REFUSED("x11", 0, ARG_OPTIONAL, "run ssh -X to the node, or gpuq port-forward"),
	END
};

const struct opt squeue_opts[] = {
	{ OPT_NO_HEADER, "noheader", 'h', ARG_NONE, NULL, "omit the header line" },
	{ OPT_FORMAT, "format", 'o', ARG_REQUIRED, "FORMAT", "columns by letter: %.18i %j" },
	{ OPT_S_FORMAT, "Format", 'O', ARG_REQUIRED, "FIELDS", "columns by word: JobID:18,Name" },
	{ OPT_SORT, "sort", 'S', ARG_REQUIRED, "LETTERS", "sort by these columns; -p sorts descending" },
	{ OPT_JOBS, "jobs", 'j', ARG_MANY, "JOBS", "these jobs" },
	{ OPT_JOBS, "job", 0, ARG_MANY, "JOBS", "same as --jobs" },
	{ OPT_STATES, "states", 't', ARG_MANY, "STATES", "jobs in these states, or all" },
	{ OPT_LONG, "long", 'l', ARG_NONE, NULL, "more columns" },
	{ OPT_ARRAY, "array", 'r', ARG_NONE, NULL, "a line for each element of an array" },
	{ OPT_START, "start", 0, ARG_NONE, NULL, "print expected start times of pending jobs" },
	{ OPT_WATCH, "iterate", 'i', ARG_REQUIRED, "SECONDS", "repeat every SECONDS" },
	{ OPT_S_NOTME, "notme", 0, ARG_NONE, NULL, "jobs of others" },
	{ OPT_JSON, "json", 0, ARG_OPTIONAL, "VALUE", "one object, as Slurm 24.11 prints it" },
	ANYWAY("all", 'a', ARG_NONE, "accepted without effect; all partitions are shown"), ANYWAY("array-unique", 0, ARG_NONE, "accepted without effect; pending elements share a line"),
	ANYWAY("expand-patterns", 0, ARG_NONE, "accepted without effect; see scontrol show job"),
	IGNORED("federation", 0, ARG_NONE, ONE_CLUSTER), ANYWAY("hide", 0, ARG_NONE, "accepted without effect; no partition is hidden"),
	ANYWAY("local", 0, ARG_NONE, ONE_CLUSTER), IGNORED("noconvert", 0, ARG_NONE, "sizes are not converted"),
	ANYWAY("only-job-state", 0, ARG_NONE, "accepted without effect"), ANYWAY("priority", 'P', ARG_NONE, "accepted without effect; a job has one partition"),
	IGNORED("sibling", 0, ARG_NONE, ONE_CLUSTER),
	REFUSED("licenses", 'L', ARG_REQUIRED, "gpuq why JOB names missing licenses"),
	REFUSED("reservation", 'R', ARG_REQUIRED, "gpuq reservations lists them"),
	REFUSED("steps", 's', ARG_OPTIONAL, "steps are not known to gpuqd"),
	REFUSED("yaml", 0, ARG_OPTIONAL, "use --json"),
	END
};

const struct opt scancel_opts[] = {
	{ OPT_NAMES, "jobname", 0, ARG_MANY, "NAMES", "same as --name" },
	{ OPT_STATES, "state", 't', ARG_MANY, "STATES", "jobs in these states" },
	{ OPT_STATES, "states", 0, ARG_MANY, "STATES", "same as --state" },
	{ OPT_SIGNAL, "signal", 's', ARG_REQUIRED, "SIGNAL", "send SIGNAL instead of ending the job" },
	{ OPT_S_INTERACTIVE, "interactive", 'i', ARG_NONE, NULL, "ask for confirmation of each job" },
	{ OPT_VERBOSE, "verbose", 'v', ARG_NONE, NULL, "print the number of jobs" },
	{ OPT_S_BATCH, "batch", 'b', ARG_NONE, NULL, "with --signal: to the script's shell alone" },
	ANYWAY("full", 'f', ARG_NONE, "a signal goes to the programs of a script, and to its shell where that catches it"),
	IGNORED("hurry", 'H', ARG_NONE, "there is nothing to stage out"), ANYWAY("quiet", 'Q', ARG_NONE, "accepted without effect; there is no output"),
	ANYWAY("ctld", 0, ARG_NONE, "accepted without effect; the daemon does it"), IGNORED("admin-comment", 0, ARG_REQUIRED, "gpuq events shows who cancelled"),
	IGNORED("sibling", 0, ARG_REQUIRED, ONE_CLUSTER),
	REFUSED("cron", 'c', ARG_NONE, "there are no cron jobs"),
	REFUSED("reservation", 'R', ARG_REQUIRED, "name the jobs"),
	REFUSED("wckey", 0, ARG_REQUIRED, "use gpuq cancel --labels"),
	END
};

const struct opt sinfo_opts[] = {
	{ OPT_NO_HEADER, "noheader", 'h', ARG_NONE, NULL, "omit the header line" },
	{ OPT_FORMAT, "format", 'o', ARG_REQUIRED, "FORMAT", "columns by letter: %n %G %t" },
	{ OPT_S_FORMAT, "Format", 'O', ARG_REQUIRED, "FIELDS", "columns by word: NodeList,Gres,StateCompact" },
	{ OPT_SORT, "sort", 'S', ARG_REQUIRED, "LETTERS", "sort by these columns" },
	{ OPT_S_BY_NODE, "Node", 'N', ARG_NONE, NULL, "a line for each node" },
	{ OPT_SUMMARY, "summarize", 's', ARG_NONE, NULL, "a line for each partition" },
	{ OPT_REASON, "list-reasons", 'R', ARG_NONE, NULL, "unavailable nodes and reasons" },
	{ OPT_LONG, "long", 'l', ARG_NONE, NULL, "more columns" },
	{ OPT_QUEUES, "partition", 'p', ARG_MANY, "QUEUES", "these queues" },
	{ OPT_STATES, "states", 't', ARG_MANY, "STATES", "nodes in these states" },
	{ OPT_NODES, "nodes", 'n', ARG_MANY, "NODES", "these nodes" },
	{ OPT_S_DEAD, "dead", 'd', ARG_NONE, NULL, "nodes that do not answer" },
	{ OPT_S_RESPONDING, "responding", 'r', ARG_NONE, NULL, "nodes that answer" },
	{ OPT_WATCH, "iterate", 'i', ARG_REQUIRED, "SECONDS", "repeat every SECONDS" },
	ANYWAY("all", 'a', ARG_NONE, "accepted without effect; all partitions are shown"), ANYWAY("exact", 'e', ARG_NONE, "accepted without effect; nodes of one line are always alike"),
	IGNORED("federation", 0, ARG_NONE, ONE_CLUSTER), ANYWAY("future", 'F', ARG_NONE, "accepted without effect"),
	ANYWAY("hide", 0, ARG_NONE, "accepted without effect; no partition is hidden"), ANYWAY("local", 0, ARG_NONE, ONE_CLUSTER),
	IGNORED("noconvert", 0, ARG_NONE, "sizes are not converted"),
	{ OPT_JSON, "json", 0, ARG_OPTIONAL, "VALUE", "one object, as Slurm 24.11 prints it" },
	REFUSED("reservation", 'T', ARG_NONE, "gpuq reservations lists them"), REFUSED("yaml", 0, ARG_OPTIONAL, "use --json"),
	END
};

const struct opt sacct_opts[] = {
	{ OPT_HELP, "help", 'h', ARG_NONE, NULL, "print this help and exit" },
	{ OPT_S_ALLOCATIONS, "allocations", 'X', ARG_NONE, NULL, "no lines of batch steps" },
	{ OPT_JOBS, "jobs", 'j', ARG_MANY, "JOBS", "these jobs" },
	{ OPT_QUEUES, "partition", 'r', ARG_MANY, "QUEUES", "jobs of these queues" },
	{ OPT_SINCE, "starttime", 'S', ARG_REQUIRED, "TIME", "only jobs that had not ended by TIME (today; any time with --jobs)" },
	{ OPT_UNTIL, "endtime", 'E', ARG_REQUIRED, "TIME", "only jobs that were submitted before TIME" },
	{ OPT_STATES, "state", 's', ARG_MANY, "STATES", "jobs in these states" },
	{ OPT_FORMAT, "format", 'o', ARG_MANY, "FIELDS", "columns: JobID,State%20,Elapsed" },
	{ OPT_S_BRIEF, "brief", 'b', ARG_NONE, NULL, "JobID, State and ExitCode" },
	{ OPT_LONG, "long", 'l', ARG_NONE, NULL, "more columns" },
	{ OPT_NO_HEADER, "noheader", 'n', ARG_NONE, NULL, "omit the header line" },
	{ OPT_PARSABLE, "parsable", 'p', ARG_NONE, NULL, "columns end in |" },
	{ OPT_S_PARSABLE2, "parsable2", 'P', ARG_NONE, NULL, "columns are separated by |" },
	{ OPT_S_DELIMITER, "delimiter", 0, ARG_REQUIRED, "TEXT", "delimiter instead of |" },
	{ OPT_USERS, "uid", 'u', ARG_MANY, "USERS", "jobs of these users" },
	{ OPT_S_HELPFORMAT, "helpformat", 'e', ARG_NONE, NULL, "print the names of columns" },
	{ OPT_ALL, "allusers", 'a', ARG_NONE, NULL, "jobs of all users" },
	{ OPT_JSON, "json", 0, ARG_OPTIONAL, "VALUE", "one object, as Slurm 24.11 prints it" },
	{ OPT_NODES, "nodelist", 'N', ARG_MANY, "NODES", "jobs on these nodes" },
	IGNORED("allclusters", 'L', ARG_NONE, ONE_CLUSTER), ANYWAY("array", 0, ARG_NONE, "accepted without effect; started elements have a line each"),
	ANYWAY("duplicates", 'D', ARG_NONE, "accepted without effect; ids are never reused"), ANYWAY("expand-patterns", 0, ARG_NONE, "accepted without effect; see scontrol show job"),
	ANYWAY("federation", 0, ARG_NONE, ONE_CLUSTER), ANYWAY("local", 0, ARG_NONE, ONE_CLUSTER),
	ANYWAY("noconvert", 0, ARG_NONE, "sizes are not converted"), IGNORED("truncate", 'T', ARG_NONE, "times are not truncated"),
	IGNORED("units", 0, ARG_REQUIRED, "sizes are not converted"), ANYWAY("whole-hetjob", 0, ARG_OPTIONAL, "accepted without effect"),
	REFUSED("associations", 'x', ARG_REQUIRED, "use --user and --account"),
	REFUSED("batch-script", 'B', ARG_NONE, "use scontrol write batch_script JOB -"),
	REFUSED("completion", 'c', ARG_NONE, "there is only this history"), REFUSED("env-vars", 0, ARG_NONE, "environments are not shown"),
	REFUSED("file", 'f', ARG_REQUIRED, "jobs are read from the server only"), REFUSED("flags", 'F', ARG_REQUIRED, "jobs carry no scheduling flags"),
	REFUSED("gid", 'g', ARG_REQUIRED, "use --user"), REFUSED("group", 0, ARG_REQUIRED, "use --user"),
	REFUSED("ncpus", 'I', ARG_REQUIRED, "filter what --parsable2 prints"), REFUSED("nnodes", 'i', ARG_REQUIRED, "filter what --parsable2 prints"),
	REFUSED("reason", 'R', ARG_REQUIRED, "filter what --parsable2 prints"),
	REFUSED("timelimit-max", 'K', ARG_REQUIRED, "filter what --parsable2 prints"), REFUSED("timelimit-min", 'k', ARG_REQUIRED, "filter what --parsable2 prints"),
	REFUSED("wckeys", 'W', ARG_REQUIRED, "use gpuq history --labels"), REFUSED("yaml", 0, ARG_OPTIONAL, "use --json"),
	END
};

const struct opt scontrol_opts[] = {
	{ OPT_HELP, "help", 'h', ARG_NONE, NULL, "print this help and exit" },
	{ OPT_S_ONELINER, "oneliner", 'o', ARG_NONE, NULL, "a line for each object" },
	ANYWAY("all", 'a', ARG_NONE, "accepted without effect; all partitions are shown"), ANYWAY("details", 'd', ARG_NONE, "accepted without effect; all details are shown"),
	IGNORED("federation", 0, ARG_NONE, ONE_CLUSTER), ANYWAY("future", 'F', ARG_NONE, "accepted without effect"),
	ANYWAY("hide", 0, ARG_NONE, "accepted without effect; no partition is hidden"), ANYWAY("local", 0, ARG_NONE, ONE_CLUSTER),
	ANYWAY("quiet", 'Q', ARG_NONE, "accepted without effect; there is no output"), IGNORED("sibling", 0, ARG_NONE, ONE_CLUSTER),
	REFUSED("json", 0, ARG_OPTIONAL, "gpuq status JOB --json and gpuq nodes --json have objects"),
	REFUSED("uid", 'u', ARG_REQUIRED, "operators may act on every job"), REFUSED("yaml", 0, ARG_OPTIONAL, "see gpuq status JOB --json"),
	END
};

/* Options that both forms of srun share. */
#define SRUN_IGNORED \
	IGNORED("accel-bind", 0, ARG_REQUIRED, "tasks see the devices of their pod"), \
	IGNORED("compress", 0, ARG_OPTIONAL, "nothing is copied"), \
	IGNORED("cpu-bind", 0, ARG_REQUIRED, "tasks are not bound to cores"), \
	IGNORED("disable-status", 'X', ARG_NONE, "an interrupt ends the tasks"), \
	IGNORED("external", 0, ARG_NONE, "steps are processes of the job"), \
	IGNORED("msg-timeout", 0, ARG_REQUIRED, "there are no messages"), \
	IGNORED("preserve-env", 'E', ARG_NONE, "the environment is set for each step"), \
	IGNORED("quit-on-interrupt", 0, ARG_NONE, "an interrupt ends the tasks"), \
	IGNORED("send-libs", 0, ARG_OPTIONAL, "nothing is copied"), \
	IGNORED("slurmd-debug", 0, ARG_REQUIRED, "there is no slurmd"), \
	ANYWAY("stepmgr", 0, ARG_NONE, "steps are processes of the job"), \
	IGNORED("threads", 'T', ARG_REQUIRED, "tasks are started one at a time"), \
	IGNORED("tree-width", 0, ARG_REQUIRED, "tasks are started one at a time"), \
	IGNORED("treewidth", 0, ARG_REQUIRED, "tasks are started one at a time"), \
	ANYWAY("unbuffered", 'u', ARG_NONE, "accepted without effect; lines are never buffered"), \
	ANYWAY("whole", 0, ARG_NONE, "tasks see the devices of their pod"), \
	REFUSED("bcast", 0, ARG_OPTIONAL, "copy the file in the command, or mount it with --volume"), \
	REFUSED("epilog", 0, ARG_REQUIRED, "run it in the command"), \
	REFUSED("het-group", 0, ARG_REQUIRED, "use a job file with groups"), \
	REFUSED("multi-prog", 0, ARG_NONE, "use a script that evaluates SLURM_PROCID"), \
	REFUSED("no-allocate", 'Z', ARG_NONE, "nothing runs without a job"), \
	REFUSED("prolog", 0, ARG_REQUIRED, "run it in the command"), \
	REFUSED("relative", 'r', ARG_REQUIRED, "name the nodes with --nodelist"), \
	REFUSED("task-epilog", 0, ARG_REQUIRED, "run it in the command"), \
	REFUSED("task-prolog", 0, ARG_REQUIRED, "run it in the command"), \
	REFUSED("x11", 0, ARG_OPTIONAL, "run ssh -X to the node, or gpuq port-forward")

const struct opt srun_opts[] = {
	{ OPT_HELP, "help", 'h', ARG_NONE, NULL, "print this help and exit" },
	{ OPT_S_QUIET, "quiet", 'Q', ARG_NONE, NULL, "print only errors" },
	{ OPT_S_PTY, "pty", 0, ARG_OPTIONAL, "VALUE", "allocate a terminal, as gpuq run -it does" },
	{ OPT_S_IMMEDIATE, "immediate", 'I', ARG_OPTIONAL, "SECONDS", "give up if it has not started within SECONDS (1)" },
	{ OPT_S_JOBID, "jobid", 0, ARG_REQUIRED, "JOB", "run in this running job, with the options of srun inside a job" },
	{ OPT_S_LABEL, "label", 'l', ARG_NONE, NULL, "begin each line with the number of its task" },
	{ OPT_S_KILL_ON_BAD_EXIT, "kill-on-bad-exit", 'K', ARG_OPTIONAL, "0|1", "whether a task that fails ends the others (1)" },
	{ OPT_LEASE, "lease", 0, ARG_REQUIRED, "DURATION", "cancel the job when srun has been gone for DURATION" },
	{ OPT_S_MPI, "mpi", 0, ARG_REQUIRED, "TYPE", "how MPI programs start; list prints the types (PMI, PMIx)" },
	{ OPT_S_CARRY_TO, "carry-to", 0, ARG_REQUIRED, "DIR", "copy gpuq there, to run in any image" },
	IGNORED("overlap", 0, ARG_NONE, "srun outside a job creates a job of its own"), IGNORED("wait", 'W', ARG_REQUIRED, "tasks end when the first has failed"),
	IGNORED("interactive", 0, ARG_NONE, "use --pty"), IGNORED("exact", 0, ARG_NONE, "CPUs are counted, not bound"),
	REFUSED("gpus-per-socket", 0, ARG_REQUIRED, "use --gpus-per-node"),
	SRUN_IGNORED,
	END
};

const struct opt step_opts[] = {
	{ OPT_HELP, "help", 'h', ARG_NONE, NULL, "print this help and exit" },
	{ OPT_S_NTASKS, "ntasks", 'n', ARG_REQUIRED, "N", "tasks of the whole job (as many as it has)" },
	{ OPT_S_PER_NODE, "ntasks-per-node", 0, ARG_REQUIRED, "N", "tasks of each pod" },
	{ OPT_S_NNODES, "nodes", 'N', ARG_REQUIRED, "N", "the first N pods only" },
	{ OPT_S_NODELIST, "nodelist", 'w', ARG_MANY, "NODES", "the pods on these nodes only" },
	{ OPT_S_LABEL, "label", 'l', ARG_NONE, NULL, "begin each line with the number of its task" },
	{ OPT_S_CHDIR, "chdir", 'D', ARG_REQUIRED, "DIR", "run there" },
	{ OPT_S_EXPORT, "export", 0, ARG_REQUIRED, "LIST", "environment: ALL, NONE, or NAME[=VALUE],..." },
	{ OPT_S_GPUS_PER_TASK, "gpus-per-task", 0, ARG_REQUIRED, "N", "each task sees N devices of its own, which no other step has" },
	{ OPT_S_GPUS, "gpus", 'G', ARG_REQUIRED, "[TYPE:]N", "the step sees N devices that no other step has" },
	{ OPT_S_GPUS_PER_NODE, "gpus-per-node", 0, ARG_REQUIRED, "[TYPE:]N", "the step sees N devices of each pod that no other step has" },
	{ OPT_S_GRES, "gres", 0, ARG_REQUIRED, "gpu[:TYPE]:N", "same as --gpus-per-node; none: no device" },
	{ OPT_S_EXCLUSIVE, "exclusive", 0, ARG_OPTIONAL, "VALUE", "wait until other such steps leave the CPUs for its tasks" },
	{ OPT_S_EXACT, "exact", 0, ARG_NONE, NULL, "same as --exclusive" },
	{ OPT_S_CPUS_PER_TASK, "cpus-per-task", 'c', ARG_REQUIRED, "N", "CPUs of each task, for --exclusive" },
	{ OPT_S_OVERLAP, "overlap", 0, ARG_NONE, NULL, "see devices that other steps have as well" },
	{ OPT_S_INPUT, "input", 'i', ARG_REQUIRED, "FILE", "input file of the first task; none: no input" },
	{ OPT_S_OUTPUT, "output", 'o', ARG_REQUIRED, "FILE", "output file: %j %t %n %N %x %u; none: discard" },
	{ OPT_S_ERROR, "error", 'e', ARG_REQUIRED, "FILE", "error file (the output file)" },
	{ OPT_S_PTY, "pty", 0, ARG_OPTIONAL, "VALUE", "run only the first task, on a terminal" },
	{ OPT_S_JOBID, "jobid", 0, ARG_REQUIRED, "JOB", "run in this running job" },
	{ OPT_S_KILL_ON_BAD_EXIT, "kill-on-bad-exit", 'K', ARG_OPTIONAL, "0|1", "whether a task that fails ends the others (1)" },
	{ OPT_S_QUIET, "quiet", 'Q', ARG_NONE, NULL, "print only errors" },
	{ OPT_S_MPI, "mpi", 0, ARG_REQUIRED, "TYPE", "how MPI programs start; list prints the types (PMI, PMIx)" },
	{ OPT_S_OVERLAP, "oversubscribe", 's', ARG_NONE, NULL, "same as --overlap" },
	ANYWAY("job-name", 'J', ARG_REQUIRED, "steps are not recorded"), ANYWAY("comment", 0, ARG_REQUIRED, "steps are not recorded"),
	IGNORED("account", 'A', ARG_REQUIRED, "steps use that of the job"), IGNORED("partition", 'p', ARG_REQUIRED, "steps use that of the job"),
	IGNORED("qos", 'q', ARG_REQUIRED, "steps use that of the job"), IGNORED("reservation", 0, ARG_REQUIRED, "steps use that of the job"),
	IGNORED("constraint", 'C', ARG_REQUIRED, "the nodes of the job are fixed"), IGNORED("exclude", 'x', ARG_REQUIRED, "the nodes of the job are fixed"),
	IGNORED("container-image", 0, ARG_REQUIRED, "steps run in the container of their pod"), IGNORED("container-mounts", 0, ARG_REQUIRED, "steps run in the container of their pod"),
	IGNORED("container-name", 0, ARG_REQUIRED, "steps run in the container of their pod"), IGNORED("container-workdir", 0, ARG_REQUIRED, "use --chdir"),
	ANYWAY("cpus-per-gpu", 0, ARG_REQUIRED, "CPUs are counted for the job"),
	IGNORED("distribution", 'm', ARG_REQUIRED, "tasks are numbered by blocks"),
	IGNORED("gpu-bind", 0, ARG_REQUIRED, "--gpus-per-task gives each task its own"),
	IGNORED("hint", 0, ARG_REQUIRED, "tasks are not bound to cores"), IGNORED("immediate", 'I', ARG_OPTIONAL, "steps start at once"),
	IGNORED("interactive", 0, ARG_NONE, "use --pty"),
	IGNORED("mem", 0, ARG_REQUIRED, "memory is counted for the job"), IGNORED("mem-bind", 0, ARG_REQUIRED, "memory is not bound"),
	IGNORED("mem-per-cpu", 0, ARG_REQUIRED, "memory is counted for the job"), IGNORED("mem-per-gpu", 0, ARG_REQUIRED, "memory is counted for the job"),
	IGNORED("network", 0, ARG_REQUIRED, "the network cannot be selected"), IGNORED("open-mode", 0, ARG_REQUIRED, "files of steps are overwritten"),
	IGNORED("threads-per-core", 0, ARG_REQUIRED, "tasks are not bound to cores"),
	IGNORED("time", 't', ARG_REQUIRED, "the time limit is the job's"), IGNORED("wait", 'W', ARG_REQUIRED, "tasks end when the first has failed"),
	SRUN_IGNORED,
	END
};

const struct opt sshare_opts[] = {
	{ OPT_ALL, "all", 'a', ARG_NONE, NULL, "all users" },
	{ OPT_QUEUES, "accounts", 'A', ARG_MANY, "QUEUES", "these queues, with their parents and children" },
	{ OPT_LONG, "long", 'l', ARG_NONE, NULL, "more columns" },
	{ OPT_NO_HEADER, "noheader", 'n', ARG_NONE, NULL, "omit the header line" },
	{ OPT_NO_HEADER, "noheaders", 'h', ARG_NONE, NULL, "same as --noheader" },
	{ OPT_FORMAT, "format", 'o', ARG_REQUIRED, "COLS", "columns: Account%20,User,FairShare" },
	{ OPT_USERS, "users", 'u', ARG_MANY, "USERS", "only these users" },
	{ OPT_ME, "Users", 'U', ARG_NONE, NULL, "only the caller" },
	{ OPT_JSON, "json", 0, ARG_OPTIONAL, "VALUE", "gpuq's objects, one a line: gpuq-json(5)" },
	{ OPT_PARSABLE, "parsable", 'p', ARG_NONE, NULL, "columns end in |" },
	{ OPT_S_PARSABLE2, "parsable2", 'P', ARG_NONE, NULL, "columns are separated by |" },
	ANYWAY("partition", 'm', ARG_NONE, "queues are partitions"),
	END
};

const struct opt seff_opts[] = {
	ANYWAY("debug", 'd', ARG_NONE, "accepted without effect; there is nothing to show"),
	END
};

const struct opt sprio_opts[] = {
	{ OPT_NO_HEADER, "noheader", 'h', ARG_NONE, NULL, "omit the header line" },
	{ OPT_JOBS, "jobs", 'j', ARG_MANY, "JOBS", "these jobs" },
	{ OPT_FORMAT, "format", 'o', ARG_REQUIRED, "COLS", "columns by name or letter, as of gpuq prio" },
	{ OPT_QUEUES, "partition", 'p', ARG_MANY, "QUEUES", "jobs of these queues" },
	{ OPT_SORT, "sort", 'S', ARG_REQUIRED, "COLS", "sort by these columns" },
	{ OPT_USERS, "user", 'u', ARG_MANY, "USERS", "jobs of these users" },
	{ OPT_WEIGHTS, "weights", 'w', ARG_NONE, NULL, "print the weights of the terms" },
	{ OPT_JSON, "json", 0, ARG_OPTIONAL, "VALUE", "gpuq's objects, one a line: gpuq-json(5)" },
	ANYWAY("long", 'l', ARG_NONE, "accepted without effect; all terms are shown"), ANYWAY("local", 0, ARG_NONE, ONE_CLUSTER),
	IGNORED("federation", 0, ARG_NONE, ONE_CLUSTER), IGNORED("sibling", 0, ARG_NONE, ONE_CLUSTER),
	REFUSED("norm", 'n', ARG_NONE, "points are not normalized"),
	END
};

const struct opt sacctmgr_opts[] = {
	{ OPT_NO_HEADER, "noheader", 'n', ARG_NONE, NULL, "omit the header line" },
	{ OPT_PARSABLE, "parsable", 'p', ARG_NONE, NULL, "columns end in |" },
	{ OPT_S_PARSABLE2, "parsable2", 'P', ARG_NONE, NULL, "columns are separated by |" },
	{ OPT_S_ASSOC, "associations", 's', ARG_NONE, NULL, "a line for each account of a user" },
	ANYWAY("immediate", 'i', ARG_NONE, "accepted without effect"),
	ANYWAY("quiet", 'Q', ARG_NONE, "accepted without effect"), ANYWAY("readonly", 'r', ARG_NONE, "accepted without effect"),
	ANYWAY("oneliner", 'o', ARG_NONE, "accepted without effect"),
	END
};
/* clang-format on */
