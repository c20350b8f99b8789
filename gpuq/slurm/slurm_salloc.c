/* salloc: a job that holds its devices while a command runs here.
 *
 * In its pods only something waits; srun starts programs there (slurm_step.c). The command
 * is ours, so it runs where salloc does, with the variables of the job; where jobs are
 * processes of this machine it sees the job's devices as well. A second process stays with
 * the job: that keeps its lease, and tells the command when the job has ended. */
#include "gpuq/slurm/slurm_salloc.h"
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpuq/cmd/job/follow.h"
#include "gpuq/command.h"
#include "gpuq/job.h"
#include "gpuq/slurm/slurm.h"
#include "gpuq/slurm/slurm_command.h"
#include "gpuq/slurm/slurm_words.h"
#include "gpuq/slurm/slurm_steps.h"
#include "gpuq/slurm/slurm_submit.h"
#include "gpuq/cmd/job/submission.h"
#include "gpuq/view.h"
#include "libgpuq/units.h"

extern char **environ;

#define SLOW_US (GPUQ_US_PER_S / 2) /* what starts within it did not wait */
#define BEGINS_US (GPUQ_US_PER_S - 1)
#define LEASE "30s"
#define KILL_AFTER_S 5
#define REVOKED 3 /* exit code of the process that watches the job */

/* It waits, and ends on a signal: with success by USR1, as failed by USR2. */
static const char *const holder[] = {
	"/bin/sh", "-c",
	"trap 'exit 0' USR1 TERM; trap 'exit 1' USR2; while :; do sleep 3600 & wait $!; done", NULL
};

int64_t slurm_immediate_us(const struct cli *c)
{
	const char *text = c->args.val[OPT_S_IMMEDIATE];
	char *end;
	long s = 1;

	if (!text)
		return 0;
	if (*text) {
		s = strtol(text, &end, 10);
		if (*end || s < 1 || s > 1000000) {
			cli_usage(c, "--immediate %s: expected a number of seconds", text);
			return -1;
		}
	}
	return s * GPUQ_US_PER_S;
}

void slurm_tell_job(struct cli *c, int64_t id, int signo)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *params = gpuq_map(a), *ids = gpuq_list(a), *reply;
	struct gpuq_err err = GPUQ_ERR_INIT;

	gpuq_add(a, ids, gpuq_str(a, gpuq_arena_printf(a, "%" PRId64, id)));
	gpuq_put(a, params, "ids", ids);
	if (signo)
		gpuq_put(a, params, "signal", gpuq_int(a, signo));
	if (cli_call(c, "job.cancel", params, NULL, &reply, &err) < 0)
		cli_say("error: %s", err.text);
}

bool slurm_wait_start(struct cli *c, int64_t id, int64_t immediate_us, bool quiet, int *code)
{
	const struct target target = { id, -1 };
	const int64_t now_us = cli_mono_us();
	struct follow f = { .c = c,
			    .targets = &target,
			    .n_targets = 1,
			    .begun_us = now_us,
			    .attempt = -1,
			    .quiet = quiet,
			    .start_by_us = immediate_us ? now_us + immediate_us : 0 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	enum follow_end end;
	bool started = false, slow = false;

	cli_signals_catch();
	f.until_us = now_us + SLOW_US;
	f.quiet = true;
	end = follow_wait(&f, true, &err);
	if (end == FOLLOW_TIMEOUT) {
		slow = true;
		if (!quiet && c->cmd->run == slurm_salloc)
			cli_say("Pending job allocation %" PRId64, id);
		if (!quiet)
			cli_say("job %" PRId64 " queued and waiting for resources", id);
		f.until_us = 0;
		f.quiet = quiet;
		end = follow_wait(&f, true, &err);
	}
	*code = 1;
	switch (end) {
	case FOLLOW_MET:
		started = f.board.n && f.board.items[0].started;
		/* Ended without a start: attend says how. */
		*code = started ? 0 : result_code(&f.board.items[0]);
		if (started && slow && !quiet)
			cli_say("job %" PRId64 " has been allocated resources", id);
		if (!started)
			cli_say("error: Job allocation %" PRId64 " has been revoked.", id);
		break;
	case FOLLOW_START_TIMEOUT:
		cli_say("error: Unable to allocate resources: Requested nodes are busy");
		slurm_tell_job(c, id, 0);
		break;
	case FOLLOW_SIGNAL:
		*code = 0;
		break;
	default:
		*code = slurm_fail(&err);
	}
	follow_done(&f);
	return started;
}

/* ---- what the command sees ---- */

static void set_job(const char *name, const char *text)
{
	char slurm[64];

	if (!text)
		return;
	snprintf(slurm, sizeof(slurm), "SLURM_%s", name);
	setenv(slurm, text, 1);
}

static void set_job_int(const char *name, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n);
	set_job(name, text);
}

