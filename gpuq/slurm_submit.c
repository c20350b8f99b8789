/* sbatch, and srun outside of a job: gpuq submit and gpuq run in Slurm's words. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuq/attend.h"
#include "gpuq/slurm.h"
#include "gpuq/submission.h"
#include "gpuq/view.h"

/* What the environment says stands behind what the command line says. */
static const struct {
	const char *variable, *option;
	bool flag;
} inputs[] = {
	{ "ACCOUNT", "account", false },
	{ "ARRAY_INX", "array", false },
	{ "CONSTRAINT", "constraint", false },
	{ "EXCLUSIVE", "exclusive", true },
	{ "EXPORT", "export", false },
	{ "GPUS", "gpus", false },
	{ "GPUS_PER_NODE", "gpus-per-node", false },
	{ "GPUS_PER_TASK", "gpus-per-task", false },
	{ "GRES", "gres", false },
	{ "JOB_NAME", "job-name", false },
	{ "MEM_PER_CPU", "mem-per-cpu", false },
	{ "MEM_PER_GPU", "mem-per-gpu", false },
	{ "NO_REQUEUE", "no-requeue", true },
	{ "OPEN_MODE", "open-mode", false },
	{ "PARTITION", "partition", false },
	{ "QOS", "qos", false },
	{ "REQUEUE", "requeue", true },
	{ "RESERVATION", "reservation", false },
	{ "SIGNAL", "signal", false },
	{ "TIMELIMIT", "time", false },
};

static bool given_job_option(const struct cli *c, const char *name)
{
	const size_t n = strlen(name);

	for (size_t i = 0; i < c->args.n_job; i++)
		if (strncmp(c->args.job[i] + 2, name, n) == 0 && c->args.job[i][2 + n] == '=')
			return true;
	return false;
}

static bool take_environment(struct cli *c, const char *prefix)
{
	const size_t room = sizeof(inputs) / sizeof(inputs[0]) + c->args.n_job + 3;
	const char **more = gpuq_arena_calloc(&c->arena, room, sizeof(*more));
	size_t n = 0;

	if (!more) {
		cli_say("out of memory");
		return false;
	}
	more[n++] = "--slurm-env";
	if (given_job_option(c, "wrap"))
		more[n++] = "--job-name=wrap"; /* unless something else says another */
	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		char name[64];
		const char *value;

		snprintf(name, sizeof(name), "%s_%s", prefix, inputs[i].variable);
		value = getenv(name);
		if (!value)
			continue;
		more[n] = inputs[i].flag ? gpuq_arena_printf(&c->arena, "--%s", inputs[i].option)
					 : gpuq_arena_printf(&c->arena, "--%s=%s", inputs[i].option,
							     value);
		n += more[n] != NULL;
	}
	for (size_t i = 0; i < c->args.n_job; i++)
		more[n++] = c->args.job[i];
	c->args.job = more;
	c->args.n_job = n;
	return true;
}

/* "sbatch: Job would start at ... on nodes n1 in partition ml" */
static int test_only(struct cli *c, const struct submission *s)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *params = submission_params(c, s, &err), *reply;
	const struct gpuq_val *plans;

	if (!params || cli_call(c, "plan.get", params, "", &reply, &err) < 0)
		return slurm_fail(&err);
	plans = gpuq_get(reply, "plans");
	for (size_t i = 0; plans && plans->type == GPUQ_LIST && i < plans->n; i++) {
		const struct gpuq_val *start = gpuq_get(plans->items[i], "start");
		const struct gpuq_val *pods = gpuq_get(start, "pods");
		struct gpuq_buf when = GPUQ_BUF_INIT, where = GPUQ_BUF_INIT;
		const char *names[256];
		size_t n = 0;

		for (; pods && pods->type == GPUQ_LIST && n < pods->n && n < 256; n++)
			names[n] = gpuq_get_str(pods->items[n], "node", "?");
		slurm_time(&when, gpuq_get(start, "start_time"), "a time that is not known");
		view_fold(&where, names, n);
		cli_say("Job would start at %s on %s in partition %s", gpuq_buf_str(&when),
			n ? gpuq_buf_str(&where) : "no node that is known",
			gpuq_get_str(gpuq_get(plans->items[i], "job"), "queue", "?"));
		gpuq_buf_done(&when);
		gpuq_buf_done(&where);
	}
	return EXIT_DONE;
}

/* The job's own code, and 1 for a signal and for what is no end of its own. */
static int slurm_code(int code)
{
	return code > 128 ? 1 : code;
}

/* Where jobs are processes that write files, those that name none write Slurm's. */
static void name_outputs(struct cli *c, struct submission *s)
{
	const struct gpuq_val *info = c->conn ? gpuq_server_info(c->conn) : NULL;

	if (strcmp(gpuq_get_str(gpuq_get(info, "cluster"), "kind", ""), "local") != 0)
		return;
	for (size_t i = 0; i < s->specs.n; i++)
		if (!s->specs.items[i].output)
			s->specs.items[i].output = s->specs.items[i].array.n_ranges
							   ? "slurm-%A_%a.out"
							   : "slurm-%j.out";
}

int slurm_sbatch(struct cli *c)
{
	static char dash[] = "-", *from_stdin[] = { dash, NULL };
	struct submission s = { .jobs = NULL };
	struct attend t = { .quiet = true };
	int code;

	if (c->args.n_rest == 0 && !given_job_option(c, "wrap")) {
		c->args.rest = from_stdin;
		c->args.n_rest = 1;
	}
	if (!take_environment(c, "SBATCH"))
		return 1;
	code = submission_read(c, &s);
	if (code < 0)
		name_outputs(c, &s);
	if (code < 0 && opt_given(&c->args, OPT_DRY_RUN))
		return test_only(c, &s);
	if (code < 0)
		code = submission_send(c, &s, false);
	if (code >= 0)
		return code == EXIT_SERVER || code == EXIT_DONE ? code : 1;
	for (size_t i = 0; i < s.jobs->n; i++) {
		const int64_t id = gpuq_get_int(s.jobs->items[i], "id", 0);

		if (opt_given(&c->args, OPT_PARSABLE))
			printf("%" PRId64 "\n", id);
		else if (!opt_given(&c->args, OPT_S_QUIET))
			printf("Submitted batch job %" PRId64 "\n", id);
	}
	fflush(stdout);
	if (!opt_given(&c->args, OPT_S_WAIT) && !getenv("SBATCH_WAIT"))
		return EXIT_DONE;
	t.targets = submission_targets(c, &s, &t.n_targets);
	if (!t.targets) {
		cli_say("out of memory");
		return 1;
	}
	return slurm_code(attend(c, &t));
}

int slurm_srun(struct cli *c)
{
	struct submission s = { .jobs = NULL };
	struct attend t = { .quiet = true, .ours = true, .output = true };
	int code;

	if (!take_environment(c, "SLURM"))
		return 1;
	c->args.dashes = true; /* all behind the options is the command */
	code = submission_read(c, &s);
	if (code < 0)
		code = submission_send(c, &s, false);
	if (code >= 0)
		return code == EXIT_SERVER || code == EXIT_DONE ? code : 1;
	t.targets = submission_targets(c, &s, &t.n_targets);
	if (!t.targets) {
		cli_say("out of memory");
		return 1;
	}
	if (!opt_given(&c->args, OPT_S_QUIET))
		cli_say("job %" PRId64 " queued", t.targets[0].id);
	t.prefix = gpuq_spec_pods(&s.specs.items[0]) > 1;
	return attend(c, &t);
}
