/* srun in a job that runs: tasks side by side.
 *
 * Inside of a pod it starts the tasks of that pod: a script runs once in every pod, so each
 * starts its own part. From outside, in what salloc runs or with --jobid, it starts the tasks
 * of all pods, each in a session with its pod (gpuq exec), so that it ends with the job. */
#include "gpuq/slurm/slurm_step.h"
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>
#include <unistd.h>

#include "gpuq/file.h"
#include "gpuq/filter.h"
#include "gpuq/job.h"
#include "gpuq/slurm/mpi/launch.h"
#include "gpuq/slurm/mpi/mpi.h"
#include "gpuq/slurm/mpi/spread.h"
#include "gpuq/slurm/slurm.h"
#include "gpuq/slurm/slurm_claim.h"
#include "gpuq/slurm/slurm_steps.h"
#include "gpuq/slurm/slurm_words.h"
#include "gpuq/slurm/slurm_submit.h"
#include "gpuq/slurm/slurm_tasks.h"
#include "gpuq/view.h"
#include "libgpuq/base/fnv.h"
#include "libgpuq/hostlist.h"
#include "libgpuq/spec.h"

#define PODS_MAX 4096

extern char **environ;

struct plan {
	struct cli *c;
	const char *job; /* from outside: its id; NULL = we are in one of its pods */
	long pods, pod; /* of the job; ours, from inside */
	long chosen[PODS_MAX], n_chosen; /* the pods that tasks start in */
	long ntasks, per_pod, gpus_per_task, step;
	bool local; /* from outside: its pods are processes of this machine */
	bool launched; /* the first pod alone runs the script, whose sruns start those of the others */
	bool alone; /* with the tasks of all */
	bool by_srun; /* from outside: an srun in each pod starts its tasks, which are one world there */
	char **command;
	struct mpi *mpi;
	pid_t *others; /* of spread.h */
	long n_others;
	bool mpi_served;
};

static long number(const char *text, long dflt)
{
	char *end;
	const long n = text && *text ? strtol(text, &end, 10) : -1;

	return n >= 0 && !*end ? n : dflt;
}

/* A variable of the job: its own name, or Slurm's, which salloc sets. */
static const char *of_job(const char *ours, const char *slurm)
{
	const char *text = getenv(ours);

	return text ? text : getenv(slurm);
}

/* ---- environment ---- */

static void set_number(const char *name, long n)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", n);
	setenv(name, text, 1);
}

/* Its share of the devices that this pod sees. */
static void set_devices(long local, long each)
{
	const char *all = getenv("CUDA_VISIBLE_DEVICES");
	struct gpuq_buf mine = GPUQ_BUF_INIT;
	long at = 0;

	while (all && *all) {
		const size_t n = strcspn(all, ",");

		if (at >= local * each && at < (local + 1) * each)
			gpuq_buf_printf(&mine, "%s%.*s", mine.len ? "," : "", (int)n, all);
		at++;
		all += n + (all[n] == ',');
	}
	setenv("CUDA_VISIBLE_DEVICES", gpuq_buf_str(&mine), 1);
	gpuq_buf_done(&mine);
}

/* Variables of the job, and those that programs cannot do without, stay whatever --export says. */
static bool is_kept(const char *entry)
{
	static const char *const kept[] = { "SLURM_", "GPUQ_", "CUDA_", "NVIDIA_",
					    "PATH=",  "HOME=", "USER=", "LOGNAME=" };

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (strncmp(entry, kept[i], strlen(kept[i])) == 0)
			return true;
	return false;
}

/* Is it named in the list, by "NAME" or "NAME=VALUE"? */
static bool is_named(const char *list, const char *entry)
{
	const size_t n = strcspn(entry, "=");

	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (strncmp(list, entry, n) == 0 &&
		    (list[n] == ',' || list[n] == '=' || list[n] == '\0'))
			return true;
	return false;
}

