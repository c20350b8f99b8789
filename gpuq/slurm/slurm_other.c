/* sshare, sprio and sacctmgr: the first two are gpuq shares and gpuq prio, whose columns are
 * theirs; of the third, and of those that are not offered, it is said which command of gpuq does
 * what they do. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gpuq/command.h"
#include "gpuq/slurm/slurm_command.h"

static int slurm_code(int code)
{
	return code == EXIT_DONE || code == EXIT_SERVER ? code : 1;
}

int slurm_sshare(struct cli *c)
{
	/* Without being told whose: one's own. */
	if (!opt_given(&c->args, OPT_ALL) && !opt_given(&c->args, OPT_USERS))
		c->args.val[OPT_ME] = "";
	return slurm_code(cmd_shares(c));
}

int slurm_sprio(struct cli *c)
{
	return slurm_code(cmd_prio(c));
}

/* ---- sacctmgr ---- */

static const struct {
	const char *entity; /* as many letters as tell it apart */
	const char *show, *change;
} entities[] = {
	{ "acc", "gpuq queues",
	  "gpuq apply changes queues; an account is recorded with a job and needs no record of its "
	  "own" },
	{ "ass", "gpuq shares, gpuq queues",
	  "gpuq apply changes who may use which queue, and with what limits" },
	{ "clus", "gpuq status", "a server has one cluster" },
	{ "conf", "gpuqd --print-config", "gpuqd.yaml(5)" },
	{ "coord", "gpuq export", "gpuq apply changes the managers of queues" },
	{ "event", "gpuq nodes, gpuq events --audit", "gpuq drain and gpuq resume" },
	{ "job", "gpuq history", "gpuq update changes jobs that have not ended" },
	{ "prob", "gpuq doctor", "see gpuq doctor" },
	{ "qos", "gpuq export", "gpuq apply changes qos" },
	{ "reso", "gpuq export", "gpuq apply changes licenses" },
	{ "reser", "gpuq reservations", "gpuq reserve" },
	{ "runaway", "gpuq doctor", "there are none: a job ends when its pods are gone" },
	{ "stats", "gpuq diag", "gpuq diag" },
	{ "trans", "gpuq events --audit", "see the changes of each object" },
	{ "tres", "gpuq nodes, gpuq export", "gpuq apply changes flavors" },
	{ "user", "gpuq shares, gpuq export", "gpuq apply changes users" },
	{ "wckey", "gpuq history --labels", "labels need no record of their own" },
};

int slurm_sacctmgr(struct cli *c)
{
	const char *verb = c->args.n_rest > 0 ? c->args.rest[0] : "";
	const char *entity = c->args.n_rest > 1 ? c->args.rest[1] : "";
	const bool shows = strcasecmp(verb, "show") == 0 || strcasecmp(verb, "list") == 0;

	if (strcasecmp(verb, "dump") == 0)
		cli_say("error: use gpuq export for the site file");
	else if (strcasecmp(verb, "load") == 0)
		cli_say("error: use gpuq apply -f FILE to apply a site file");
	else if (strcasecmp(verb, "ping") == 0)
		cli_say("error: use gpuq version or scontrol ping");
	else {
		for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++) {
			if (!*entity || strncasecmp(entities[i].entity, entity,
						    strlen(entities[i].entity)) != 0)
				continue;
			cli_say("error: there are no associations: see %s",
				shows ? entities[i].show : entities[i].change);
			return 1;
		}
		cli_say("error: there are no associations: gpuq queues, gpuq shares and gpuq "
			"export "
			"show what queues and users may have, gpuq apply changes it");
	}
	return 1;
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
