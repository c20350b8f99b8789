/* sprio, which is gpuq prio with its columns; and of the commands that are not offered, which command of
 * gpuq does what they do. */
#include <stdio.h>
#include <string.h>

#include "gpuq/command.h"
#include "gpuq/slurm/slurm_command.h"

static int slurm_code(int code)
{
	return code == EXIT_DONE || code == EXIT_SERVER ? code : 1;
}

int slurm_sprio(struct cli *c)
{
	return slurm_code(cmd_prio(c));
}

/* ---- those that are not offered ---- */

int slurm_elsewhere(struct cli *c)
{
	static const struct {
		const char *name, *instead;
	} names[] = {
		{ "sattach", "use gpuq attach JOB, or gpuq logs -f JOB to read only" },
		{ "sbcast", "mount the file with --volume, or copy it in the script" },
		{ "scrontab", "let cron run sbatch" },
		{ "sdiag", "use gpuq diag" },
		{ "sreport", "use gpuq report" },
		{ "sstat", "steps are not recorded: use gpuq status JOB" },
		{ "strigger", "use --mail-type, or notify of a job file" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].name, c->cmd->name) == 0)
			cli_say("error: not offered: %s", names[i].instead);
	return 1;
}
