/* scontrol: what scripts and people use of it for jobs and nodes. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "gpuq/cmd/job/again.h"
#include "gpuq/filter.h"
#include "gpuq/job.h"
#include "gpuq/slurm/slurm_command.h"
#include "gpuq/slurm/slurm_words.h"
#include "gpuq/slurm/slurm_show.h"
#include "gpuq/slurm/slurm_salloc.h"
#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/hostlist.h"
#include "libgpuq/names.h"
#include "libgpuq/schema.h"
#include "libgpuq/units.h"

/* ---- acts ---- */

/* With again, those that have ended are left to the caller, as a list of ids there. */
static int complain(struct cli *c, const struct gpuq_val *reply, struct gpuq_val *again)
{
	const struct gpuq_val *errors = gpuq_get(reply, "errors");
	int code = EXIT_DONE;

	for (size_t i = 0; errors && errors->type == GPUQ_LIST && i < errors->n; i++) {
		const char *name = gpuq_get_str(errors->items[i], "name", "?");

		struct gpuq_buf id = GPUQ_BUF_INIT;

		view_cell(&id, gpuq_get(errors->items[i], "id"));
		if (again && strcmp(name, "gone") == 0) {
			gpuq_add(&c->arena, again,
				 gpuq_str(&c->arena,
					  gpuq_arena_strdup(&c->arena, gpuq_buf_str(&id))));
			gpuq_buf_done(&id);
			continue;
		}
		cli_say("error: job %s: %s%s", gpuq_buf_str(&id),
			strcmp(name, "not_found") ? "" : "Invalid job id specified: ",
			gpuq_get_str(errors->items[i], "msg", name));
		gpuq_buf_done(&id);
		code = 1;
	}
	return code;
}

static int act_or(struct cli *c, const char *method, struct gpuq_val *params, int n, char **jobs,
		  struct gpuq_val *again)
{
	struct gpuq_val *ids = gpuq_list(&c->arena), *names = gpuq_list(&c->arena), *reply;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = 0;

	if (n == 0)
		return cli_usage(c, "expected jobs"), 1;
	for (int i = 0; rc == 0 && i < n; i++) {
		const char *eq = strchr(jobs[i], '=');

		/* jobid=17, jobname=train, or 17 */
		if (eq && (strncasecmp(jobs[i], "name=", 5) == 0 ||
			   strncasecmp(jobs[i], "jobname=", 8) == 0))
			gpuq_add(&c->arena, names, gpuq_str(&c->arena, eq + 1));
		else
			rc = filter_ids(&c->arena, eq ? eq + 1 : jobs[i], ids, &err);
	}
	if (ids->n)
		gpuq_put(&c->arena, params, "ids", ids);
	if (names->n)
		gpuq_put(&c->arena, params, "names", names);
	if (rc == 0)
		rc = cli_call(c, method, params, NULL, &reply, &err);
	return rc < 0 ? slurm_fail(&err) : complain(c, reply, again);
}

static int act(struct cli *c, const char *method, struct gpuq_val *params, int n, char **jobs)
{
	return act_or(c, method, params, n, jobs, NULL);
}

/* ---- requeue ---- */

/* One that has ended is submitted again as it was: its number is a new one. */
static int submit_again(struct cli *c, const char *id)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct submission s;
	int code;

	if (again_read(c, id, false, &s, &err) < 0)
		return slurm_fail_job(&err);
	code = submission_send(c, &s, false);
	if (code >= 0)
		return code == EXIT_SERVER ? code : 1;
	for (uint32_t i = 0; i < s.jobs->n; i++)
		printf("Submitted batch job %" PRId64 "\n",
		       gpuq_get_int(s.jobs->items[i], "id", 0));
	return EXIT_DONE;
}