struct surroundings {
	const struct gpuq_spec *spec;
	bool local;
	struct gpuq_buf nodes, folded;
};

/* Devices of all pods: on this machine they have the numbers that CUDA knows them by. */
static void set_devices(const struct surroundings *x, const struct gpuq_val *pods)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;

	for (size_t i = 0; i < pods->n; i++) {
		const struct gpuq_val *devices = gpuq_get(pods->items[i], "devices");

		for (size_t k = 0; devices && devices->type == GPUQ_LIST && k < devices->n; k++) {
			const int64_t index = gpuq_get_int(devices->items[k], "index", -1);

			if (index >= 0) /* it is known */
				gpuq_buf_printf(&text, "%s%" PRId64, text.len ? "," : "", index);
		}
	}
	if (text.len)
		set_job("JOB_GPUS", gpuq_buf_str(&text));
	if (x->local) {
		setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
		setenv("CUDA_VISIBLE_DEVICES", gpuq_buf_str(&text), 1);
	}
	gpuq_buf_done(&text);
}

/* Forget what the environment says of a job around this one. */
static void forget_outer(struct gpuq_arena *a)
{
	for (char **e = environ; *e;) {
		const size_t n = strcspn(*e, "=");
		const char *key = gpuq_arena_strndup(a, *e, n);

		if (key && gpuq_env_of_job(key) && unsetenv(key) == 0)
			continue; /* the next has its place */
		e++;
	}
}

static void set_memory(const struct gpuq_spec *spec, int64_t gpus)
{
	static const char prefix[] = "SLURM_";
	int64_t mib;
	const char *name = gpuq_spec_memory_variable(spec, &spec->groups[0], gpus, &mib);

	if (name)
		set_job_int(name + sizeof(prefix) - 1, mib);
}