/* --export=ALL,A=b | NONE | A,B=c on our own environment. */
static void export_as(struct cli *c, const char *list)
{
	const bool all = !list || is_named(list, "ALL");
	char **kept = environ;

	if (!list)
		return;
	for (char **e = environ; *e && !all; e++)
		if (is_kept(*e) || is_named(list, *e))
			*kept++ = *e;
	if (!all)
		*kept = NULL;
	while (*list) {
		const size_t n = strcspn(list, ","), eq = strcspn(list, ",=");

		if (list[eq] == '=')
			setenv(gpuq_arena_strndup(&c->arena, list, eq),
			       gpuq_arena_strndup(&c->arena, list + eq + 1, n - eq - 1), 1);
		list += n + (list[n] == ',');
	}
}

/* ---- one task ---- */

static void set_task(const struct plan *p, long pod, long local, long rank)
{
	static const char *const places[][2] = { { "GPUQ_LOCALID", "SLURM_LOCALID" },
						 { "GPUQ_PROCID", "SLURM_PROCID" } };
	static const char *const of_jobs[][2] = { { "GPUQ_JOB_ID", "SLURM_JOB_ID" },
						  { "GPUQ_JOB_ID", "SLURM_JOBID" },
						  { "GPUQ_NODELIST", "SLURM_JOB_NODELIST" },
						  { "GPUQ_NODELIST", "SLURM_NODELIST" } };

	for (int i = 0; i < 2; i++) {
		set_number(places[0][i], local);
		set_number(places[1][i], rank);
	}
	/* Programs such as OpenMPI know srun by these, which the pods of other jobs than scripts lack. */
	for (size_t i = 0; i < sizeof(of_jobs) / sizeof(of_jobs[0]); i++)
		if (getenv(of_jobs[i][0]))
			setenv(of_jobs[i][1], getenv(of_jobs[i][0]), 0);
	set_number("SLURM_NODEID", pod);
	set_number("SLURM_NTASKS", p->ntasks);
	set_number("SLURM_NPROCS", p->ntasks);
	set_number("SLURM_STEP_NUM_TASKS", p->ntasks);
	set_number("SLURM_STEP_NUM_NODES", p->n_chosen);
	set_number("SLURM_STEP_ID", p->step);
	set_number("SLURM_STEPID", p->step);
}