static int requeue(struct cli *c, bool hold, int n, char **jobs)
{
	struct gpuq_val *params = gpuq_map(&c->arena), *again = gpuq_list(&c->arena);
	int code;

	if (hold)
		gpuq_put(&c->arena, params, "hold", gpuq_bool(&c->arena, true));
	code = act_or(c, "job.requeue", params, n, jobs, hold ? NULL : again);
	for (uint32_t i = 0; i < again->n; i++) {
		const int one = submit_again(c, again->items[i]->s);

		code = one > code ? one : code;
	}
	return code;
}

static int refuse(const char *what, const char *instead)
{
	cli_say("error: %s is not offered: %s", what, instead);
	return 1;
}

/* ---- update ---- */

enum kind { TEXT, NUMBER, FLAG, TIME, THROTTLE, AT };

/* Keys of `scontrol update jobid=`, and which of a job file each is. */
static const struct {
	const char *slurm, *ours;
	enum kind kind;
} keys[] = {
	{ "Account", "account", TEXT },     { "ArrayTaskThrottle", "array", THROTTLE },
	{ "Comment", "comment", TEXT },     { "Deadline", "deadline", AT },
	{ "Dependency", "depends", TEXT },  { "EligibleTime", "begin", AT },
	{ "JobName", "name", TEXT },        { "MailUser", "mail_user", TEXT },
	{ "Name", "name", TEXT },           { "Nice", "nice", NUMBER },
	{ "NumNodes", "pods", NUMBER },     { "Partition", "queue", TEXT },
	{ "Priority", "priority", NUMBER }, { "QOS", "qos", TEXT },
	{ "Requeue", "requeue", FLAG },     { "ReservationName", "reservation", TEXT },
	{ "StartTime", "begin", AT },       { "TimeLimit", "time", TIME },
	{ "TimeMin", "time_min", TIME },
};

/* Those of Slurm that only a new submission changes. */
static const char *const fixed[] = {
	"AdminComment",  "BurstBuffer",    "Clusters",    "Contiguous",  "CoreSpec",
	"DelayBoot",     "EndTime",        "ExcNodeList", "Extra",       "Features",
	"Gres",          "Licenses",       "MailType",    "MinCPUsNode", "MinMemoryCPU",
	"MinMemoryNode", "MinTmpDiskNode", "NumCPUs",     "NumTasks",    "OverSubscribe",
	"ReqCores",      "ReqNodeList",    "ReqNodes",    "ReqProcs",    "ReqSockets",
	"Shared",        "StdErr",         "StdIn",       "StdOut",      "Switches",
	"TasksPerNode",  "TresPerNode",    "UserID",      "WCKey",       "WorkDir",
};

#define N_KEYS (sizeof(keys) / sizeof(keys[0]))
#define KEY_LEAST 3 /* letters of a key that is cut short */

static struct gpuq_val *value_of(struct cli *c, enum kind kind, const char *text)
{
	struct gpuq_arena *a = &c->arena;
	char out[40];
	int64_t us;

	switch (kind) {
	case NUMBER:
		return gpuq_int(a, strtoll(text, NULL, 10));
	case FLAG:
		return gpuq_bool(a, *text == '1' || *text == 'y' || *text == 'Y');
	case THROTTLE:
		return gpuq_str(a, gpuq_arena_printf(a, "%%%s", text));
	case AT:
		if (slurm_instant(text, &us) < 0)
			return gpuq_str(a, text);
		gpuq_instant_print(us, out, sizeof(out));
		return gpuq_str(a, gpuq_arena_strdup(a, out));
	default:
		return gpuq_str(a, text);
	}
}

static int take_limit(void *arg, const struct gpuq_val *job)
{
	*(int64_t *)arg = gpuq_get_int(job, "time_limit_s", -1);
	return 1;
}