static int take_job(void *arg, const struct gpuq_val *job)
{
	struct surroundings *x = arg;
	const struct gpuq_val *pods = gpuq_get(job, "pods");
	const int64_t n_pods = gpuq_get_int(job, "pod_count", 1);
	const struct gpuq_spec *spec = x->spec;
	char host[256] = "", cwd[4096], id[24];

	if (!pods || pods->type != GPUQ_LIST)
		return 1;
	for (size_t i = 0; i < pods->n; i++)
		gpuq_buf_printf(&x->nodes, "%s%s", i ? "," : "",
				gpuq_get_str(pods->items[i], "node", "?"));
	view_job_nodes(&x->folded, job);
	snprintf(id, sizeof(id), "%" PRId64, gpuq_get_int(job, "id", 0));
	setenv(SLURM_ALLOCATION, id, 1);
	set_job("JOB_ID", id);
	set_job("JOBID", id);
	set_job("JOB_NAME", gpuq_get_str(job, "name", NULL));
	set_job("JOB_USER", gpuq_get_str(job, "user", NULL));
	set_job("JOB_PARTITION", gpuq_get_str(job, "queue", NULL));
	set_job("JOB_ACCOUNT", gpuq_get_str(job, "account", NULL));
	set_job("JOB_QOS", gpuq_get_str(job, "qos", NULL));
	set_job("JOB_NODELIST", gpuq_buf_str(&x->nodes));
	set_job("NODELIST", gpuq_buf_str(&x->nodes));
	set_job_int("NNODES", n_pods);
	set_job_int("JOB_NUM_NODES", n_pods);
	set_job_int("NTASKS", spec->ntasks ? spec->ntasks : n_pods);
	set_job_int("NPROCS", spec->ntasks ? spec->ntasks : n_pods);
	if (spec->ntasks_per_node)
		set_job_int("NTASKS_PER_NODE", spec->ntasks_per_node);
	if (spec->cpus_per_task)
		set_job_int("CPUS_PER_TASK", spec->cpus_per_task);
	set_memory(spec, (int64_t)(view_number(gpuq_get(job, "gpus"), 0) / (double)n_pods));
	set_job_int("GPUS_ON_NODE",
		    (int64_t)(view_number(gpuq_get(job, "gpus"), 0) / (double)n_pods));
	set_job("CLUSTER_NAME", "gpuq");
	if (getcwd(cwd, sizeof(cwd)))
		set_job("SUBMIT_DIR", cwd);
	if (gethostname(host, sizeof(host) - 1) == 0)
		set_job("SUBMIT_HOST", host);
	set_devices(x, pods);
	steps_begin();
	return 1; /* the first alone */
}

/* ---- the command ---- */

static bool is_shell(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const size_t n = strlen(name);

	return n >= 2 && strcmp(name + n - 2, "sh") == 0;
}

static void on_term(int signo)
{
	(void)signo;
	_exit(REVOKED);
}

/* In a process of its own: stay with the job, and tell the command when it has ended. */
static pid_t watch(struct cli *c, int64_t id, pid_t command, int signo)
{
	const struct target target = { id, -1 };
	struct follow f = {
		.c = c, .targets = &target, .n_targets = 1, .attempt = 0, .quiet = true
	};
	struct gpuq_err err = GPUQ_ERR_INIT;
	const pid_t parent = getpid(), pid = cli_fork(SIG_IGN);
	enum follow_end end;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(0);
	end = follow_wait(&f, false, &err);
	if (end == FOLLOW_MET || end == FOLLOW_AGAIN) {
		signal(SIGTERM, on_term);
		cli_say("Job allocation %" PRId64 " has been revoked.", id);
		kill(command, signo);
		sleep(KILL_AFTER_S);
		kill(command, SIGKILL);
		_exit(REVOKED);
	} else {
		cli_say("error: %s: lost track of the job", err.text);
	}
	_exit(0);
}