static void __attribute__((noreturn)) become(char **command)
{
	execvp(command[0], command);
	fprintf(stderr, "srun: error: %s: %s\n", command[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static void move(const char *dir)
{
	if (!dir || chdir(dir) == 0)
		return;
	fprintf(stderr, "srun: error: %s: %s\n", dir, strerror(errno));
	_exit(1);
}

/* Which pod task i is started in (its place among the chosen), and its number there. */
static void place_of(const struct plan *p, long i, long *pod, long *local)
{
	const long each = p->by_srun ? 1 : p->per_pod;

	*pod = p->job ? p->chosen[i / each] : p->pod;
	*local = p->job ? i % each : i;
}

static long first_rank(const struct plan *p)
{
	long before = 0;

	while (!p->job && before < p->n_chosen && p->chosen[before] < p->pod)
		before++;
	return p->job ? 0 : before * p->per_pod;
}

static void __attribute__((noreturn)) become_inside(void *arg, long i)
{
	const struct plan *p = arg;
	long pod, local;

	place_of(p, i, &pod, &local);
	export_as(p->c, p->c->args.val[OPT_S_EXPORT]);
	set_task(p, pod, local, first_rank(p) + i);
	if (p->gpus_per_task > 0)
		set_devices(local, p->gpus_per_task);
	if (p->mpi)
		mpi_become(p->mpi, first_rank(p) + i);
	move(p->c->args.val[OPT_S_CHDIR]);
	become(p->command);
}

/* True if a variable is passed to a session in a pod: on the local cluster all but the job's
 * own, elsewhere those that --export names, and those of the task. */
static bool is_sent(const struct plan *p, const char *entry)
{
	static const char *const tasks[] = { "GPUQ_LOCALID=", "GPUQ_PROCID=",  "SLURM_LOCALID=",
					     "SLURM_PROCID=", "SLURM_NODEID=", "SLURM_NTASKS=",
					     "SLURM_NPROCS=", "SLURM_STEP",    "TERM=" };
	static const char *const theirs[] = { "GPUQ_", "SLURM_",  "CUDA_",  "NVIDIA_",
					      "PWD=",  "OLDPWD=", "SHLVL=", "_=" };
	const char *list = p->c->args.val[OPT_S_EXPORT];

	for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++)
		if (strncmp(entry, tasks[i], strlen(tasks[i])) == 0)
			return true;
	if ((list && is_named(list, entry)) || (p->mpi && mpi_is_variable(entry)))
		return true;
	for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++)
		if (strncmp(entry, theirs[i], strlen(theirs[i])) == 0)
			return false;
	return p->local && strlen(entry) < 4096;
}

#define SRUN_WORDS 12

/* The srun of a pod, with what decides on our plan and on how its tasks run. Returns how many words. */
static size_t put_srun(const struct plan *p, const char **argv)
{
	struct gpuq_arena *a = &p->c->arena;
	const char *const *val = p->c->args.val;
	size_t n = 0;

	argv[n++] = "/bin/sh";
	argv[n++] = "-c";
	argv[n++] = "PATH=$PATH:" GPUQ_STEPS_PATH "; export PATH; exec \"$@\"";
	argv[n++] = "sh";
	argv[n++] = "srun";
	argv[n++] = gpuq_arena_printf(a, "--mpi=%s", val[OPT_S_MPI]);
	argv[n++] = gpuq_arena_printf(a, "--ntasks=%ld", p->ntasks);
	argv[n++] = gpuq_arena_printf(a, "--ntasks-per-node=%ld", p->per_pod);
	if (val[OPT_S_NNODES])
		argv[n++] = gpuq_arena_printf(a, "--nodes=%s", val[OPT_S_NNODES]);
	if (val[OPT_S_NODELIST])
		argv[n++] = gpuq_arena_printf(a, "--nodelist=%s", val[OPT_S_NODELIST]);
	if (opt_given(&p->c->args, OPT_S_LABEL))
		argv[n++] = "--label";
	if (val[OPT_S_KILL_ON_BAD_EXIT] && *val[OPT_S_KILL_ON_BAD_EXIT] == '0')
		argv[n++] = "--kill-on-bad-exit=0";
	return n;
}

/* gpuq exec --pod=N JOB -- env NAME=VALUE... [srun OPTION...] COMMAND */
static void __attribute__((noreturn)) become_session(void *arg, long i)
{
	const struct plan *p = arg;
	struct gpuq_arena *a = &p->c->arena;
	const bool tty = opt_given(&p->c->args, OPT_S_PTY);
	const char *dir = p->c->args.val[OPT_S_CHDIR], *server = p->c->args.val[OPT_SERVER];
	size_t n_env = 0, n = 0, n_command = 0;
	char self[FILE_PATH_BYTES], *cwd = NULL;
	const char **argv;
	long pod, local;

	place_of(p, i, &pod, &local);
	export_as(p->c, p->c->args.val[OPT_S_EXPORT]);
	if (!p->by_srun)
		set_task(p, pod, local, i);
	if (p->mpi)
		mpi_become(p->mpi, i);
	while (environ[n_env])
		n_env++;
	while (p->command[n_command])
		n_command++;
	argv = gpuq_arena_calloc(a, n_env + n_command + SRUN_WORDS + 16, sizeof(*argv));
	if (!argv)
		_exit(1);
	argv[n++] = "gpuq";
	if (server)
		argv[n++] = gpuq_arena_printf(a, "--server=%s", server);
	argv[n++] = "exec";
	if (tty)
		argv[n++] = "-t";
	if (tty || i == 0)
		argv[n++] = "-i";
	argv[n++] = gpuq_arena_printf(a, "--pod=%ld", pod);
	argv[n++] = p->job;
	argv[n++] = "--";
	argv[n++] = "env";
	if (!dir && p->local)
		dir = cwd = getcwd(NULL, 0);
	if (dir)
		argv[n++] = gpuq_arena_printf(a, "--chdir=%s", dir);
	for (size_t k = 0; k < n_env; k++)
		if (is_sent(p, environ[k]))
			argv[n++] = environ[k];
	if (p->by_srun)
		n += put_srun(p, argv + n);
	for (size_t k = 0; k < n_command; k++)
		argv[n++] = p->command[k];
	free(cwd);
	if (file_self(self, sizeof(self)) > 0)
		execv(self, (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* ---- the plan ---- */

/* Marks of --output: as those of the job's own files, and of tasks. */
static const char *path_of(void *arg, const char *pattern, long i)
{
	const struct plan *p = arg;
	struct gpuq_buf out = GPUQ_BUF_INIT;
	const char *element = getenv("SLURM_ARRAY_TASK_ID");
	const char *id = p->job ? p->job : of_job("GPUQ_JOB_ID", "SLURM_JOB_ID"), *s;
	const char *master = of_job("GPUQ_ARRAY_JOB_ID", "SLURM_ARRAY_JOB_ID");
	long pod, local;

	/* In an element of an array, where gpuq's number is the array's. */
	if (!p->job && element && master && getenv("SLURM_ARRAY_JOB_ID") &&
	    strcmp(master, getenv("SLURM_ARRAY_JOB_ID")) == 0 && getenv("SLURM_JOB_ID"))
		id = getenv("SLURM_JOB_ID");
	place_of(p, i, &pod, &local);
	for (const char *q = pattern; *q; q++) {
		if (*q != '%' || !q[1]) {
			gpuq_buf_addc(&out, *q);
			continue;
		}
		switch (*++q) {
		case 'j':
		case 'J':
			gpuq_buf_adds(&out, id ? id : "0");
			if (*q == 'J')
				gpuq_buf_printf(&out, ".%ld", p->step);
			break;
		case 'A':
			gpuq_buf_adds(&out, master ? master : id ? id : "0");
			break;
		case 'a':
			gpuq_buf_adds(&out, element ? element : "0");
			break;
		case 't':
			gpuq_buf_printf(&out, "%ld", first_rank(p) + i);
			break;
		case 'n':
			gpuq_buf_printf(&out, "%ld", pod);
			break;
		case 's':
			gpuq_buf_printf(&out, "%ld", p->step);
			break;
		case 'N':
			s = of_job("GPUQ_NODE_NAME", "SLURMD_NODENAME");
			gpuq_buf_adds(&out, s ? s : "node");
			break;
		case 'x':
			s = of_job("GPUQ_JOB_NAME", "SLURM_JOB_NAME");
			gpuq_buf_adds(&out, s ? s : "job");
			break;
		case 'u':
			s = of_job("GPUQ_USER", "SLURM_JOB_USER");
			gpuq_buf_adds(&out, s ? s : getenv("USER") ? getenv("USER") : "user");
			break;
		case '%':
			gpuq_buf_addc(&out, '%');
			break;
		default:
			gpuq_buf_addc(&out, '%');
			gpuq_buf_addc(&out, *q);
		}
	}
	s = gpuq_arena_strdup(&p->c->arena, gpuq_buf_str(&out));
	gpuq_buf_done(&out);
	return s ? s : pattern;
}

/* The pods that --nodes and --nodelist leave; nodes is the node of each, by commas. */
static int choose(struct plan *p, const char *nodes)
{
	const struct args *args = &p->c->args;
	const long some = number(args->val[OPT_S_NNODES], p->pods);
	struct gpuq_val *wanted = gpuq_list(&p->c->arena);
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (args->val[OPT_S_NODELIST] && hostlist_expand(&p->c->arena, args->val[OPT_S_NODELIST],
							 HOSTLIST_GLOBS, wanted, &err) < 0)
		return slurm_fail(&err);
	for (long i = 0; i < p->pods && i < PODS_MAX && p->n_chosen < some; i++) {
		const size_t n = strcspn(nodes, ",");
		bool take = !args->val[OPT_S_NODELIST];

		for (size_t k = 0; k < wanted->n && !take; k++)
			take = strlen(wanted->items[k]->s) == n &&
			       strncmp(wanted->items[k]->s, nodes, n) == 0;
		if (take)
			p->chosen[p->n_chosen++] = i;
		nodes += n + (nodes[n] == ',');
	}
	if (p->n_chosen > 0)
		return 0;
	cli_say("error: the job has no pod on %s",
		args->val[OPT_S_NODELIST] ? args->val[OPT_S_NODELIST] : "that many nodes");
	return 1;
}

static int count(struct plan *p)
{
	const char *const *val = p->c->args.val;
	const char *of = of_job("GPUQ_NTASKS_PER_NODE", "SLURM_NTASKS_PER_NODE");
	const char *all = of_job("GPUQ_NTASKS", "SLURM_NTASKS");

	if (p->job && val[OPT_S_JOBID])
		of = all = NULL; /* those of another job, if any */
	if (p->alone)
		of = NULL;
	p->ntasks = number(val[OPT_S_NTASKS], 0);
	p->per_pod = number(val[OPT_S_PER_NODE], 0);
	if (!p->per_pod && p->ntasks)
		p->per_pod = (p->ntasks + p->n_chosen - 1) / p->n_chosen;
	if (!p->per_pod && of)
		p->per_pod = number(of, 1);
	if (!p->per_pod)
		p->per_pod = (number(all, p->pods) + p->pods - 1) / p->pods;
	if (!p->ntasks)
		p->ntasks = val[OPT_S_PER_NODE] || val[OPT_S_NNODES] || val[OPT_S_NODELIST]
				    ? p->per_pod * p->n_chosen
				    : number(all, p->per_pod * p->n_chosen);
	if (opt_given(&p->c->args, OPT_S_PTY))
		p->ntasks = 1;
	if (p->ntasks >= 1 && p->per_pod >= 1 && p->per_pod <= TASKS_MAX)
		return 0;
	return cli_usage(p->c, "expected 1 to %d tasks in one pod", TASKS_MAX), 1;
}

/* How many tasks the step has, in all pods. */
static long n_total(const struct plan *p)
{
	const long all = p->per_pod * p->n_chosen;

	return p->ntasks < all ? p->ntasks : all;
}

/* How many tasks this srun starts. */
static long ours(const struct plan *p)
{
	const long first = first_rank(p);
	bool here = p->job != NULL;

	for (long i = 0; i < p->n_chosen && !here; i++)
		here = p->chosen[i] == p->pod;
	if (!here || first >= p->ntasks)
		return 0;
	if (p->by_srun)
		return (n_total(p) - 1) / p->per_pod + 1;
	if (p->job)
		return n_total(p);
	return first + p->per_pod > p->ntasks ? p->ntasks - first : p->per_pod;
}

struct pods {
	struct gpuq_buf nodes;
	long n;
	const char *state;
};

static int take_pods(void *arg, const struct gpuq_val *job)
{
	struct pods *x = arg;
	const struct gpuq_val *pods = gpuq_get(job, "pods");

	for (size_t i = 0; pods && pods->type == GPUQ_LIST && i < pods->n; i++) {
		gpuq_buf_printf(&x->nodes, "%s%s", x->n ? "," : "",
				gpuq_get_str(pods->items[i], "node", "?"));
		x->n++;
	}
	x->state = slurm_state(job, true);
	return 1; /* the first alone */
}

static int plan_outside(struct plan *p)
{
	struct pods x = { .nodes = GPUQ_BUF_INIT, .state = "" };
	const char *mpi = p->c->args.val[OPT_S_MPI];
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t id, index;
	int rc = filter_id(p->job, &id, &index, &err);

	if (rc == 0)
		rc = job_for_each(p->c, id, index, take_pods, &x, &err);
	if (rc < 0) {
		gpuq_buf_done(&x.nodes);
		return slurm_fail_job(&err);
	}
	p->local = slurm_is_local(p->c);
	p->by_srun = !p->local && mpi && strcmp(mpi, "none") != 0;
	p->pods = x.n;
	if (strcmp(x.state, "R") != 0 || x.n == 0) {
		cli_say("error: job %s does not run: it is %s", p->job, x.state);
		rc = 1;
	} else if (p->c->args.val[OPT_S_GPUS_PER_TASK]) {
		cli_say("error: --gpus-per-task works inside of a job only: submit it with sbatch");
		rc = 1;
	} else {
		rc = choose(p, gpuq_buf_str(&x.nodes));
	}
	gpuq_buf_done(&x.nodes);
	/* The sessions have connections of their own. */
	cli_disconnect(p->c);
	return rc;
}

static int plan_inside(struct plan *p)
{
	const char *nodes = of_job("GPUQ_NODELIST", "SLURM_JOB_NODELIST");

	p->pods = number(getenv("GPUQ_NNODES"), 1);
	/* On the local cluster all tasks are of this pod. */
	if (p->launched && !getenv("GPUQ_GANG_KEY")) {
		p->launched = false;
		p->alone = true;
		p->pods = 1;
	}
	p->pod = number(getenv("GPUQ_POD_INDEX"), 0);
	p->gpus_per_task = number(p->c->args.val[OPT_S_GPUS_PER_TASK], 0);
	return choose(p, nodes ? nodes : "");
}

/* ---- MPI ---- */

static void prepare(void *arg, long i)
{
	const struct plan *p = arg;

	if (p->mpi)
		mpi_prepare(p->mpi, first_rank(p) + i);
}

static int aborted(void *arg)
{
	const struct plan *p = arg;

	return p->mpi ? mpi_aborted(p->mpi) : -1;
}

/* Sruns of one step have this in common: their command line, or a name that they are told. */
static const char *step_of(const struct plan *p)
{
	uint64_t hash = GPUQ_FNV_START;

	if (getenv(SPREAD_NAME))
		return gpuq_arena_strdup(&p->c->arena, getenv(SPREAD_NAME));
	for (char **word = p->c->argv; *word; word++)
		hash = gpuq_fnv(hash, *word, strlen(*word) + 1);
	return gpuq_arena_printf(&p->c->arena, "%" PRIx64, hash);
}

/* A name for one step of this job. */
static const char *name_of(const struct plan *p)
{
	const char *job = of_job("GPUQ_JOB_ID", "SLURM_JOB_ID"), *attempt = getenv("GPUQ_ATTEMPT"),
		   *element = getenv("GPUQ_ARRAY_TASK_ID"), *step = step_of(p);

	return gpuq_arena_printf(&p->c->arena, "%s-%s-%s-%s", job ? job : "0",
				 element ? element : "", attempt ? attempt : "", step ? step : "");
}

static const char *type_of(const struct plan *p)
{
	const char *given = p->c->args.val[OPT_S_MPI];

	return given ? given : getenv("SLURM_MPI_TYPE");
}

/* A name for each pod of the step, which may be called otherwise: all know these. */
static const char *const *names_of_pods(const struct plan *p)
{
	const char **names = gpuq_arena_calloc(&p->c->arena, (size_t)p->n_chosen, sizeof(*names));

	for (long i = 0; i < p->n_chosen && names; i++)
		names[i] = gpuq_arena_printf(&p->c->arena, "pod-%ld", p->chosen[i]);
	return names;
}

/* Pods of the local cluster are processes of one machine, so that the ranks of all are; those of a Kubernetes cluster
 * have a key that gpuqd gives to the pods of a gang. */
static int start_mpi(struct plan *p)
{
	static char host[256];
	static const char *const nodes[] = { host };
	const char *given = p->c->args.val[OPT_S_MPI];
	const bool many = !p->job && p->n_chosen > 1;
	struct mpi_step s = { .type = type_of(p),
			      .n = n_total(p),
			      .per_node = n_total(p),
			      .nodes = nodes,
			      .sessions = p->job != NULL,
			      .shared = many ? name_of(p) : NULL,
			      .n_joining = (n_total(p) - 1) / p->per_pod,
			      .part = many ? first_rank(p) / p->per_pod : 0 };
	struct gpuq_err err = GPUQ_ERR_INIT;
	const char *key = getenv("GPUQ_GANG_KEY"), *first = getenv("MASTER_ADDR");
	const bool gang = many && key && first;
	const bool elsewhere =
		p->job ? !p->local : many && !gang && getenv("KUBERNETES_SERVICE_HOST");

	if (s.n_joining == 0)
		s.shared = NULL;
	if (elsewhere && (p->by_srun || !given || strcmp(given, "none") == 0))
		return 0;
	if (elsewhere) {
		cli_say("error: --mpi: the pods of this job have no key by which their sruns would "
			"know one another");
		return 1;
	}
	gethostname(host, sizeof(host) - 1);
	if (gang && s.shared) {
		s.host = first;
		s.key = key;
		s.per_node = p->per_pod;
		s.nodes = names_of_pods(p);
	}
	if (!s.nodes)
		return cli_say("error: out of memory"), 1;
	return mpi_start(&s, &p->mpi, &err) < 0 ? slurm_fail(&err) : 0;
}

/* ---- devices and CPUs of its own ---- */

static const int of_devices[] = { OPT_S_GPUS, OPT_S_GPUS_PER_NODE, OPT_S_GRES };

#define N_OF_DEVICES (sizeof(of_devices) / sizeof(of_devices[0]))

/* The devices that this step wants in our pod for its tasks here, or -1; -2 = it cannot be read. */
static long wanted(const struct plan *p, long n_tasks)
{
	const char *const *val = p->c->args.val;

	if (p->gpus_per_task > 0)
		return p->gpus_per_task * n_tasks;
	for (size_t i = 0; i < N_OF_DEVICES; i++) {
		const char *text = val[of_devices[i]];
		const long n = text ? claim_number(text, of_devices[i] == OPT_S_GRES) : -1;

		if (text && n < 0 && of_devices[i] != OPT_S_GRES) {
			cli_usage(p->c,
				  "--gpus: expected a number of devices such as 2 or a100:2, not "
				  "'%s'",
				  text);
			return -2;
		}
		if (text && n >= 0)
			return of_devices[i] == OPT_S_GPUS ? (n + p->n_chosen - 1) / p->n_chosen
							   : n;
	}
	return -1;
}

/* From outside the devices of a pod are known to it alone. */
static void warn_outside(const struct plan *p)
{
	for (size_t i = 0; i < N_OF_DEVICES; i++)
		if (p->c->args.val[of_devices[i]]) {
			cli_say("warning: tasks see the devices of their pod: --gpus, --gres and "
				"--gpus-per-node work inside of a job only");
			return;
		}
}

static int claim(const struct plan *p, long n_tasks)
{
	const struct args *args = &p->c->args;
	const bool shared = opt_given(args, OPT_S_OVERLAP);
	const bool alone =
		!shared && (opt_given(args, OPT_S_EXCLUSIVE) || opt_given(args, OPT_S_EXACT));
	const long each =
		number(args->val[OPT_S_CPUS_PER_TASK], number(getenv("GPUQ_CPUS_PER_TASK"), 1));
	const struct claim c = { .devices = wanted(p, n_tasks),
				 .cpus = alone ? n_tasks * (each > 0 ? each : 1) : 0,
				 .shared = shared,
				 .quiet = opt_given(args, OPT_S_QUIET) };

	if (c.devices == -2)
		return EXIT_USAGE;
	if (c.devices < 0 && c.cpus == 0)
		return 0;
	return claim_take(&p->c->arena, &c) < 0 ? 1 : 0;
}

/* Start the sruns of the other pods. Returns 0 or an exit code. */
static int spread(struct plan *p)
{
	const long parts = (n_total(p) - 1) / p->per_pod + 1;

	if (!p->launched || parts < 2 || p->chosen[0] != p->pod)
		return 0;
	p->others = spread_start(step_of(p), p->c->argv, p->chosen + 1, parts - 1);
	if (!p->others)
		return 1;
	p->n_others = parts - 1;
	return 0;
}

static int wait_for_others(struct plan *p, int rc, bool go_on)
{
	/* Where MPI is served the others end by that, and remove their files. */
	const bool hasten = rc && !go_on && !p->mpi_served;
	const int code = p->others ? spread_end(p->others, p->n_others, hasten) : 0;

	return code > rc ? code : rc;
}

bool slurm_srun_command(const struct cli *c, int *code)
{
	const char *type = c->args.val[OPT_S_MPI];

	*code = EXIT_DONE;
	if (type && strcasecmp(type, "list") == 0)
		mpi_print_types();
	else if (type && !mpi_is_type(type))
		*code = cli_usage(c, "--mpi=%s is not known: --mpi=list prints the types", type);
	else if (c->args.n_rest == 0)
		*code = cli_usage(c, "expected COMMAND [ARGUMENT]...");
	else
		return true;
	return false;
}

int slurm_step(struct cli *c)
{
	const char *const *val = c->args.val;
	struct plan *p = gpuq_arena_calloc(&c->arena, 1, sizeof(*p));
	struct tasks t = { .label = opt_given(&c->args, OPT_S_LABEL),
			   .go_on = val[OPT_S_KILL_ON_BAD_EXIT] &&
				    strcmp(val[OPT_S_KILL_ON_BAD_EXIT], "0") == 0,
			   .quiet = opt_given(&c->args, OPT_S_QUIET),
			   .input = val[OPT_S_INPUT],
			   .output = val[OPT_S_OUTPUT],
			   .error = val[OPT_S_ERROR],
			   .path = path_of,
			   .prepare = prepare,
			   .aborted = aborted,
			   .arg = p };
	int rc;

	if (!p) {
		cli_say("error: out of memory");
		return 1;
	}
	if (!slurm_srun_command(c, &rc))
		return rc;
	if (getenv(LAUNCH_VARIABLE) && val[OPT_S_NODELIST])
		return launch_ask(getenv(LAUNCH_VARIABLE), val[OPT_S_NODELIST], c->args.rest);
	p->c = c;
	p->command = c->args.rest;
	p->job = val[OPT_S_JOBID]        ? val[OPT_S_JOBID]
		 : getenv("GPUQ_JOB_ID") ? NULL
					 : getenv(SLURM_ALLOCATION);
	if (val[OPT_S_JOBID] && getenv("GPUQ_JOB_ID") &&
	    strcmp(val[OPT_S_JOBID], getenv("GPUQ_JOB_ID")) == 0)
		p->job = NULL; /* $SLURM_JOB_ID of the job that we are in */
	if (t.input && strcmp(t.input, "all") == 0)
		t.input = NULL;
	if (t.output && strcmp(t.output, "all") == 0)
		t.output = NULL;
	if (t.error && strcmp(t.error, "all") == 0)
		t.error = NULL;
	p->launched = !p->job && getenv(LAUNCH_VARIABLE);
	rc = p->job ? plan_outside(p) : plan_inside(p);
	if (rc == 0)
		rc = count(p);
	if (rc)
		return rc;
	t.n = ours(p);
	if (p->job)
		warn_outside(p);
	else if (t.n > 0)
		rc = claim(p, t.n);
	if (rc)
		return rc;
	if (t.n > 0 && !p->by_srun)
		p->step = steps_next();
	if (p->step < 0)
		p->step = 0;
	t.label &= !p->by_srun;
	t.first = first_rank(p);
	t.truncate = t.first == 0;
	t.become = p->job ? become_session : become_inside;
	if (opt_given(&c->args, OPT_S_PTY) && t.n == 1) {
		t.label = false;
		t.become(t.arg, 0);
	}
	if (t.n == 0)
		return EXIT_DONE;
	rc = spread(p);
	if (rc == 0)
		rc = start_mpi(p);
	p->mpi_served = p->mpi != NULL;
	unsetenv(SPREAD_NAME);
	unsetenv(LAUNCH_VARIABLE);
	if (rc == 0 && !p->by_srun && mpi_is_launch(type_of(p))) {
		t.n = 1;
		rc = t.first == 0 ? tasks_run(&t) : mpi_wait(p->mpi);
		mpi_stop(p->mpi, t.first == 0 ? rc : 0);
	} else if (rc == 0) {
		rc = tasks_run(&t);
		mpi_stop(p->mpi, t.go_on ? 0 : rc);
	}
	if (!p->job)
		rc = wait_for_others(p, rc, t.go_on);
	return rc;
}