/* TimeLimit=+30 and TimeLimit-=30 are about the limit it has. */
static int add_time(struct cli *c, const char *job, struct gpuq_val *set, struct gpuq_err *err)
{
	const char *text = gpuq_get_str(set, "time", "");
	int64_t id, index, us, limit_s = -1;
	int rc;

	if (*text != '+' && *text != '-')
		return 0;
	rc = gpuq_duration_parse(text + 1, &us, err);
	if (rc == 0)
		rc = filter_id(job, &id, &index, err);
	if (rc == 0)
		rc = job_for_each(c, id, index, take_limit, &limit_s, err);
	if (rc < 0)
		return rc;
	if (limit_s < 0)
		return gpuq_fail(err, GPUQ_EINVAL, "TimeLimit %s: job %s has no time limit", text,
				 job);
	limit_s += (*text == '+' ? 1 : -1) * (us / GPUQ_US_PER_S);
	if (us < 0 || limit_s <= 0)
		return gpuq_fail(err, GPUQ_EINVAL, "TimeLimit %s: nothing is left of the limit",
				 text);
	gpuq_set(&c->arena, set, "time",
		 gpuq_str(&c->arena, gpuq_arena_printf(&c->arena, "%" PRId64 "s", limit_s)));
	return 0;
}

static int update_job(struct cli *c, char *id, struct gpuq_val *set)
{
	struct gpuq_val *params = gpuq_map(&c->arena);
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (set->n == 0)
		return cli_usage(c, "expected a change"), 1;
	if (add_time(c, id, set, &err) < 0)
		return slurm_fail_job(&err);
	gpuq_put(&c->arena, params, "set", set);
	return act(c, "job.update", params, 1, &id);
}

static int update_node(struct cli *c, const char *name, const char *state, const char *reason)
{
	struct gpuq_val *params = gpuq_map(&c->arena), *list = gpuq_list(&c->arena), *reply;
	struct gpuq_err err = GPUQ_ERR_INIT;
	const bool drain = state && strncasecmp(state, "drain", 5) == 0;
	int rc = hostlist_expand(&c->arena, name, HOSTLIST_GLOBS, list, &err);

	if (!drain && (!state || (strcasecmp(state, "resume") && strcasecmp(state, "idle"))))
		return cli_usage(c, "expected State=DRAIN or State=RESUME"), 1;
	gpuq_put(&c->arena, params, "names", list);
	if (drain && reason)
		gpuq_put(&c->arena, params, "why", gpuq_str(&c->arena, reason));
	if (rc == 0)
		rc = cli_call(c, drain ? "node.drain" : "node.resume", params, NULL, &reply, &err);
	return rc < 0 ? slurm_fail(&err) : EXIT_DONE;
}

/* True if the word is the key or, as Slurm takes it, its beginning. */
static bool begins(const char *word, const char *key)
{
	const size_t n = strlen(word);

	return n >= KEY_LEAST && strncasecmp(word, key, n) == 0;
}

/* Return the key of that name, or the only one that begins so; N_KEYS = there is none. */
static size_t key_of(const char *word)
{
	size_t found = N_KEYS;

	for (size_t k = 0; k < N_KEYS; k++) {
		if (strcasecmp(keys[k].slurm, word) == 0)
			return k;
		if (begins(word, keys[k].slurm)) {
			if (found < N_KEYS && strcmp(keys[found].ours, keys[k].ours) != 0)
				return N_KEYS;
			found = k;
		}
	}
	return found;
}

static int no_key(const char *word)
{
	const char *known[N_KEYS + 1], *near;

	for (size_t i = 0; i < N_KEYS; i++)
		known[i] = keys[i].slurm;
	known[N_KEYS] = NULL;
	near = gpuq_nearest(word, known);
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (strcasecmp(fixed[i], word) == 0) {
			cli_say("error: update: %s cannot be changed: cancel the job and "
				"submit it anew",
				word);
			return 1;
		}
	cli_say("error: update: no key %s%s%s", word, near ? "; did you mean " : "",
		near ? near : "");
	return 1;
}

