/* scontrol show: jobs, nodes, partitions as blocks of key=value; lists of nodes. */
#include "gpuq/slurm/slurm_show.h"

#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "gpuq/filter.h"
#include "gpuq/job.h"
#include "gpuq/slurm/slurm_words.h"
#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/hostlist.h"
#include "libgpuq/limits.h"
#include "libgpuq/schema.h"
#include "libgpuq/units.h"

/* Key=value, several a line as scontrol has them; with -o all in one. */
struct block {
	bool one_line;
	bool begun;
	struct cli *c;
	struct gpuq_val *queues; /* for those of nodes, copies */
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

/* Errors that have no file are in that of the output; where that has none, gpuqd keeps a log. */
static void file_pair(struct block *b, const char *name, const struct gpuq_val *job,
		      const char *key)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;

	if (!gpuq_get_str(job, key, NULL))
		key = "stdout";
	if (gpuq_get_str(job, key, NULL))
		view_job_file(&text, job, key);
	else
		gpuq_buf_adds(&text, "(null)");
	pair_buf(b, true, name, &text);
	gpuq_buf_done(&text);
}

static void input_pair(struct block *b, const struct gpuq_val *job)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;

	if (gpuq_get_str(job, "stdin", NULL))
		view_job_file(&text, job, "stdin");
	else
		gpuq_buf_adds(&text, "/dev/null");
	pair_buf(b, true, "StdIn", &text);
	gpuq_buf_done(&text);
}

/* "ann(1000)", with the numbers that this machine knows them by. */
static void pair_user(struct block *b, const char *user)
{
	const struct passwd *who = slurm_user(user);
	const struct group *group = who ? getgrgid(who->pw_gid) : NULL;
	struct gpuq_buf text = GPUQ_BUF_INIT;

	gpuq_buf_adds(&text, user);
	if (who)
		gpuq_buf_printf(&text, "(%ju)", (uintmax_t)who->pw_uid);
	pair_buf(b, true, "UserId", &text);
	if (group) {
		gpuq_buf_printf(&text, "%s(%ju)", group->gr_name, (uintmax_t)group->gr_gid);
		pair_buf(b, false, "GroupId", &text);
	}
	gpuq_buf_done(&text);
}

