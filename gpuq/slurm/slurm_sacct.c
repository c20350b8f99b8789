/* sacct: jobs that run and that have run. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gpuq/filter.h"
#include "gpuq/out.h"
#include "gpuq/slurm/slurm_command.h"
#include "gpuq/slurm/slurm_words.h"
#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"
#include "libgpuq/schema.h"
#include "libgpuq/units.h"

/* A line is of a job, or of its script (17.batch), which has some columns only. */
struct line {
	const struct gpuq_val *job;
	bool batch;
};

typedef void (*text_fn)(struct gpuq_buf *out, const struct line *l);

static void id_text(struct gpuq_buf *out, const struct line *l)
{
	view_job_id(out, l->job);
	if (l->batch)
		gpuq_buf_adds(out, ".batch");
}

static void raw_text(struct gpuq_buf *out, const struct line *l)
{
	gpuq_buf_printf(out, "%" PRId64 "%s", gpuq_get_int(l->job, "id", 0),
			l->batch ? ".batch" : "");
}

static void name_text(struct gpuq_buf *out, const struct line *l)
{
	gpuq_buf_adds(out, l->batch ? "batch" : gpuq_get_str(l->job, "name", ""));
}

#define OF_JOB(name, key)                                                                          \
	static void name##_text(struct gpuq_buf *out, const struct line *l)                        \
	{                                                                                          \
		if (!l->batch)                                                                     \
			gpuq_buf_adds(out, gpuq_get_str(l->job, key, ""));                         \
	}
OF_JOB(queue, "queue")
OF_JOB(user, "user")
OF_JOB(qos, "qos")
OF_JOB(comment, "comment")
OF_JOB(workdir, "workdir")

static void account_text(struct gpuq_buf *out, const struct line *l)
{
	gpuq_buf_adds(out, gpuq_get_str(l->job, "account", ""));
}

static bool began(const struct gpuq_val *job)
{
	return view_job_started(job);
}

static void cpus_text(struct gpuq_buf *out, const struct line *l)
{
	if (began(l->job))
		slurm_cpus(out, l->job);
	else
		gpuq_buf_addc(out, '0');
}

static void memory_text(struct gpuq_buf *out, const struct line *l)
{
	if (!l->batch)
		slurm_all_memory(out, l->job);
}

static void nodes_text(struct gpuq_buf *out, const struct line *l)
{
	gpuq_buf_printf(out, "%" PRId64, gpuq_get_int(l->job, "pod_count", 1));
}

static void state_text(struct gpuq_buf *out, const struct line *l)
{
	const int s = view_job_state(l->job);

	if (l->batch && (s == GPUQ_JOB_TIMEOUT || s == GPUQ_JOB_DEADLINE))
		gpuq_buf_adds(out, "CANCELLED");
	else if (s == GPUQ_JOB_STARTING || s == GPUQ_JOB_PROVISIONING)
		gpuq_buf_adds(out, "PENDING"); /* sacct knows no CONFIGURING */
	else
		gpuq_buf_adds(out, slurm_state(l->job, false));
}

static void exit_text(struct gpuq_buf *out, const struct line *l)
{
	const int s = view_job_state(l->job);

	if (l->batch && (s == GPUQ_JOB_TIMEOUT || s == GPUQ_JOB_CANCELLED))
		gpuq_buf_adds(out, "0:15");
	else
		slurm_exit(out, l->job);
}

static void derived_text(struct gpuq_buf *out, const struct line *l)
{
	if (!l->batch)
		gpuq_buf_adds(out, "0:0");
}

static void elapsed_text(struct gpuq_buf *out, const struct line *l)
{
	slurm_elapsed(out, view_job_elapsed_us(l->job, cli_now_us()));
}

static void elapsed_s_text(struct gpuq_buf *out, const struct line *l)
{
	gpuq_buf_printf(out, "%" PRId64, view_job_elapsed_us(l->job, cli_now_us()) / GPUQ_US_PER_S);
}

static void limit_text(struct gpuq_buf *out, const struct line *l)
{
	const int64_t s = gpuq_get_int(l->job, "time_limit_s", -1);

	if (l->batch)
		return;
	if (s < 0)
		gpuq_buf_adds(out, "UNLIMITED");
	else
		slurm_elapsed(out, s * GPUQ_US_PER_S);
}

#define OF_TIME(name, key)                                                                         \
	static void name##_text(struct gpuq_buf *out, const struct line *l)                        \
	{                                                                                          \
		slurm_time(out, gpuq_get(l->job, key), "Unknown");                                 \
	}
