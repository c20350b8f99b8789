/* scontrol: what scripts and people use of it for jobs and nodes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "gpuq/filter.h"
#include "gpuq/job.h"
#include "gpuq/nodeset.h"
#include "gpuq/slurm.h"
#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"
#include "libgpuq/schema.h"
#include "libgpuq/units.h"

/* ---- show ---- */

/* Key=value, several a line as scontrol has them; with -o all in one. */
struct block {
	bool one_line;
	bool begun;
};

static void pair(struct block *b, bool new_line, const char *key, const char *value)
{
	struct gpuq_buf clean = GPUQ_BUF_INIT;

	term_clean_str(&clean, value);
	printf("%s%s=%s",
	       !b->begun                  ? ""
	       : new_line && !b->one_line ? "\n   "
					  : " ",
	       key, gpuq_buf_str(&clean));
	b->begun = true;
	gpuq_buf_done(&clean);
}

static void pair_int(struct block *b, bool new_line, const char *key, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n);
	pair(b, new_line, key, text);
}

static void pair_buf(struct block *b, bool new_line, const char *key, struct gpuq_buf *text)
{
	pair(b, new_line, key, gpuq_buf_str(text));
	gpuq_buf_clear(text);
}

static void end_block(struct block *b)
{
	puts(b->one_line ? "" : "\n");
	b->begun = false;
}

static int print_job(void *arg, const struct gpuq_val *job)
{
	struct block *b = arg;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	const int64_t index = gpuq_get_int(job, "array_index", -1);
	const int64_t min_s = gpuq_get_int(job, "time_min_s", -1);
	char clock[48] = "N/A";

	pair_int(b, false, "JobId", gpuq_get_int(job, "id", 0));
	if (index >= 0 || gpuq_get_str(gpuq_get(job, "array"), "indices", NULL)) {
		pair_int(b, false, "ArrayJobId", gpuq_get_int(job, "id", 0));
		if (index >= 0)
			pair_int(b, false, "ArrayTaskId", index);
		else
			pair(b, false, "ArrayTaskId",
			     gpuq_get_str(gpuq_get(job, "array"), "indices", ""));
	}
	pair(b, false, "JobName", gpuq_get_str(job, "name", ""));
	pair(b, true, "UserId", gpuq_get_str(job, "user", ""));
	pair_int(b, true, "Priority", gpuq_get_int(job, "priority", 0));
	pair(b, false, "Account", gpuq_get_str(job, "account", "(null)"));
	pair(b, false, "QOS", gpuq_get_str(job, "qos", "(null)"));
	pair(b, true, "JobState", slurm_state(job, false));
	pair(b, false, "Reason", slurm_reason(job));
	pair_int(b, true, "Restarts", gpuq_get_int(job, "attempt", 0));
	slurm_exit(&text, job);
	pair_buf(b, false, "ExitCode", &text);
	slurm_elapsed(&text, view_job_elapsed_us(job, cli_now_us()));
	pair_buf(b, true, "RunTime", &text);
	slurm_limit(&text, job);
	pair_buf(b, false, "TimeLimit", &text);
	if (min_s > 0)
		gpuq_duration_clock(min_s * GPUQ_US_PER_S, clock, sizeof(clock));
	pair(b, false, "TimeMin", clock);
	slurm_time(&text, gpuq_get(job, "submit_time"), "Unknown");
	pair_buf(b, true, "SubmitTime", &text);
	slurm_time(&text, gpuq_get(job, "eligible_time"), "Unknown");
	pair_buf(b, false, "EligibleTime", &text);
	slurm_time(&text, gpuq_get(job, "start_time"), "Unknown");
	pair_buf(b, true, "StartTime", &text);
	slurm_time(&text, gpuq_get(job, "end_time"), "Unknown");
	pair_buf(b, false, "EndTime", &text);
	pair(b, true, "Partition", gpuq_get_str(job, "queue", ""));
	if (view_job_nodes(&text, job) == 0)
		gpuq_buf_adds(&text, "(null)");
	pair_buf(b, true, "NodeList", &text);
	pair_int(b, true, "NumNodes", gpuq_get_int(job, "pod_count", 1));
	gpuq_buf_printf(&text, "node=%" PRId64, gpuq_get_int(job, "pod_count", 1));
	if (view_number(gpuq_get(job, "gpus"), 0) > 0) {
		gpuq_buf_adds(&text, ",gres/gpu=");
		view_cell(&text, gpuq_get(job, "gpus"));
	}
	pair(b, true, "ReqTRES", gpuq_buf_str(&text));
	pair(b, true, "AllocTRES", view_job_started(job) ? gpuq_buf_str(&text) : "(null)");
	end_block(b);
	gpuq_buf_done(&text);
	return 0;
}