static pid_t start(char **argv)
{
	const pid_t pid = cli_fork(SIG_DFL);

	if (pid != 0)
		return pid;
	signal(SIGQUIT, SIG_DFL);
	execvp(argv[0], argv);
	fprintf(stderr, "salloc: error: %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static int run_command(struct cli *c, int64_t id, char **argv, bool *revoked)
{
	const char *text = c->args.val[OPT_S_KILL_COMMAND];
	int signo = is_shell(argv[0]) && !argv[1] ? SIGHUP : SIGTERM, status = 0, seen = 0, got;
	pid_t command, watcher;

	if (text && *text)
		signo = gpuq_signal_number(text);
	if (signo == 0)
		return cli_usage(c, "--kill-command %s: expected a signal such as TERM", text), 1;
	cli_disconnect(c);
	/* ^C at a terminal is for the command. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	command = start(argv);
	if (command < 0) {
		cli_say("error: %s", strerror(errno));
		return 1;
	}
	watcher = watch(c, id, command, signo);
	while (waitpid(command, &status, 0) < 0 && errno == EINTR) {
		got = cli_signals_take();
		if (got)
			kill(command, got);
	}
	if (watcher > 0) {
		kill(watcher, SIGTERM);
		waitpid(watcher, &seen, 0);
		*revoked = WIFEXITED(seen) && WEXITSTATUS(seen) == REVOKED;
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The program in the pods must have set its signal handlers before it is signalled. */
static void let_it_begin(int64_t granted_us)
{
	const int64_t left_us = granted_us + BEGINS_US - cli_mono_us();

	const struct timespec left = { 0, left_us * 1000 };

	if (left_us > 0)
		nanosleep(&left, NULL);
}

static int hold(struct cli *c, const struct submission *s, int64_t id)
{
	const int64_t granted_us = cli_mono_us();
	struct surroundings x = { .spec = &s->specs.items[0], .local = slurm_is_local(c) };
	const bool quiet = opt_given(&c->args, OPT_S_QUIET);
	struct gpuq_err err = GPUQ_ERR_INIT;
	const char *shell = getenv("SHELL");
	char *alone[2] = { NULL, NULL }, **argv = c->args.rest;
	bool revoked = false;
	int rc, code;

	forget_outer(&c->arena);
	rc = job_for_each(c, id, -1, take_job, &x, &err);
	if (rc < 0)
		return slurm_fail(&err);
	if (!quiet) {
		cli_say("Granted job allocation %" PRId64, id);
		cli_say("Nodes %s are ready for job", gpuq_buf_str(&x.folded));
	}
	gpuq_buf_done(&x.nodes);
	gpuq_buf_done(&x.folded);
	if (opt_given(&c->args, OPT_S_NO_SHELL))
		return EXIT_DONE;
	if (c->args.n_rest == 0) {
		alone[0] = gpuq_arena_strdup(&c->arena, shell && *shell ? shell : "/bin/sh");
		argv = alone;
	}
	code = run_command(c, id, argv, &revoked);
	if (revoked)
		return code;
	if (!quiet)
		cli_say("Relinquishing job allocation %" PRId64, id);
	let_it_begin(granted_us);
	slurm_tell_job(c, id, code ? SIGUSR2 : SIGUSR1);
	return code;
}

static const char *name_of(int n, char **command)
{
	const char *slash = n ? strrchr(command[0], '/') : NULL;

	return n == 0 ? "interactive" : slash && slash[1] ? slash + 1 : command[0];
}

int slurm_salloc(struct cli *c)
{
	const bool quiet = opt_given(&c->args, OPT_S_QUIET);
	const int64_t immediate_us = slurm_immediate_us(c);
	char **command = c->args.rest;
	const int n_command = c->args.n_rest;
	struct submission s = { .jobs = NULL };
	int64_t id;
	int code;

	if (immediate_us < 0 || !slurm_environment(c, "SALLOC", name_of(n_command, command)))
		return 1;
	if (!opt_given(&c->args, OPT_S_NO_SHELL) && !c->args.val[OPT_LEASE])
		c->args.val[OPT_LEASE] = LEASE;
	c->args.rest = (char **)(uintptr_t)holder;
	c->args.n_rest = 3;
	c->args.dashes = true;
	code = submission_read(c, &s);
	c->args.rest = command;
	c->args.n_rest = n_command;
	if (code < 0 && s.specs.items[0].array.n_ranges)
		return cli_usage(c, "--array: an array goes to sbatch"), 1;
	if (code < 0) {
		s.specs.items[0].context.command = NULL; /* no user gave that of the holder */
		s.specs.items[0].context.interactive = true;
	}
	if (code < 0)
		code = submission_send(c, &s, false);
	if (code >= 0)
		return code == EXIT_SERVER || code == EXIT_DONE ? code : 1;
	id = gpuq_get_int(s.jobs->items[0], "id", 0);
	if (slurm_wait_start(c, id, immediate_us, quiet, &code))
		return hold(c, &s, id);
	if (code == 0) { /* a signal */
		cli_signals_take();
		cli_say("Job allocation %" PRId64 " has been revoked.", id);
		slurm_tell_job(c, id, 0);
		return 1;
	}
	return code == EXIT_SERVER ? code : 1;
}