static int update(struct cli *c, int n, char **words)
{
	struct gpuq_val *set = gpuq_map(&c->arena);
	const char *node = NULL, *state = NULL, *reason = NULL;
	char *job = NULL;

	for (int i = 0; i < n; i++) {
		char *eq = strchr(words[i], '=');
		const char *key = words[i];
		size_t k;

		/* "update job 17 TimeLimit=..." as well. */
		if (!eq && i + 1 < n && strncasecmp(key, "job", 3) == 0) {
			job = words[++i];
			continue;
		}
		if (!eq)
			return cli_usage(c, "%s: expected KEY=VALUE", key), 1;
		*eq = '\0';
		/* TimeLimit+=30 is TimeLimit=+30. */
		if (eq > key && (eq[-1] == '+' || eq[-1] == '-')) {
			*eq = eq[-1];
			*--eq = '\0';
		}
		if (begins(key, "JobId"))
			job = eq + 1;
		else if (begins(key, "NodeName"))
			node = eq + 1;
		else if (strcasecmp(key, "PartitionName") == 0)
			return refuse(
				"update PartitionName",
				"gpuq queues stop|start|open|close QUEUE, or gpuq queues set");
		else if (strcasecmp(key, "ReservationName") == 0 && !job && i == 0)
			return refuse("update ReservationName", "gpuq reserve NAME");
		else if (strcasecmp(key, "State") == 0)
			state = eq + 1;
		else if (strcasecmp(key, "Reason") == 0)
			reason = eq + 1;
		else {
			k = key_of(key);
			if (k == N_KEYS)
				return no_key(key);
			gpuq_set(&c->arena, set, keys[k].ours, value_of(c, keys[k].kind, eq + 1));
		}
	}
	if (node)
		return update_node(c, node, state, reason);
	return job ? update_job(c, job, set) : (cli_usage(c, "expected JobId= or NodeName="), 1);
}

/* ---- the verbs ---- */

static int ping(struct cli *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	if (cli_connect(c, &err) < 0)
		return slurm_fail(&err);
	puts("gpuqd is UP");
	return EXIT_DONE;
}

static int top(struct cli *c, int n, char **jobs)
{
	struct gpuq_val *params = gpuq_map(&c->arena);

	gpuq_put(&c->arena, params, "top", gpuq_bool(&c->arena, true));
	return act(c, "job.update", params, n, jobs);
}

static int hold(struct cli *c, int n, char **jobs)
{
	return act(c, "job.hold", gpuq_map(&c->arena), n, jobs);
}

static int release(struct cli *c, int n, char **jobs)
{
	return act(c, "job.release", gpuq_map(&c->arena), n, jobs);
}

static int requeue_only(struct cli *c, int n, char **jobs)
{
	return requeue(c, false, n, jobs);
}

static int requeue_held(struct cli *c, int n, char **jobs)
{
	return requeue(c, true, n, jobs);
}

static int say_ping(struct cli *c, int n, char **words)
{
	(void)n;
	(void)words;
	return ping(c);
}

/* scontrol wait_job 17: until it has started. */
static int wait_job(struct cli *c, int n, char **words)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t id, index;
	int code;

	if (n != 1 || filter_id(words[0], &id, &index, &err) < 0)
		return cli_usage(c, "expected a job"), 1;
	return slurm_wait_start(c, id, 0, true, &code) ? EXIT_DONE : code ? code : 1;
}

/* scontrol write batch_script 17 [FILE]: as it was submitted; FILE - is standard output. */
static int write_script(struct cli *c, int n, char **words)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct gpuq_val *job;
	const char *script, *path;
	int64_t id, index;
	FILE *f;
	int rc;

	if (n < 2 || n > 3 || strcasecmp(words[0], "batch_script") != 0 ||
	    filter_id(words[1], &id, &index, &err) < 0)
		return cli_usage(c, "expected batch_script JOB [FILE]"), 1;
	job = job_with_spec(c, id, index, &err);
	if (!job)
		return slurm_fail_job(&err);
	script = gpuq_get_str(gpuq_get(job, "spec"), "script", NULL);
	if (!script) {
		cli_say("error: job %s was no script; gpuq status -o yaml %s prints what it was",
			words[1], words[1]);
		return 1;
	}
	path = n > 2 ? words[2] : gpuq_arena_printf(&c->arena, "slurm-%s.sh", words[1]);
	if (strcmp(path, "-") == 0) {
		fputs(script, stdout);
		return EXIT_DONE;
	}
	f = fopen(path, "we");
	rc = f ? fputs(script, f) : -1;
	if (f && fclose(f) != 0)
		rc = -1;
	if (rc < 0) {
		cli_say("error: cannot write %s: %s", path, strerror(errno));
		return 1;
	}
	printf("batch script for job %s written to %s\n", words[1], path);
	return EXIT_DONE;
}

