/* The commands of Slurm by name. */
#include "gpuq/slurm/slurm.h"
#include "gpuq/command.h"
#include "gpuq/slurm/slurm_command.h"
#include "gpuq/slurm/slurm_step.h"
#include "gpuq/slurm/slurm_options.h"

#include <stdlib.h>
#include <string.h>

/* Commands that are not offered: one line says what to use. */
#define ELSEWHERE(called)                                                                          \
	{                                                                                          \
		.name = called, .summary = "Print the corresponding gpuq command", .synopsis = "", \
		.slurm = true, .any_words = true, .run = slurm_elsewhere                           \
	}

/* clang-format off */
static const struct command names[] = {
	{ .name = "sbatch", .summary = "Submit a script", .synopsis = "[SCRIPT [ARGUMENT]...]", .slurm = true,
	  .opts = sbatch_opts, .groups = { slurm_common_opts }, .job_options = true, .stop_first = true, .max_args = -1, .run = slurm_sbatch },
	{ .name = "salloc", .summary = "Allocate devices, and run a command or a shell meanwhile", .synopsis = "[COMMAND [ARGUMENT]...]", .slurm = true,
	  .opts = salloc_opts, .groups = { slurm_common_opts }, .job_options = true, .stop_first = true, .max_args = -1, .run = slurm_salloc },
	{ .name = "srun", .summary = "Run a command as a job and wait for it", .synopsis = "COMMAND [ARGUMENT]...", .slurm = true,
	  .opts = srun_opts, .groups = { slurm_common_opts }, .job_options = true, .stop_first = true, .max_args = -1, .run = slurm_srun },
	{ .name = "squeue", .summary = "List jobs that have not ended", .synopsis = "", .slurm = true,
	  .opts = squeue_opts, .groups = { slurm_which_opts, slurm_common_opts }, .run = slurm_squeue },
	{ .name = "scancel", .summary = "Cancel jobs, or send them a signal", .synopsis = "[JOB]...", .slurm = true,
	  .opts = scancel_opts, .groups = { slurm_which_opts, slurm_common_opts }, .max_args = -1, .run = slurm_scancel },
	{ .name = "sinfo", .summary = "List partitions and nodes", .synopsis = "", .slurm = true,
	  .opts = sinfo_opts, .groups = { slurm_common_opts }, .run = slurm_sinfo },
	{ .name = "sacct", .summary = "List jobs, including ended ones", .synopsis = "", .slurm = true,
	  .opts = sacct_opts, .groups = { slurm_which_opts, slurm_common_opts }, .run = slurm_sacct },
	{ .name = "scontrol", .summary = "Show and change jobs, nodes and partitions", .synopsis = "COMMAND [ARGUMENT]...", .slurm = true,
	  .opts = scontrol_opts, .groups = { slurm_common_opts }, .min_args = 1, .max_args = -1, .run = slurm_scontrol },
	{ .name = "sshare", .summary = "Show fair shares and use of queues and users", .synopsis = "", .slurm = true,
	  .opts = sshare_opts, .groups = { slurm_common_opts }, .run = slurm_sshare },
	{ .name = "seff", .summary = "Show how much of its request a job used", .synopsis = "JOB...", .slurm = true,
	  .opts = seff_opts, .groups = { slurm_common_opts }, .min_args = 1, .max_args = -1, .run = slurm_seff },
	{ .name = "sprio", .summary = "Show the priority terms of pending jobs", .synopsis = "", .slurm = true,
	  .opts = sprio_opts, .groups = { slurm_common_opts }, .run = slurm_sprio },
	{ .name = "sacctmgr", .summary = "List accounts, users, qos", .synopsis = "show ENTITY [NAME] [KEY=VALUE]...", .slurm = true,
	  .opts = sacctmgr_opts, .groups = { slurm_common_opts }, .max_args = -1, .run = slurm_sacctmgr },
	ELSEWHERE("sattach"),
	ELSEWHERE("sbcast"),
	ELSEWHERE("scrontab"),
	ELSEWHERE("sdiag"),
	ELSEWHERE("sreport"),
	ELSEWHERE("sstat"),
	ELSEWHERE("strigger"),
	{ .name = NULL },
};

/* Where srun starts tasks: inside of a job, and in pods of a job that runs. */
static const struct command step = {
	.name = "srun", .summary = "Start tasks in a running job", .synopsis = "COMMAND [ARGUMENT]...", .slurm = true,
	.opts = step_opts, .groups = { slurm_common_opts }, .stop_first = true, .max_args = -1, .run = slurm_step,
};
/* clang-format on */

/* srun --jobid=17: a step as well, from wherever. Options end at the first word. */
static bool names_job(int argc, char **argv)
{
	for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--jobid") == 0 || strncmp(argv[i], "--jobid=", 8) == 0)
			return true;
	return false;
}

const struct command *slurm_commands(void)
{
	return names;
}

const struct command *slurm_find(int argc, char **argv)
{
	const char *slash, *name;

	if (argc < 1)
		return NULL;
	slash = strrchr(argv[0], '/');
	name = slash ? slash + 1 : argv[0];
	if (strcmp(name, "srun") == 0 &&
	    (getenv("GPUQ_JOB_ID") || getenv(SLURM_ALLOCATION) || names_job(argc, argv)))
		return &step;
	for (const struct command *c = names; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}
