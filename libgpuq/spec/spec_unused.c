/* Options of sbatch that are about nothing that a job has here: what becomes of each. The
 * command line and #SBATCH lines follow from these tables, and gpuq-slurm(7) shows them. */
#include "libgpuq/spec/spec_int.h"

/* clang-format off */

/* What whoever submits the script is to do: the order is enum gpuq_ask's. */
const struct gpuq_spec_option spec_client_options[] = {
	{ "wait", 'W', 'n', NULL, "Wait until the job has ended" },
	{ "parsable", 0, 'n', NULL, "Print the bare job id" },
	{ "quiet", 'Q', 'n', NULL, "Print nothing but errors" },
	{ "test-only", 0, 'n', NULL, "Tell when and where it would start, submit nothing" },
	{ "verbose", 'v', 'n', NULL, "Tell more" },
	{ .name = NULL },
};

/* Harmless to leave out: the job does the same without. */
const struct gpuq_spec_option gpuq_spec_unused[] = {
	{ "acctg-freq", 0, 'r', NULL, "use is measured by the daemon, at its own rate" },
	{ "batch", 0, 'r', NULL, "a script runs in every pod, there is no batch node" },
	{ "clusters", 'M', 'r', NULL, "a server has one cluster; --server names another" },
	{ "contiguous", 0, 'n', NULL, "nodes have no order; --topology keeps pods together" },
	{ "core-spec", 'S', 'r', NULL, "no cores are set aside for the system" },
	{ "cores-per-socket", 0, 'r', NULL, "nodes do not tell their sockets" },
	{ "cpu-freq", 0, 'r', NULL, "clocks are left alone" },
	{ "delay-boot", 0, 'r', NULL, "nodes are not booted for a job" },
	{ "distribution", 'm', 'r', NULL, "tasks are numbered by blocks" },
	{ "extra", 0, 'r', NULL, "it is for plugins of Slurm" },
	{ "extra-node-info", 'B', 'r', NULL, "nodes do not tell their sockets" },
	{ "get-user-env", 0, 'o', NULL, "the environment is that of who submits, as --export says" },
	{ "gpu-bind", 0, 'r', NULL, "tasks see the devices of their pod; --gpus-per-task gives each its own" },
	{ "gpu-freq", 0, 'r', NULL, "clocks are left alone" },
	{ "gres-flags", 0, 'r', NULL, "devices are chosen by how they are linked" },
	{ "hint", 0, 'r', NULL, "tasks are not bound to cores" },
	{ "immediate", 'I', 'o', NULL, "the job waits; --deadline and --start-timeout bound that" },
	{ "mcs-label", 0, 'r', NULL, "only its owner, managers and operators see into a job" },
	{ "mem-bind", 0, 'r', NULL, "memory is not bound" },
	{ "mincpus", 0, 'r', NULL, "--cpus-per-task or --cpus says how many a pod has" },
	{ "network", 0, 'r', NULL, "there is nothing to choose" },
	{ "no-kill", 'k', 'o', NULL, "a gang ends when one of its nodes is lost; elastic jobs shrink" },
	{ "ntasks-per-core", 0, 'r', NULL, "tasks are not bound to cores" },
	{ "ntasks-per-socket", 0, 'r', NULL, "nodes do not tell their sockets" },
	{ "overcommit", 'O', 'n', NULL, "CPUs are counted, not bound" },
	{ "oversubscribe", 's', 'n', NULL, "nodes are shared anyway, their devices by --gpu-memory" },
	{ "power", 0, 'r', NULL, "there is nothing to choose" },
	{ "profile", 0, 'r', NULL, "gpuq top shows the load, no profile is kept" },
	{ "propagate", 0, 'o', NULL, "limits of the submitter's shell stay with it" },
	{ "reboot", 0, 'n', NULL, "nodes are not booted for a job" },
	{ "resv-ports", 0, 'o', NULL, "ports are not reserved" },
	{ "segment", 0, 'r', NULL, "a job file's slices say it" },
	{ "sockets-per-node", 0, 'r', NULL, "nodes do not tell their sockets" },
	{ "spread-job", 0, 'n', NULL, "a pool's placement says pack or spread" },
	{ "switches", 0, 'r', NULL, "--topology keeps pods in one domain of the network" },
	{ "thread-spec", 0, 'r', NULL, "no threads are set aside for the system" },
	{ "threads-per-core", 0, 'r', NULL, "tasks are not bound to cores" },
	{ "tmp", 0, 'r', NULL, "disks are not counted" },
	{ "use-min-nodes", 0, 'n', NULL, "an elastic job takes what there is" },
	{ "wait-all-nodes", 0, 'r', NULL, "a job runs when all its pods do" },
	{ "wckey", 0, 'r', NULL, "--account and --label are recorded" },
	{ .name = NULL },
};

/* What would make it another job than was asked for. */
const struct gpuq_spec_option gpuq_spec_refused[] = {
	{ "bb", 0, 'r', NULL, "there are no burst buffers: copy what is needed in the script, or mount it with --volume" },
	{ "bbf", 0, 'r', NULL, "there are no burst buffers: copy what is needed in the script, or mount it with --volume" },
	{ "container", 0, 'r', NULL, "name an image with --image" },
	{ "export-file", 0, 'r', NULL, "name the variables with --export or --env" },
	{ "gid", 0, 'r', NULL, "a job runs as the user who submits it" },
	{ "nodefile", 'F', 'r', NULL, "name the nodes with --nodelist" },
	{ "tres-per-task", 0, 'r', NULL, "say --gpus-per-task, --cpus-per-task and --licenses" },
	{ "uid", 0, 'r', NULL, "a job runs as the user who submits it" },
	{ .name = NULL },
};
/* clang-format on */