static int show_jobs(struct cli *c, struct block *b, int n, char **ids)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t id, index;
	int rc = 0;

	for (int i = 0; rc == 0 && i < n; i++) {
		rc = filter_id(ids[i], &id, &index, &err);
		if (rc == 0)
			rc = job_each(c, id, index, print_job, b, &err);
	}
	return rc < 0 ? slurm_fail(&err) : EXIT_DONE;
}

static void print_each(void *arg, const struct gpuq_val *job)
{
	print_job(arg, job);
}

static void print_node(void *arg, const struct gpuq_val *n)
{
	struct block *b = arg;
	const int64_t gpus = gpuq_get_int(n, "gpus", 0);
	struct gpuq_buf text = GPUQ_BUF_INIT;

	pair(b, false, "NodeName", gpuq_get_str(n, "name", ""));
	pair_int(b, true, "CPUTot", gpuq_get_int(n, "cpu_milli", 0) / 1000);
	pair_int(b, false, "RealMemory", gpuq_get_int(n, "memory_mib", 0));
	gpuq_buf_printf(&text, "gpu:%s:%" PRId64, gpuq_get_str(n, "flavor", "none"), gpus);
	pair_buf(b, true, "Gres", &text);
	gpuq_buf_printf(&text, "gpu:%.0f", (double)gpus - view_number(gpuq_get(n, "free_gpus"), 0));
	pair_buf(b, false, "GresUsed", &text);
	for (const char *p = gpuq_get_str(n, "state", "unknown"); *p; p++)
		gpuq_buf_addc(&text, *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p);
	pair_buf(b, true, "State", &text);
	pair(b, false, "Partitions", "all");
	if (gpuq_get_str(n, "note", NULL))
		pair(b, true, "Reason", gpuq_get_str(n, "note", ""));
	end_block(b);
	gpuq_buf_done(&text);
}

static void print_queue(void *arg, const struct gpuq_val *q)
{
	struct block *b = arg;
	struct gpuq_buf text = GPUQ_BUF_INIT;

	pair(b, false, "PartitionName", gpuq_get_str(q, "name", ""));
	pair(b, true, "Parent", gpuq_get_str(q, "parent", "(null)"));
	for (const char *p = gpuq_get_str(q, "state", "up"); *p; p++)
		gpuq_buf_addc(&text, *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p);
	pair_buf(b, true, "State", &text);
	pair_int(b, true, "PendingJobs", gpuq_get_int(q, "pending_jobs", 0));
	pair_int(b, false, "RunningJobs", gpuq_get_int(q, "running_jobs", 0));
	end_block(b);
	gpuq_buf_done(&text);
}

static int show_list(struct cli *c, struct block *b, const char *method, slurm_each_fn fn, int n,
		     char **names)
{
	struct gpuq_val *params = gpuq_map(&c->arena), *list = gpuq_list(&c->arena);
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = 0;

	for (int i = 0; rc == 0 && i < n; i++)
		rc = nodeset_expand(&c->arena, names[i], list, &err);
	if (list->n)
		gpuq_put(&c->arena, params, "names", list);
	if (rc == 0)
		rc = slurm_each(c, method, params, fn, b, &err);
	return rc < 0 ? slurm_fail(&err) : EXIT_DONE;
}