static int print_job(void *arg, const struct gpuq_val *job)
{
	struct block *b = arg;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	const int64_t index = gpuq_get_int(job, "array_index", -1);
	const int64_t min_s = gpuq_get_int(job, "time_min_s", -1);
	const bool batch = gpuq_get_bool(job, "batch", true);
	char clock[48] = "N/A";

	pair_int(b, false, "JobId", slurm_number(job));
	if (index >= 0 || gpuq_get_str(gpuq_get(job, "array"), "indices", NULL)) {
		pair_int(b, false, "ArrayJobId", gpuq_get_int(job, "id", 0));
		if (index >= 0)
			pair_int(b, false, "ArrayTaskId", index);
		else
			pair(b, false, "ArrayTaskId",
			     gpuq_get_str(gpuq_get(job, "array"), "indices", ""));
	}
	pair(b, false, "JobName", gpuq_get_str(job, "name", ""));
	pair_user(b, gpuq_get_str(job, "user", ""));
	pair_int(b, true, "Priority", gpuq_get_int(job, "priority", 0));
	pair_int(b, false, "Nice", gpuq_get_int(job, "nice", 0));
	pair(b, false, "Account", gpuq_get_str(job, "account", "(null)"));
	pair(b, false, "QOS", gpuq_get_str(job, "qos", "(null)"));
	pair(b, true, "JobState", slurm_state(job, false));
	pair(b, false, "Reason", slurm_reason(job));
	slurm_dependency(&text, job);
	pair_buf(b, false, "Dependency", &text);
	pair_int(b, true, "Restarts", gpuq_get_int(job, "attempt", 0));
	pair_int(b, false, "BatchFlag", batch);
	slurm_exit(&text, job);
	pair_buf(b, false, "ExitCode", &text);
	slurm_elapsed(&text, view_job_elapsed_us(job, cli_now_us()));
	pair_buf(b, true, "RunTime", &text);
	if (gpuq_get_int(job, "time_limit_s", 0) > 0)
		slurm_elapsed(&text, gpuq_get_int(job, "time_limit_s", 0) * GPUQ_US_PER_S);
	else
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
	slurm_end_time(&text, job, "Unknown");
	pair_buf(b, false, "EndTime", &text);
	pair(b, true, "Partition", gpuq_get_str(job, "queue", ""));
	if (view_job_nodes(&text, job) == 0)
		gpuq_buf_adds(&text, "(null)");
	pair_buf(b, true, "NodeList", &text);
	pair_int(b, true, "NumNodes", gpuq_get_int(job, "pod_count", 1));
	slurm_cpus(&text, job);
	pair_buf(b, false, "NumCPUs", &text);
	slurm_tres(&text, job);
	pair(b, true, "ReqTRES", gpuq_buf_str(&text));
	pair(b, true, "AllocTRES", view_job_started(job) ? gpuq_buf_str(&text) : "(null)");
	gpuq_buf_clear(&text);
	slurm_memory(&text, job);
	pair_buf(b, true, "MinMemoryNode", &text);
	if (gpuq_get_str(job, "comment", NULL))
		pair(b, true, "Comment", gpuq_get_str(job, "comment", ""));
	pair(b, true, "Command", gpuq_get_str(job, "command", "(null)"));
	pair(b, true, "WorkDir", gpuq_get_str(job, "workdir", "(null)"));
	if (batch) {
		file_pair(b, "StdErr", job, "stderr");
		input_pair(b, job);
		file_pair(b, "StdOut", job, "stdout");
	}
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
			rc = job_for_each(c, id, index, print_job, b, &err);
	}
	return rc < 0 ? slurm_fail_job(&err) : EXIT_DONE;
}

static void print_each(void *arg, const struct gpuq_val *job)
{
	print_job(arg, job);
}

static void take_queue(void *arg, const struct gpuq_val *q)
{
	struct block *b = arg;

	gpuq_add(&b->c->arena, b->queues, gpuq_val_copy(&b->c->arena, q));
}

static void pair_partitions(struct block *b, const struct gpuq_val *node)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;

	for (uint32_t i = 0; i < b->queues->n; i++) {
		const struct gpuq_val *q = b->queues->items[i];

		if (slurm_is_partition(b->queues, q) && slurm_may_use(b->queues, q, node))
			gpuq_buf_printf(&text, "%s%s", text.len ? "," : "",
					gpuq_get_str(q, "name", ""));
	}
	if (text.len)
		pair_buf(b, true, "Partitions", &text);
	gpuq_buf_done(&text);
}

/* "new fan [root@2026-11-28T09:00:00]" */
static void pair_reason(struct block *b, const struct gpuq_val *n)
{
	const struct gpuq_val *when = gpuq_get(n, "drained_time");
	struct gpuq_buf text = GPUQ_BUF_INIT;

	gpuq_buf_adds(&text, gpuq_get_str(n, "note", ""));
	if (when && when->type == GPUQ_INT) {
		gpuq_buf_printf(&text, " [%s@", gpuq_get_str(n, "drained_by", "Unknown"));
		slurm_time(&text, when, "Unknown");
		gpuq_buf_addc(&text, ']');
	}
	pair_buf(b, true, "Reason", &text);
	gpuq_buf_done(&text);
}