OF_TIME(submit, "submit_time")
OF_TIME(eligible, "eligible_time")
OF_TIME(start, "start_time")
OF_TIME(end, "end_time")

static void nodelist_text(struct gpuq_buf *out, const struct line *l)
{
	if (view_job_nodes(out, l->job) == 0)
		gpuq_buf_adds(out, "None assigned");
}

static void tres_text(struct gpuq_buf *out, const struct line *l)
{
	slurm_tres(out, l->job);
}

static void alloc_text(struct gpuq_buf *out, const struct line *l)
{
	if (began(l->job))
		tres_text(out, l);
}

static void reason_text(struct gpuq_buf *out, const struct line *l)
{
	if (!l->batch)
		gpuq_buf_adds(out, slurm_reason(l->job));
}

static void priority_text(struct gpuq_buf *out, const struct line *l)
{
	if (!l->batch)
		gpuq_buf_printf(out, "%" PRId64, gpuq_get_int(l->job, "priority", 0));
}

static void restarts_text(struct gpuq_buf *out, const struct line *l)
{
	gpuq_buf_printf(out, "%" PRId64, gpuq_get_int(l->job, "attempt", 0));
}

static void cluster_text(struct gpuq_buf *out, const struct line *l)
{
	(void)l;
	gpuq_buf_adds(out, "gpuq");
}

static void zero_text(struct gpuq_buf *out, const struct line *l)
{
	(void)l;
	gpuq_buf_adds(out, "00:00:00");
}

static void asked_text(struct gpuq_buf *out, const struct line *l)
{
	nodes_text(out, l);
}

/* How long it waited from when it could have started. */
static void planned_text(struct gpuq_buf *out, const struct line *l)
{
	const int64_t from_us = gpuq_get_int(l->job, "eligible_time", 0);
	const int64_t to_us = gpuq_get_int(l->job, "start_time", 0);

	if (!l->batch && from_us && to_us >= from_us)
		slurm_elapsed(out, to_us - from_us);
}

static void limit_min_text(struct gpuq_buf *out, const struct line *l)
{
	const int64_t s = gpuq_get_int(l->job, "time_limit_s", -1);

	if (!l->batch && s < 0)
		gpuq_buf_adds(out, "UNLIMITED");
	else if (!l->batch)
		gpuq_buf_printf(out, "%" PRId64, s / 60);
}

/* As sacct has them: a width below 0 is set to the left. Those without a text are not
 * measured here; scripts that ask for them as well get an empty cell, and a warning. */