/* n[01-03] as lines, and back. */
static int show_names(struct cli *c, bool fold, int n, char **names)
{
	struct gpuq_val *list = gpuq_list(&c->arena);
	struct gpuq_err err = GPUQ_ERR_INIT;
	const char *all = getenv("SLURM_JOB_NODELIST"), **words;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	int rc = 0;

	if (n == 0 && !all)
		return cli_usage(c, "expected names of nodes"), 1;
	for (int i = 0; rc == 0 && i < (n ? n : 1); i++)
		rc = nodeset_expand(&c->arena, n ? names[i] : all, list, &err);
	if (rc < 0)
		return slurm_fail(&err);
	if (!fold) {
		for (size_t i = 0; i < list->n; i++)
			puts(list->items[i]->s);
		return EXIT_DONE;
	}
	words = gpuq_arena_calloc(&c->arena, list->n + 1, sizeof(*words));
	for (size_t i = 0; words && i < list->n; i++)
		words[i] = list->items[i]->s;
	if (words)
		view_fold(&text, words, list->n);
	puts(gpuq_buf_str(&text));
	gpuq_buf_done(&text);
	return EXIT_DONE;
}

static int show(struct cli *c, int n, char **words)
{
	struct block b = { .one_line = opt_given(&c->args, OPT_S_ONELINER) };
	const char *what = n ? words[0] : "";

	n--;
	words++;
	if (strncasecmp(what, "job", 3) == 0)
		return n > 0 ? show_jobs(c, &b, n, words)
			     : show_list(c, &b, "job.list", print_each, 0, NULL);
	if (strncasecmp(what, "node", 4) == 0)
		return show_list(c, &b, "node.list", print_node, n, words);
	if (strncasecmp(what, "part", 4) == 0)
		return show_list(c, &b, "queue.list", print_queue, n, words);
	if (strcasecmp(what, "hostnames") == 0 || strcasecmp(what, "hostname") == 0)
		return show_names(c, false, n, words);
	if (strcasecmp(what, "hostlist") == 0 || strcasecmp(what, "hostlistsorted") == 0)
		return show_names(c, true, n, words);
	return cli_usage(c, "show %s: expected job, node, partition, hostnames or hostlist", what),
	       1;
}

/* ---- acts ---- */

static int complain(struct cli *c, const struct gpuq_val *reply)
{
	const struct gpuq_val *errors = gpuq_get(reply, "errors");
	int code = EXIT_DONE;

	for (size_t i = 0; errors && errors->type == GPUQ_LIST && i < errors->n; i++) {
		const char *name = gpuq_get_str(errors->items[i], "name", "?");

		cli_say("%s: %s", c->cmd->name, gpuq_get_str(errors->items[i], "msg", name));
		code = 1;
	}
	return code;
}

static int act(struct cli *c, const char *method, struct gpuq_val *params, int n, char **jobs)
{
	struct gpuq_val *ids = gpuq_list(&c->arena), *reply;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = 0;

	if (n == 0)
		return cli_usage(c, "expected jobs"), 1;
	for (int i = 0; rc == 0 && i < n; i++)
		rc = filter_ids(&c->arena, strncmp(jobs[i], "jobid=", 6) ? jobs[i] : jobs[i] + 6,
				ids, &err);
	gpuq_put(&c->arena, params, "ids", ids);
	if (rc == 0)
		rc = cli_call(c, method, params, NULL, &reply, &err);
	return rc < 0 ? slurm_fail(&err) : complain(c, reply);
}