static void print_node(void *arg, const struct gpuq_val *n)
{
	struct block *b = arg;
	const int64_t gpus = gpuq_get_int(n, "gpus", 0);
	struct gpuq_buf text = GPUQ_BUF_INIT;

	pair(b, false, "NodeName", gpuq_get_str(n, "name", ""));
	pair_int(b, true, "CPUAlloc",
		 (gpuq_get_int(n, "cpu_milli", 0) - gpuq_get_int(n, "free_cpu_milli", 0) + 999) /
			 1000);
	pair_int(b, false, "CPUTot", gpuq_get_int(n, "cpu_milli", 0) / 1000);
	pair_int(b, true, "RealMemory", gpuq_get_int(n, "memory_mib", 0));
	pair_int(b, false, "AllocMem",
		 gpuq_get_int(n, "memory_mib", 0) - gpuq_get_int(n, "free_memory_mib", 0));
	gpuq_buf_printf(&text, "gpu:%s:%" PRId64, gpuq_get_str(n, "flavor", "none"), gpus);
	pair_buf(b, true, "Gres", &text);
	gpuq_buf_printf(&text, "gpu:%.0f", (double)gpus - view_number(gpuq_get(n, "free_gpus"), 0));
	pair_buf(b, false, "GresUsed", &text);
	for (const char *p = gpuq_get_str(n, "state", "unknown"); *p; p++)
		gpuq_buf_addc(&text, *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p);
	pair_buf(b, true, "State", &text);
	pair_partitions(b, n);
	if (gpuq_get_str(n, "note", NULL))
		pair_reason(b, n);
	end_block(b);
	gpuq_buf_done(&text);
}

static void put_time(struct block *b, const char *key, const struct gpuq_val *q, const char *of,
		     const char *none)
{
	const int64_t s = gpuq_get_int(q, of, -1);
	struct gpuq_buf text = GPUQ_BUF_INIT;

	if (s < 0)
		gpuq_buf_adds(&text, none);
	else
		slurm_elapsed(&text, s * GPUQ_US_PER_S);
	pair_buf(b, false, key, &text);
	gpuq_buf_done(&text);
}

static void print_queue(void *arg, const struct gpuq_val *q)
{
	struct block *b = arg;
	const char *state = gpuq_get_str(q, "state", "open");

	pair(b, false, "PartitionName", gpuq_get_str(q, "name", ""));
	pair(b, true, "AllowGroups", "ALL");
	pair(b, false, "AllowAccounts", "ALL");
	pair(b, false, "AllowQos", "ALL");
	pair(b, true, "Default",
	     strcmp(gpuq_get_str(q, "name", ""), "default") == 0 ? "YES" : "NO");
	put_time(b, "DefaultTime", q, "default_time_s", "NONE");
	put_time(b, "MaxTime", q, "max_time_s", "UNLIMITED");
	pair(b, true, "State",
	     strcmp(state, "stopped") == 0  ? "DOWN"
	     : strcmp(state, "closed") == 0 ? "DRAIN"
	     : strchr(state, ',')           ? "INACTIVE"
					    : "UP");
	pair(b, false, "Parent", gpuq_get_str(q, "parent", "(null)"));
	pair_int(b, true, "PendingJobs", gpuq_get_int(q, "pending_jobs", 0));
	pair_int(b, false, "RunningJobs", gpuq_get_int(q, "running_jobs", 0));
	end_block(b);
}

static int show_list(struct cli *c, struct block *b, const char *method, slurm_each_fn fn, int n,
		     char **names)
{
	struct gpuq_val *params = gpuq_map(&c->arena), *list = gpuq_list(&c->arena);
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = 0;

	for (int i = 0; rc == 0 && i < n; i++)
		rc = hostlist_expand(&c->arena, names[i], HOSTLIST_GLOBS, list, &err);
	if (list->n)
		gpuq_put(&c->arena, params, "names", list);
	if (rc == 0)
		rc = slurm_each(c, method, params, NULL, fn, b, &err);
	return rc < 0 ? slurm_fail(&err) : EXIT_DONE;
}