static int version(struct cli *c, int n, char **words)
{
	(void)c;
	(void)n;
	(void)words;
	puts(PACKAGE_NAME " " PACKAGE_VERSION);
	return EXIT_DONE;
}

/* Handling of each verb: a function, or an alternative. gpuq-slurm(7) has the table. */
static const struct {
	const char *verb;
	int (*run)(struct cli *c, int n, char **words);
	const char *instead;
} verbs[] = {
	{ "show", slurm_show, NULL },
	{ "hold", hold, NULL },
	{ "uhold", hold, NULL },
	{ "release", release, NULL },
	{ "requeue", requeue_only, NULL },
	{ "requeuehold", requeue_held, NULL },
	{ "top", top, NULL },
	{ "update", update, NULL },
	{ "wait_job", wait_job, NULL },
	{ "ping", say_ping, NULL },
	{ "version", version, NULL },
	{ "suspend", NULL, "use scontrol requeuehold, which also releases the devices" },
	{ "resume", NULL, "use scontrol release for held jobs" },
	{ "abort", NULL, "send SIGTERM to gpuqd; jobs keep running" },
	{ "cancel_reboot", NULL, "nodes are not rebooted from here" },
	{ "cluster", NULL, "--server names another server" },
	{ "completing", NULL, "squeue -t CG" },
	{ "create", NULL, "gpuq reserve, gpuq apply" },
	{ "crontab", NULL, "there are no cron jobs" },
	{ "delete", NULL, "gpuq reserve --delete, gpuq apply --remove" },
	{ "errnumstr", NULL, "error messages are text" },
	{ "getaddrs", NULL, "kubectl get nodes -o wide" },
	{ "listjobs", NULL, "squeue -w NODE" },
	{ "listpids", NULL, "gpuq exec runs ps in a pod" },
	{ "notify", NULL, "gpuq exec runs wall in a pod" },
	{ "power", NULL, "use pools that provision nodes" },
	{ "reboot", NULL, "use gpuq drain NODE, then reboot it" },
	{ "reconfigure", NULL, "use SIGHUP to reload gpuqd.yaml, gpuq apply to change the site" },
	{ "schedloglevel", NULL, "gpuqd.yaml(5) log" },
	{ "setdebug", NULL, "gpuqd.yaml(5) log" },
	{ "setdebugflags", NULL, "gpuqd.yaml(5) log" },
	{ "shutdown", NULL, "send SIGTERM to gpuqd; jobs keep running" },
	{ "takeover", NULL, "a standby takes over automatically" },
	{ "token", NULL, "use gpuq token" },
	{ "write", write_script, NULL },
};

#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

int slurm_scontrol(struct cli *c)
{
	const char *verb = c->args.rest[0], *near, *known[N_VERBS + 1];

	for (size_t i = 0; i < N_VERBS; i++) {
		known[i] = verbs[i].verb;
		if (strcasecmp(verb, verbs[i].verb) != 0)
			continue;
		return verbs[i].run ? verbs[i].run(c, c->args.n_rest - 1, c->args.rest + 1)
				    : refuse(verb, verbs[i].instead);
	}
	known[N_VERBS] = NULL;
	near = gpuq_nearest(verb, known);
	return cli_usage(c, "no command %s%s%s", verb, near ? "; did you mean " : "",
			 near ? near : ""),
	       1;
}