static int requeue(struct cli *c, bool hold, int n, char **jobs)
{
	struct gpuq_val *params = gpuq_map(&c->arena);

	if (hold)
		gpuq_put(&c->arena, params, "hold", gpuq_bool(&c->arena, true));
	return act(c, "job.requeue", params, n, jobs);
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

#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

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

static int update_job(struct cli *c, char *id, struct gpuq_val *set)
{
	struct gpuq_val *params = gpuq_map(&c->arena);

	if (set->n == 0)
		return cli_usage(c, "expected what to change"), 1;
	gpuq_put(&c->arena, params, "set", set);
	return act(c, "job.update", params, 1, &id);
}

static int update_node(struct cli *c, const char *name, const char *state, const char *reason)
{
	struct gpuq_val *params = gpuq_map(&c->arena), *list = gpuq_list(&c->arena), *reply;
	struct gpuq_err err = GPUQ_ERR_INIT;
	const bool drain = state && strncasecmp(state, "drain", 5) == 0;
	int rc = nodeset_expand(&c->arena, name, list, &err);

	if (!drain && (!state || (strcasecmp(state, "resume") && strcasecmp(state, "idle"))))
		return cli_usage(c, "expected State=DRAIN or State=RESUME"), 1;
	gpuq_put(&c->arena, params, "names", list);
	if (drain && reason)
		gpuq_put(&c->arena, params, "why", gpuq_str(&c->arena, reason));
	if (rc == 0)
		rc = cli_call(c, drain ? "node.drain" : "node.resume", params, NULL, &reply, &err);
	return rc < 0 ? slurm_fail(&err) : EXIT_DONE;
}

static int no_key(const struct cli *c, const char *word)
{
	const char *known[N_KEYS + 1], *near;

	for (size_t i = 0; i < N_KEYS; i++)
		known[i] = keys[i].slurm;
	known[N_KEYS] = NULL;
	near = gpuq_nearest(word, known);
	cli_say("%s: update: no key %s%s%s", c->cmd->name, word, near ? "; did you mean " : "",
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
		size_t k = 0;

		/* "update job 17 TimeLimit=..." as well. */
		if (!eq && i + 1 < n && strncasecmp(key, "job", 3) == 0) {
			job = words[++i];
			continue;
		}
		if (!eq)
			return cli_usage(c, "%s: expected KEY=VALUE", key), 1;
		*eq = '\0';
		if (strcasecmp(key, "JobId") == 0)
			job = eq + 1;
		else if (strcasecmp(key, "NodeName") == 0)
			node = eq + 1;
		else if (strcasecmp(key, "State") == 0)
			state = eq + 1;
		else if (strcasecmp(key, "Reason") == 0)
			reason = eq + 1;
		else {
			while (k < N_KEYS && strcasecmp(keys[k].slurm, key) != 0)
				k++;
			if (k == N_KEYS)
				return no_key(c, key);
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

int slurm_scontrol(struct cli *c)
{
	static const char *const verbs[] = { "show",        "hold",   "uhold", "release", "requeue",
					     "requeuehold", "update", "ping",  "version", NULL };
	const char *verb = c->args.rest[0], *near;
	const int n = c->args.n_rest - 1;
	char **words = c->args.rest + 1;

	if (strcmp(verb, "show") == 0)
		return show(c, n, words);
	if (strcmp(verb, "hold") == 0 || strcmp(verb, "uhold") == 0)
		return act(c, "job.hold", gpuq_map(&c->arena), n, words);
	if (strcmp(verb, "release") == 0)
		return act(c, "job.release", gpuq_map(&c->arena), n, words);
	if (strcmp(verb, "requeue") == 0)
		return requeue(c, false, n, words);
	if (strcmp(verb, "requeuehold") == 0)
		return requeue(c, true, n, words);
	if (strcmp(verb, "update") == 0)
		return update(c, n, words);
	if (strcmp(verb, "ping") == 0)
		return ping(c);
	if (strcmp(verb, "version") == 0)
		return puts("gpuq (slurm names)"), EXIT_DONE;
	near = gpuq_nearest(verb, verbs);
	return cli_usage(c, "no command %s%s%s", verb, near ? "; did you mean " : "",
			 near ? near : ""),
	       1;
}