static const struct field {
	const char *name;
	int width;
	text_fn text;
} fields[] = {
	{ "Account", 10, account_text },
	{ "AdminComment", 19, NULL },
	{ "AllocCPUS", 10, cpus_text },
	{ "AllocNodes", 10, nodes_text },
	{ "AllocTRES", 10, alloc_text },
	{ "AssocID", 7, NULL },
	{ "AveCPU", 10, NULL },
	{ "AveCPUFreq", 10, NULL },
	{ "AveDiskRead", 14, NULL },
	{ "AveDiskWrite", 14, NULL },
	{ "AvePages", 10, NULL },
	{ "AveRSS", 10, NULL },
	{ "AveVMSize", 10, NULL },
	{ "Cluster", 10, cluster_text },
	{ "Comment", 14, comment_text },
	{ "Constraints", 19, NULL },
	{ "ConsumedEnergy", 14, NULL },
	{ "ConsumedEnergyRaw", 17, NULL },
	{ "Container", 19, NULL },
	{ "CPUTime", 10, NULL },
	{ "CPUTimeRAW", 10, NULL },
	{ "DBIndex", 10, NULL },
	{ "DerivedExitCode", 15, derived_text },
	{ "Elapsed", 10, elapsed_text },
	{ "ElapsedRaw", 10, elapsed_s_text },
	{ "Eligible", 19, eligible_text },
	{ "End", 19, end_text },
	{ "ExitCode", 8, exit_text },
	{ "ExtraInfo", 19, NULL },
	{ "FailedNode", 15, NULL },
	{ "Flags", 20, NULL },
	{ "GID", 6, NULL },
	{ "Group", 9, user_text },
	{ "JobID", -12, id_text },
	{ "JobIDRaw", -12, raw_text },
	{ "JobName", 10, name_text },
	{ "Layout", 9, NULL },
	{ "MaxDiskRead", 12, NULL },
	{ "MaxDiskReadNode", 15, NULL },
	{ "MaxDiskReadTask", 15, NULL },
	{ "MaxDiskWrite", 12, NULL },
	{ "MaxDiskWriteNode", 16, NULL },
	{ "MaxDiskWriteTask", 16, NULL },
	{ "MaxPages", 8, NULL },
	{ "MaxPagesNode", 12, NULL },
	{ "MaxPagesTask", 14, NULL },
	{ "MaxRSS", 10, NULL },
	{ "MaxRSSNode", 10, NULL },
	{ "MaxRSSTask", 10, NULL },
	{ "MaxVMSize", 10, NULL },
	{ "MaxVMSizeNode", 14, NULL },
	{ "MaxVMSizeTask", 14, NULL },
	{ "McsLabel", 9, NULL },
	{ "MinCPU", 10, NULL },
	{ "MinCPUNode", 10, NULL },
	{ "MinCPUTask", 10, NULL },
	{ "NCPUS", 10, cpus_text },
	{ "NNodes", 8, nodes_text },
	{ "NodeList", 15, nodelist_text },
	{ "NTasks", 8, NULL },
	{ "Partition", 10, queue_text },
	{ "Planned", 10, planned_text },
	{ "PlannedCPU", 10, NULL },
	{ "PlannedCPURAW", 13, NULL },
	{ "Priority", 10, priority_text },
	{ "QOS", 10, qos_text },
	{ "QOSRAW", 10, NULL },
	{ "QOSREQ", 10, NULL },
	{ "Reason", 22, reason_text },
	{ "ReqCPUFreq", 10, NULL },
	{ "ReqCPUFreqGov", 13, NULL },
	{ "ReqCPUFreqMax", 13, NULL },
	{ "ReqCPUFreqMin", 13, NULL },
	{ "ReqCPUS", 8, asked_text },
	{ "ReqMem", 10, memory_text },
	{ "ReqNodes", 8, nodes_text },
	{ "ReqTRES", 10, tres_text },
	{ "Reservation", 20, NULL },
	{ "ReservationId", 15, NULL },
	{ "Reserved", 10, planned_text },
	{ "Restarts", 8, restarts_text },
	{ "ResvCPU", 10, NULL },
	{ "ResvCPURAW", 10, NULL },
	{ "SLUID", 14, NULL },
	{ "Start", 19, start_text },
	{ "State", 10, state_text },
	{ "StdErr", 20, NULL },
	{ "StdIn", 20, NULL },
	{ "StdOut", 20, NULL },
	{ "Submit", 19, submit_text },
	{ "SubmitLine", 20, NULL },
	{ "Suspended", 10, zero_text },
	{ "SystemComment", 19, NULL },
	{ "SystemCPU", 10, NULL },
	{ "Timelimit", 10, limit_text },
	{ "TimelimitRaw", 12, limit_min_text },
	{ "TotalCPU", 10, NULL },
	{ "TRESUsageInAve", 14, NULL },
	{ "TRESUsageInMax", 14, NULL },
	{ "TRESUsageInMaxNode", 18, NULL },
	{ "TRESUsageInMaxTask", 18, NULL },
	{ "TRESUsageInMin", 14, NULL },
	{ "TRESUsageInMinNode", 18, NULL },
	{ "TRESUsageInMinTask", 18, NULL },
	{ "TRESUsageInTot", 14, NULL },
	{ "TRESUsageOutAve", 15, NULL },
	{ "TRESUsageOutMax", 15, NULL },
	{ "TRESUsageOutMaxNode", 19, NULL },
	{ "TRESUsageOutMaxTask", 19, NULL },
	{ "TRESUsageOutMin", 15, NULL },
	{ "TRESUsageOutTot", 15, NULL },
	{ "UID", 6, NULL },
	{ "User", 9, user_text },
	{ "UserCPU", 10, NULL },
	{ "WCKey", 10, NULL },
	{ "WCKeyID", 8, NULL },
	{ "WorkDir", 20, workdir_text },
};

#define FIELDS_MAX 128
#define N_FIELDS (sizeof(fields) / sizeof(fields[0]))

struct table {
	struct cli *c;
	const struct field *shown[FIELDS_MAX];
	int width[FIELDS_MAX];
	size_t n;
	const char *between; /* with -p and -P */
	bool ends; /* with -p */
	struct gpuq_val *jobs;
};

