/* Options of sbatch that are about nothing that a job has here: what becomes of each. The
 * command line and #SBATCH lines follow from these tables, and gpuq-slurm(7) shows them. */
#include "libgpuq/spec/spec_int.h"

/* clang-format off */

/* Options for the submitting program, in the order of enum gpuq_ask. */
const struct gpuq_spec_option spec_client_options[] = {
	{ "wait", 'W', 'n', NULL, "Wait until the job has ended" },
	{ "parsable", 0, 'n', NULL, "Print the bare job id" },
	{ "quiet", 'Q', 'n', NULL, "Print only errors" },
	{ "test-only", 0, 'n', NULL, "Print when and where it would start, submit nothing" },
	{ "verbose", 'v', 'n', NULL, "Print more messages" },
	{ .name = NULL },
};

/* Harmless to leave out: the job does the same without. */
const struct gpuq_spec_option gpuq_spec_unused[] = {
	{ "acctg-freq", 0, 'r', NULL, "the daemon measures use at its own rate" },
	{ "batch", 0, 'r', NULL, "a script runs in every pod, there is no batch node" },
	{ "clusters", 'M', 'r', NULL, "a server has one cluster; --server names another" },
	{ "consolidate-segments", 0, 'n', NULL, "use slices of a job file" },
	{ "contiguous", 0, 'n', NULL, "nodes have no order; --topology keeps pods together" },
	{ "core-spec", 'S', 'r', NULL, "no cores are set aside for the system" },
	{ "cores-per-socket", 0, 'r', NULL, "sockets of nodes are not known" },
	{ "cpu-freq", 0, 'r', NULL, "clock rates are not changed" },
	{ "delay-boot", 0, 'r', NULL, "nodes are not booted for a job" },
	{ "distribution", 'm', 'r', NULL, "tasks are numbered by blocks" },
	{ "extra", 0, 'r', NULL, "it applies to plugins of Slurm" },
	{ "extra-node-info", 'B', 'r', NULL, "sockets of nodes are not known" },
	{ "get-user-env", 0, 'o', NULL, "--export selects the environment" },
	{ "gpu-bind", 0, 'r', NULL, "tasks see the devices of their pod; --gpus-per-task gives each its own" },
	{ "gpu-freq", 0, 'r', NULL, "clock rates are not changed" },
	{ "gres-flags", 0, 'r', NULL, "devices are chosen by how they are linked" },
	{ "hint", 0, 'r', NULL, "tasks are not bound to cores" },
	{ "ignore-pbs", 0, 'n', NULL, "#PBS lines are remarks" },
	{ "immediate", 'I', 'o', NULL, "the job stays pending; --deadline and --start-timeout limit that" },
	{ "mcs-label", 0, 'r', NULL, "scripts, files and logs of a job are its owner's and the operators'; the rest is listed for all" },
	{ "mem-bind", 0, 'r', NULL, "memory is not bound" },
	{ "mincpus", 0, 'r', NULL, "use --cpus-per-task or --cpus" },
	{ "network", 0, 'r', NULL, "the network cannot be selected" },
	{ "no-kill", 'k', 'o', NULL, "a gang ends when one of its nodes is lost; elastic jobs shrink" },
	{ "ntasks-per-core", 0, 'r', NULL, "tasks are not bound to cores" },
	{ "ntasks-per-socket", 0, 'r', NULL, "sockets of nodes are not known" },
	{ "oom-kill-step", 0, 'o', NULL, "the kernel ends what exceeds the memory of its control group" },
	{ "overcommit", 'O', 'n', NULL, "CPUs are counted, not bound" },
	{ "oversubscribe", 's', 'n', NULL, "nodes are always shared; --gpu-memory shares devices" },
	{ "power", 0, 'r', NULL, "power is not managed" },
	{ "profile", 0, 'r', NULL, "profiles are not recorded; gpuq top shows the load" },
	{ "propagate", 0, 'o', NULL, "limits of the submitter's shell do not apply to jobs" },
	{ "reboot", 0, 'n', NULL, "nodes are not booted for a job" },
	{ "resv-ports", 0, 'o', NULL, "ports are not reserved" },
	{ "segment", 0, 'r', NULL, "use slices of a job file" },
	{ "sockets-per-node", 0, 'r', NULL, "sockets of nodes are not known" },
	{ "spread-job", 0, 'n', NULL, "the placement of the pool decides" },
	{ "spread-segments", 0, 'n', NULL, "use slices of a job file" },
	{ "stepmgr", 0, 'n', NULL, "steps are processes of the job" },
	{ "switches", 0, 'r', NULL, "--topology keeps pods in one domain of the network" },
	{ "thread-spec", 0, 'r', NULL, "no threads are set aside for the system" },
	{ "threads-per-core", 0, 'r', NULL, "tasks are not bound to cores" },
	{ "tmp", 0, 'r', NULL, "request ephemeral-storage by resources of a job file" },
	{ "tres-bind", 0, 'r', NULL, "tasks see the devices of their pod; --gpus-per-task gives each its own" },
	{ "use-min-nodes", 0, 'n', NULL, "use an elastic job" },
	{ "wait-all-nodes", 0, 'r', NULL, "a job runs when all its pods do" },
	{ "wckey", 0, 'r', NULL, "--account and --label are recorded" },
	{ .name = NULL },
};

/* Options that would change the job's meaning if they were ignored. */
const struct gpuq_spec_option gpuq_spec_refused[] = {
	{ "bb", 0, 'r', NULL, "there are no burst buffers: copy what is needed in the script, or mount it with --volume" },
	{ "bbf", 0, 'r', NULL, "there are no burst buffers: copy what is needed in the script, or mount it with --volume" },
	{ "cluster-constraint", 0, 'r', NULL, "a server has one cluster; --server names another" },
	{ "container", 0, 'r', NULL, "name an image with --image" },
	{ "container-id", 0, 'r', NULL, "name an image with --image" },
	{ "export-file", 0, 'r', NULL, "name the variables with --export or --env" },
	{ "gid", 0, 'r', NULL, "a job runs as the user who submits it" },
	{ "gpus-per-socket", 0, 'r', NULL, "use --gpus-per-node" },
	{ "nodefile", 'F', 'r', NULL, "name the nodes with --nodelist" },
	{ "tres-per-task", 0, 'r', NULL, "use --gpus-per-task, --cpus-per-task and --licenses" },
	{ "uid", 0, 'r', NULL, "a job runs as the user who submits it" },
	{ .name = NULL },
};
/* clang-format on */
