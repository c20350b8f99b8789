/* sbatch, and srun outside of a job: gpuq submit and gpuq run in Slurm's words. */
#include "gpuq/slurm/slurm_submit.h"
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpuq/cmd/job/attend.h"
#include "gpuq/command.h"
#include "gpuq/file.h"
#include "gpuq/job.h"
#include "gpuq/term.h"
#include "gpuq/slurm/carry.h"
#include "gpuq/slurm/slurm.h"
#include "gpuq/slurm/slurm_command.h"
#include "gpuq/slurm/slurm_words.h"
#include "gpuq/slurm/slurm_salloc.h"
#include "gpuq/slurm/slurm_step.h"
#include "gpuq/cmd/job/stdio.h"
#include "gpuq/cmd/job/submission.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"

/* Variables precede the options of the command line. */
static const struct {
	const char *variable, *option;
	bool flag;
} inputs[] = {
	{ "ACCOUNT", "account", false },
	{ "ARRAY_INX", "array", false },
	{ "CONSTRAINT", "constraint", false },
	{ "CPUS_PER_GPU", "cpus-per-gpu", false },
	{ "CPUS_PER_TASK", "cpus-per-task", false },
	{ "ERROR", "error", false },
	{ "EXCLUDE", "exclude", false },
	{ "EXCLUSIVE", "exclusive", true },
	{ "EXPORT", "export", false },
	{ "GPUS", "gpus", false },
	{ "GPUS_PER_NODE", "gpus-per-node", false },
	{ "GPUS_PER_TASK", "gpus-per-task", false },
	{ "GRES", "gres", false },
	{ "JOB_NAME", "job-name", false },
	{ "INPUT", "input", false },
	{ "LICENSES", "licenses", false },
	{ "MEM_PER_CPU", "mem-per-cpu", false },
	{ "MEM_PER_GPU", "mem-per-gpu", false },
	{ "MEM_PER_NODE", "mem", false },
	{ "NODELIST", "nodelist", false },
	{ "NO_REQUEUE", "no-requeue", true },
	{ "NTASKS", "ntasks", false },
	{ "OPEN_MODE", "open-mode", false },
	{ "OUTPUT", "output", false },
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

bool slurm_environment(struct cli *c, const char *prefix, const char *name)
{
	const size_t room = sizeof(inputs) / sizeof(inputs[0]) + c->args.n_job + 4;
	const char **more = gpuq_arena_calloc(&c->arena, room, sizeof(*more));
	size_t n = 0;

	if (!more) {
		cli_say("out of memory");
		return false;
	}
	more[n++] = "--slurm-env";
	if (c->cmd->run == slurm_salloc) /* what it would be started again for is gone by then */
		more[n++] = "--no-requeue";
	if (name) /* unless something else says another */
		more[n++] = gpuq_arena_printf(&c->arena, "--job-name=%s", name);
	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		char variable[64];
		const char *value;

		snprintf(variable, sizeof(variable), "%s_%s", prefix, inputs[i].variable);
		value = getenv(variable);
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
static int test_only(struct cli *c, struct submission *s)
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
		slurm_time(&when, gpuq_get(start, "start_time"), "an unknown time");
		view_fold(&where, names, n);
		cli_say("Job would start at %s on %s in partition %s", gpuq_buf_str(&when),
			n ? gpuq_buf_str(&where) : "an unknown node",
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

bool slurm_is_local(const struct cli *c)
{
	const struct gpuq_val *info = c->conn ? gpuq_server_info(c->conn) : NULL;

	return strcmp(gpuq_get_str(gpuq_get(info, "cluster"), "kind", ""), "local") == 0;
}

/* Where jobs are processes that write files, those that name none write Slurm's. */
static void name_outputs(struct cli *c, struct submission *s)
{
	if (!slurm_is_local(c))
		return;
	for (size_t i = 0; i < s->specs.n; i++)
		if (!s->specs.items[i].output)
			s->specs.items[i].output = s->specs.items[i].array.n_ranges
							   ? "slurm-%A_%a.out"
							   : "slurm-%j.out";
}

/* Take the options of the script's own lines. */
static void take_asks(struct cli *c, unsigned asks)
{
	static const struct {
		enum gpuq_ask ask;
		enum opt_id id;
	} words[] = { { GPUQ_ASK_WAIT, OPT_S_WAIT },
		      { GPUQ_ASK_PARSABLE, OPT_PARSABLE },
		      { GPUQ_ASK_QUIET, OPT_S_QUIET },
		      { GPUQ_ASK_TEST_ONLY, OPT_DRY_RUN } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (asks & words[i].ask)
			c->args.val[words[i].id] = "";
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
	if (!slurm_environment(c, "SBATCH", given_job_option(c, "wrap") ? "wrap" : NULL))
		return 1;
	code = submission_read(c, &s);
	if (code < 0) {
		take_asks(c, s.specs.asks);
		name_outputs(c, &s);
	}
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

/* ---- srun ---- */

/* Is there something to read for the job's first task? */
static bool has_input(void)
{
	struct stat st;

	if (fstat(STDIN_FILENO, &st) < 0)
		return false;
	return S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode) || isatty(STDIN_FILENO);
}

/* The value of an option of the job, or NULL. */
static const char *job_option(const struct cli *c, const char *name)
{
	const size_t n = strlen(name);
	const char *found = NULL;

	for (size_t i = 0; i < c->args.n_job; i++)
		if (strncmp(c->args.job[i] + 2, name, n) == 0 && c->args.job[i][2 + n] == '=')
			found = c->args.job[i] + 3 + n;
	return found;
}

/* Several tasks, numbered lines, or MPI: the command starts by srun inside of the job, which is to
 * be had where jobs are processes of this machine. */
static int start_tasks(struct cli *c, struct gpuq_spec *spec)
{
	const char *each = job_option(c, "gpus-per-task"),
		   *bad = c->args.val[OPT_S_KILL_ON_BAD_EXIT], *mpi = c->args.val[OPT_S_MPI];
	struct gpuq_strlist *command = &spec->groups[0].command;
	const int64_t tasks = spec->ntasks ? spec->ntasks : 1;
	const char **more, *colon;
	char exe[4096];
	ssize_t len;
	size_t n = 0;

	if (tasks <= 1 && gpuq_spec_pods(spec) <= 1 && !opt_given(&c->args, OPT_S_LABEL) && !mpi)
		return 0;
	if (!slurm_is_local(c)) {
		if (tasks <= gpuq_spec_pods(spec))
			return 0; /* lines begin with their pod anyway */
		cli_say("error: a pod starts one task here: let the command start more of them "
			"(torchrun, mpirun), or run srun in salloc");
		return 1;
	}
	len = file_self(exe, sizeof(exe));
	more = gpuq_arena_calloc(&c->arena, command->n + 12, sizeof(*more));
	if (len <= 0 || !more) {
		cli_say("error: out of memory");
		return 1;
	}
	more[n++] = gpuq_arena_strdup(&c->arena, exe);
	more[n++] = "slurm";
	more[n++] = "srun";
	if (opt_given(&c->args, OPT_S_LABEL))
		more[n++] = "--label";
	if (each) {
		colon = strrchr(each, ':');
		more[n++] = gpuq_arena_printf(&c->arena, "--gpus-per-task=%s",
					      colon ? colon + 1 : each);
	}
	if (mpi)
		more[n++] = gpuq_arena_printf(&c->arena, "--mpi=%s", mpi);
	if (bad)
		more[n++] = gpuq_arena_printf(&c->arena, "--kill-on-bad-exit=%s", *bad ? bad : "1");
	more[n++] = "--";
	for (size_t i = 0; i < command->n; i++)
		more[n++] = command->items[i];
	command->items = more;
	command->n = n;
	return 0;
}

/* "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-11-28T10:00:00 DUE TO TIME LIMIT ***" */
static int say_end(void *arg, const struct gpuq_val *job)
{
	static const struct {
		enum gpuq_job_state state;
		const char *why;
	} ends[] = {
		{ GPUQ_JOB_TIMEOUT, " DUE TO TIME LIMIT" },
		{ GPUQ_JOB_DEADLINE, " DUE TO TIME LIMIT" },
		{ GPUQ_JOB_PREEMPTED, " DUE TO PREEMPTION" },
		{ GPUQ_JOB_NODE_FAIL, " DUE TO NODE FAILURE" },
		{ GPUQ_JOB_CANCELLED, "" },
	};
	const struct gpuq_val *pods = gpuq_get(job, "pods");
	const char *node = pods && pods->type == GPUQ_LIST && pods->n
				   ? gpuq_get_str(pods->items[0], "node", NULL)
				   : NULL;
	struct gpuq_buf text = GPUQ_BUF_INIT;

	(void)arg;
	for (size_t i = 0; view_job_started(job) && i < sizeof(ends) / sizeof(ends[0]); i++) {
		if ((int)ends[i].state != view_job_state(job))
			continue;
		gpuq_buf_printf(&text, "slurmstepd: error: *** STEP %" PRId64 ".0%s",
				gpuq_get_int(job, "id", 0), node ? " ON " : "");
		if (node)
			term_clean_str(&text, node);
		gpuq_buf_adds(&text, " CANCELLED AT ");
		slurm_time(&text, gpuq_get(job, "end_time"), "an unknown time");
		fflush(stdout);
		fprintf(stderr, "%s%s ***\n", gpuq_buf_str(&text), ends[i].why);
	}
	gpuq_buf_done(&text);
	return 1; /* it is one job */
}

int slurm_srun(struct cli *c)
{
	struct submission s = { .jobs = NULL };
	struct attend t = { .quiet = true, .ours = true, .output = true };
	struct stdio io = { .method = "job.attach", .keys = true };
	const bool pty = opt_given(&c->args, OPT_S_PTY);
	const int64_t immediate_us = slurm_immediate_us(c);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_spec *spec;
	int code;

	if (c->args.val[OPT_S_CARRY_TO])
		return carry_to(c->args.val[OPT_S_CARRY_TO]);
	if (immediate_us < 0 || !slurm_environment(c, "SLURM", NULL))
		return 1;
	if (!slurm_srun_command(c, &code))
		return code;
	c->args.dashes = true; /* all behind the options is the command */
	if (!c->args.val[OPT_LEASE])
		c->args.val[OPT_LEASE] = "60s"; /* it ends with us, however we end */
	if (pty)
		c->args.val[OPT_STDIN] = c->args.val[OPT_TTY] = "";
	code = submission_read(c, &s);
	if (code >= 0)
		return code == EXIT_SERVER || code == EXIT_DONE ? code : 1;
	spec = &s.specs.items[0];
	if (spec->array.n_ranges)
		return cli_usage(c, "--array: an array goes to sbatch"), 1;
	if (!stdio_options(c, &io, &code))
		return 1;
	if (!pty && start_tasks(c, spec))
		return 1;
	io.input = pty || (!spec->input && gpuq_spec_pods(spec) == 1 && has_input());
	spec->context.interactive = true;
	spec->input_open |= io.input;
	spec->tty |= pty;
	code = submission_send(c, &s, false);
	if (code >= 0)
		return code == EXIT_SERVER || code == EXIT_DONE ? code : 1;
	t.targets = submission_targets(c, &s, &t.n_targets);
	if (!t.targets) {
		cli_say("error: out of memory");
		return 1;
	}
	if (!slurm_wait_start(c, t.targets[0].id, immediate_us, opt_given(&c->args, OPT_S_QUIET),
			      &code) &&
	    code)
		return code;
	t.io = io.input ? &io : NULL;
	t.prefix = gpuq_spec_pods(spec) > 1;
	code = attend(c, &t);
	if (code == EXIT_TIME || code == EXIT_INFRA || code == EXIT_CANCELLED)
		job_for_each(c, t.targets[0].id, -1, say_end, NULL, &err);
	return code;
}