static bool read_fields(struct table *t, const char *text)
{
	while (*text) {
		const size_t n = strcspn(text, ","), len = strcspn(text, ",%");
		const char *names[N_FIELDS + 1], *near;
		char word[64];
		size_t i = 0;

		snprintf(word, sizeof(word), "%.*s", (int)(len < 63 ? len : 63), text);
		while (i < N_FIELDS && strcasecmp(fields[i].name, word) != 0)
			i++;
		if (i == N_FIELDS || t->n == FIELDS_MAX) {
			for (size_t k = 0; k < N_FIELDS; k++)
				names[k] = fields[k].name;
			names[N_FIELDS] = NULL;
			near = gpuq_nearest(word, names);
			cli_say("error: no field %s%s%s; sacct --helpformat lists them", word,
				near ? "; did you mean " : "", near ? near : "");
			return false;
		}
		if (!fields[i].text)
			cli_say("warning: %s is not recorded: its column stays empty",
				fields[i].name);
		t->shown[t->n] = &fields[i];
		t->width[t->n] = len < n ? (int)strtol(text + len + 1, NULL, 10) : fields[i].width;
		if (t->width[t->n] == 0 || abs(t->width[t->n]) > 1000)
			t->width[t->n] = fields[i].width;
		t->n++;
		text += n + (text[n] == ',');
	}
	return t->n > 0;
}

/* A column as sacct cuts it: a plus sign says that there is more. */
static void put_cell(const char *cell, int width)
{
	const size_t want = (size_t)abs(width);
	struct gpuq_buf clean = GPUQ_BUF_INIT, fit = GPUQ_BUF_INIT;

	term_clean_str(&clean, cell);
	if (clean.len > want) {
		term_fit(&fit, gpuq_buf_str(&clean), want - 1, false);
		gpuq_buf_addc(&fit, '+');
	} else {
		term_fit(&fit, gpuq_buf_str(&clean), want, width > 0);
	}
	printf("%s ", gpuq_buf_str(&fit));
	gpuq_buf_done(&clean);
	gpuq_buf_done(&fit);
}

static void print_head(const struct table *t)
{
	if (opt_given(&t->c->args, OPT_NO_HEADER))
		return;
	for (size_t i = 0; i < t->n; i++) {
		if (t->between)
			printf("%s%s", t->shown[i]->name,
			       i + 1 < t->n || t->ends ? t->between : "");
		else
			put_cell(t->shown[i]->name, t->width[i]);
	}
	putchar('\n');
	for (size_t i = 0; !t->between && i < t->n; i++) {
		for (int k = 0; k < abs(t->width[i]); k++)
			putchar('-');
		putchar(' ');
	}
	if (!t->between)
		putchar('\n');
}

static void print_line(const struct table *t, const struct line *l)
{
	struct gpuq_buf cell = GPUQ_BUF_INIT, clean = GPUQ_BUF_INIT;

	for (size_t i = 0; i < t->n; i++) {
		gpuq_buf_clear(&cell);
		gpuq_buf_clear(&clean);
		if (t->shown[i]->text)
			t->shown[i]->text(&cell, l);
		if (!t->between) {
			put_cell(gpuq_buf_str(&cell), t->width[i]);
			continue;
		}
		term_clean_str(&clean, gpuq_buf_str(&cell));
		printf("%s%s", gpuq_buf_str(&clean), i + 1 < t->n || t->ends ? t->between : "");
	}
	putchar('\n');
	gpuq_buf_done(&cell);
	gpuq_buf_done(&clean);
}

/* All keys that columns and filters read. */
static const char *const keys[] = {
	"id",         "array_index", "array",     "name",    "user",         "queue",
	"account",    "qos",         "state",     "reason",  "submit_time",  "eligible_time",
	"start_time", "end_time",    "exit_code", "attempt", "time_limit_s", "priority",
	"pod_count",  "gpus",        "pods.node", "cpus",    "memory_mib",   "comment",
	"workdir",    NULL,
};

static void take(void *arg, const struct gpuq_val *job)
{
	struct table *t = arg;

	if (slurm_keep(t->c, job) && !slurm_is_spent_array(job))
		gpuq_add(&t->c->arena, t->jobs, gpuq_val_copy(&t->c->arena, job));
}