static int show_nodes(struct cli *c, struct block *b, int n, char **names)
{
	struct gpuq_err err = GPUQ_ERR_INIT;

	b->queues = gpuq_list(&c->arena);
	if (slurm_each(c, "queue.list", gpuq_map(&c->arena), NULL, take_queue, b, &err) < 0)
		return slurm_fail(&err);
	return show_list(c, b, "node.list", print_node, n, names);
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
		rc = hostlist_expand(&c->arena, n ? names[i] : all, HOSTLIST_GLOBS, list, &err);
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

/* Print the settings that programs look for and that have a meaning here. */
static int show_config(struct cli *c)
{
	static const struct {
		const char *key, *value;
	} rows[] = {
		{ "AccountingStorageType", "accounting_storage/slurmdbd" },
		{ "ClusterName", "gpuq" },
		{ "DefMemPerNode", "UNLIMITED" },
		{ "EnforcePartLimits", "ANY" },
		{ "FirstJobId", "1" },
		{ "GresTypes", "gpu" },
		{ "JobAcctGatherType", "jobacct_gather/cgroup" },
		{ "JobRequeue", "1" },
		{ "KillWait", "30 sec" },
		{ "MaxArraySize", NULL },
		{ "MaxMemPerNode", "UNLIMITED" },
		{ "MinJobAge", "300 sec" },
		{ "PreemptMode", "REQUEUE" },
		{ "PriorityType", "priority/multifactor" },
		{ "ProctrackType", "proctrack/cgroup" },
		{ "SchedulerType", "sched/backfill" },
		{ "SelectType", "select/cons_tres" },
		{ "SLURM_VERSION", "24.11.0" },
	};
	struct gpuq_err err = GPUQ_ERR_INIT;
	char host[256] = "localhost", at[64];
	const time_t now = time(NULL);
	struct tm tm;

	if (cli_connect(c, &err) < 0)
		return slurm_fail(&err);
	gethostname(host, sizeof(host) - 1);
	localtime_r(&now, &tm);
	strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%S", &tm);
	printf("Configuration data as of %s\n", at);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		printf("%-23s = ", rows[i].key);
		if (rows[i].value)
			puts(rows[i].value);
		else
			printf("%u\n", GPUQ_ARRAY_MAX + 1);
	}
	printf("%-23s = %s\n", "SlurmctldHost[0]", host);
	printf("\nSlurmctld(primary) at %s is UP\n", host);
	return EXIT_DONE;
}

static const struct {
	const char *what, *instead;
} elsewhere[] = {
	{ "aliases", "nodes have one name" },
	{ "assoc_mgr", "gpuq shares, gpuq usage" },
	{ "bbstat", "there are no burst buffers" },
	{ "burstbuffer", "there are no burst buffers" },
	{ "daemons", "gpuq doctor" },
	{ "dwstat", "there are no burst buffers" },
	{ "federation", "a server has one cluster" },
	{ "licenses", "gpuq export" },
	{ "reservations", "gpuq reservations" },
	{ "slurmd", "gpuq nodes" },
	{ "steps", "steps are not known to gpuqd" },
	{ "topology", "gpuq nodes --json has the labels of nodes" },
};

int slurm_show(struct cli *c, int n, char **words)
{
	struct block b = { .one_line = opt_given(&c->args, OPT_S_ONELINER), .c = c };
	const char *what = n ? words[0] : "";

	n--;
	words++;
	if (strncasecmp(what, "job", 3) == 0)
		return n > 0 ? show_jobs(c, &b, n, words)
			     : show_list(c, &b, "job.list", print_each, 0, NULL);
	if (strncasecmp(what, "node", 4) == 0)
		return show_nodes(c, &b, n, words);
	if (strncasecmp(what, "part", 4) == 0)
		return show_list(c, &b, "queue.list", print_queue, n, words);
	if (strcasecmp(what, "hostnames") == 0 || strcasecmp(what, "hostname") == 0)
		return show_names(c, false, n, words);
	if (strcasecmp(what, "hostlist") == 0 || strcasecmp(what, "hostlistsorted") == 0)
		return show_names(c, true, n, words);
	if (strncasecmp(what, "conf", 4) == 0)
		return show_config(c);
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (*what && strncasecmp(elsewhere[i].what, what, strlen(what)) == 0) {
			cli_say("error: show %s is not offered: %s", what, elsewhere[i].instead);
			return 1;
		}
	return cli_usage(c, "show %s: expected job, node, partition, config, hostnames or hostlist",
			 what),
	       1;
}