static int by_id(const void *x, const void *y)
{
	const struct gpuq_val *const *a = x, *const *b = y;
	const int64_t i = gpuq_get_int(*a, "id", 0), k = gpuq_get_int(*b, "id", 0);
	const int64_t p = gpuq_get_int(*a, "array_index", -1);
	const int64_t q = gpuq_get_int(*b, "array_index", -1);

	if (i != k)
		return i < k ? -1 : 1;
	/* The pending part of an array sorts after its elements. */
	return p == q ? 0 : p < 0 ? 1 : q < 0 ? -1 : p < q ? -1 : 1;
}

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	static const struct {
		enum opt_id id;
		const char *key, *option;
	} times[] = { { OPT_SINCE, "since_us", "--starttime" },
		      { OPT_UNTIL, "until_us", "--endtime" } };
	struct gpuq_arena *a = &c->arena;
	const char *given[2] = { c->args.val[OPT_SINCE], c->args.val[OPT_UNTIL] };
	int64_t us;
	int rc;

	/* sacct's own times. */
	c->args.val[OPT_SINCE] = c->args.val[OPT_UNTIL] = NULL;
	rc = filter_put(c, params, err);
	if (!given[0] && !opt_given(&c->args, OPT_JOBS))
		given[0] = "today";
	for (int i = 0; rc == 0 && i < 2; i++) {
		if (!given[i])
			continue;
		if (slurm_instant(given[i], &us) < 0)
			return gpuq_fail(err, GPUQ_EINVAL,
					 "%s %s: expected a time such as 2026-12-01, 09:00 or "
					 "now-2days",
					 times[i].option, given[i]);
		gpuq_set(a, params, times[i].key, gpuq_int(a, us > 0 ? us : 0));
	}
	gpuq_set(a, params, "all", gpuq_bool(a, true));
	/* Sums need all jobs: without a limit only the newest would be read. */
	gpuq_set(a, params, "limit", gpuq_int(a, INT64_MAX));
	/* Default: the caller's jobs; for an operator those of all users. */
	if (rc == 0 && !opt_given(&c->args, OPT_USERS) && !opt_given(&c->args, OPT_ME) &&
	    !opt_given(&c->args, OPT_ALL) && !opt_given(&c->args, OPT_JOBS) && cli_user(c)) {
		struct gpuq_val *mine = gpuq_list(a);

		gpuq_add(a, mine, gpuq_str(a, cli_user(c)));
		gpuq_put(a, params, "users", mine);
	}
	return rc;
}

static const char *all_fields(const struct cli *c)
{
	struct gpuq_buf out = GPUQ_BUF_INIT;
	const char *s;

	for (size_t i = 0; i < N_FIELDS; i++)
		gpuq_buf_printf(&out, "%s%s", i ? "," : "", fields[i].name);
	s = gpuq_arena_strdup(c->args.arena, gpuq_buf_str(&out));
	gpuq_buf_done(&out);
	return s;
}

int slurm_sacct(struct cli *c)
{
	const char *format = c->args.val[OPT_FORMAT];
	struct gpuq_val *params = gpuq_map(&c->arena);
	struct table t = { .c = c, .jobs = gpuq_list(&c->arena) };
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc;

	if (opt_given(&c->args, OPT_S_HELPFORMAT)) {
		for (size_t i = 0; i < N_FIELDS; i++)
			puts(fields[i].name);
		return EXIT_DONE;
	}
	if (opt_given(&c->args, OPT_S_BRIEF))
		format = "JobID,State,ExitCode";
	else if (!format && opt_given(&c->args, OPT_LONG))
		format = "JobID,JobName,User,Account,Partition,QOS,AllocTRES,NNodes,NodeList,State,"
			 "ExitCode,Submit,Start,End,Elapsed,Timelimit,Restarts";
	else if (!format)
		format = getenv("SACCT_FORMAT")
				 ? getenv("SACCT_FORMAT")
				 : "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
	if (strcasecmp(format, "ALL") == 0)
		format = all_fields(c);
	if (!format || !read_fields(&t, format))
		return 1;
	t.ends = opt_given(&c->args, OPT_PARSABLE);
	if (t.ends || opt_given(&c->args, OPT_S_PARSABLE2))
		t.between = c->args.val[OPT_S_DELIMITER] ? c->args.val[OPT_S_DELIMITER] : "|";
	rc = cli_connect(c, &err);
	if (rc == 0)
		rc = fill(c, params, &err);
	if (rc == 0)
		rc = slurm_each(c, "job.list", params, opt_given(&c->args, OPT_JSON) ? NULL : keys,
				take, &t, &err);
	if (rc < 0 && rc != GPUQ_ENOENT)
		return slurm_fail(&err);
	if (t.jobs->n > 1)
		qsort(t.jobs->items, t.jobs->n, sizeof(*t.jobs->items), by_id);
	if (!opt_given(&c->args, OPT_JSON))
		print_head(&t);
	for (size_t i = 0; i < t.jobs->n; i++) {
		struct line l = { t.jobs->items[i], false };

		if (opt_given(&c->args, OPT_JSON)) {
			out_json(l.job);
			continue;
		}
		print_line(&t, &l);
		l.batch = true;
		if (!opt_given(&c->args, OPT_S_ALLOCATIONS) && began(l.job))
			print_line(&t, &l);
	}
	return EXIT_DONE;
}
