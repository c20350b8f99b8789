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
#include "gpuq/slurm/slurm_json.h"
#include "gpuq/slurm/slurm_steps.h"
#include "gpuq/slurm/slurm_table.h"
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

static void id_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	view_job_id(out, l->job);
	if (l->batch)
		gpuq_buf_adds(out, ".batch");
}

static void raw_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	gpuq_buf_printf(out, "%" PRId64 "%s", slurm_number(l->job), l->batch ? ".batch" : "");
}

static void name_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	gpuq_buf_adds(out, l->batch ? "batch" : gpuq_get_str(l->job, "name", ""));
}

#define OF_JOB(name, key)                                                                          \
	static void name##_text(struct gpuq_buf *out, const void *line)                            \
	{                                                                                          \
		const struct line *l = line;                                                       \
                                                                                                   \
		if (!l->batch)                                                                     \
			gpuq_buf_adds(out, gpuq_get_str(l->job, key, ""));                         \
	}
OF_JOB(queue, "queue")
OF_JOB(user, "user")
OF_JOB(qos, "qos")
OF_JOB(comment, "comment")
OF_JOB(workdir, "workdir")

static void account_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	gpuq_buf_adds(out, gpuq_get_str(l->job, "account", ""));
}

static bool began(const struct gpuq_val *job)
{
	return view_job_started(job);
}

static void cpus_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	if (began(l->job))
		slurm_cpus(out, l->job);
	else
		gpuq_buf_addc(out, '0');
}

static void memory_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	if (!l->batch)
		slurm_all_memory(out, l->job);
}

static void nodes_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	gpuq_buf_printf(out, "%" PRId64, gpuq_get_int(l->job, "pod_count", 1));
}

/* "by 1000": the number of the user that cancelled it, as far as this machine knows it. */
static void add_canceller(struct gpuq_buf *out, const char *user)
{
	const struct passwd *pw = slurm_user(user);

	if (pw)
		gpuq_buf_printf(out, " by %ju", (uintmax_t)pw->pw_uid);
	else if (user)
		gpuq_buf_printf(out, " by %s", user);
}

static void state_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	const int s = view_job_state(l->job);

	if (l->batch && (s == GPUQ_JOB_TIMEOUT || s == GPUQ_JOB_DEADLINE))
		gpuq_buf_adds(out, "CANCELLED");
	else if (s == GPUQ_JOB_STARTING || s == GPUQ_JOB_PROVISIONING)
		gpuq_buf_adds(out, "PENDING"); /* sacct knows no CONFIGURING */
	else
		gpuq_buf_adds(out, slurm_state(l->job, false));
	if (!l->batch && s == GPUQ_JOB_CANCELLED)
		add_canceller(out, gpuq_get_str(l->job, "cancelled_by", NULL));
}

static void exit_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	const int s = view_job_state(l->job);

	if (l->batch && (s == GPUQ_JOB_TIMEOUT || s == GPUQ_JOB_CANCELLED))
		gpuq_buf_adds(out, "0:15");
	else
		slurm_exit(out, l->job);
}

static void derived_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	if (!l->batch)
		gpuq_buf_adds(out, "0:0");
}

static void elapsed_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	slurm_elapsed(out, view_job_elapsed_us(l->job, cli_now_us()));
}

static void elapsed_s_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	gpuq_buf_printf(out, "%" PRId64, view_job_elapsed_us(l->job, cli_now_us()) / GPUQ_US_PER_S);
}

static void limit_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	const int64_t s = gpuq_get_int(l->job, "time_limit_s", -1);

	if (l->batch)
		return;
	if (s < 0)
		gpuq_buf_adds(out, "UNLIMITED");
	else
		slurm_elapsed(out, s * GPUQ_US_PER_S);
}

#define OF_TIME(name, key)                                                                         \
	static void name##_text(struct gpuq_buf *out, const void *line)                            \
	{                                                                                          \
		const struct line *l = line;                                                       \
                                                                                                   \
		slurm_time(out, gpuq_get(l->job, key), "Unknown");                                 \
	}
OF_TIME(submit, "submit_time")
OF_TIME(eligible, "eligible_time")
OF_TIME(start, "start_time")
OF_TIME(end, "end_time")

static void nodelist_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	if (view_job_nodes(out, l->job) == 0)
		gpuq_buf_adds(out, "None assigned");
}

static void tres_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	slurm_tres(out, l->job);
}

static void alloc_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	if (began(l->job))
		tres_text(out, line);
}

static void reason_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	if (!l->batch)
		gpuq_buf_adds(out, slurm_reason(l->job));
}

static void priority_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	if (!l->batch)
		gpuq_buf_printf(out, "%" PRId64, gpuq_get_int(l->job, "priority", 0));
}

static void restarts_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	gpuq_buf_printf(out, "%" PRId64, gpuq_get_int(l->job, "attempt", 0));
}

static void cluster_text(struct gpuq_buf *out, const void *line)
{
	(void)line;
	gpuq_buf_adds(out, "gpuq");
}

static void zero_text(struct gpuq_buf *out, const void *line)
{
	(void)line;
	gpuq_buf_adds(out, "00:00:00");
}

static void asked_text(struct gpuq_buf *out, const void *line)
{
	nodes_text(out, line);
}

/* How long it waited from when it could have started. */
static void planned_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	const int64_t from_us = gpuq_get_int(l->job, "eligible_time", 0);
	const int64_t to_us = gpuq_get_int(l->job, "start_time", 0);

	if (!l->batch && from_us && to_us >= from_us)
		slurm_elapsed(out, to_us - from_us);
}

static void limit_min_text(struct gpuq_buf *out, const void *line)
{
	const struct line *l = line;

	const int64_t s = gpuq_get_int(l->job, "time_limit_s", -1);

	if (!l->batch && s < 0)
		gpuq_buf_adds(out, "UNLIMITED");
	else if (!l->batch)
		gpuq_buf_printf(out, "%" PRId64, s / 60);
}

/* ---- what it used ---- */

/* An amount that is not known: 0 for a job that never ran, since it used nothing. */
static void not_known(struct gpuq_buf *out, const struct gpuq_val *job, const char *none)
{
	if (!began(job))
		gpuq_buf_adds(out, none);
	else if (view_job_ended(job))
		gpuq_buf_adds(out, "Unknown");
}

/* "01:02.345", and with hours "03:01:02", as sacct has CPU time. */
static void cpu_text(struct gpuq_buf *out, const struct gpuq_val *job, int64_t ms)
{
	if (ms < 0)
		not_known(out, job, "00:00:00");
	else if (ms < 3600000)
		gpuq_buf_printf(out, "%02" PRId64 ":%02" PRId64 ".%03" PRId64, ms / 60000,
				ms / 1000 % 60, ms % 1000);
	else
		slurm_elapsed(out, ms * 1000);
}

#define OF_CPU(name, ...)                                                                          \
	static void name##_text(struct gpuq_buf *out, const void *line)                            \
	{                                                                                          \
		const struct gpuq_val *job = ((const struct line *)line)->job;                     \
                                                                                                   \
		cpu_text(out, job, __VA_ARGS__);                                                   \
	}
OF_CPU(total_cpu, view_used_cpu_ms(job))
OF_CPU(user_cpu, view_used(job, "user_ms"))
OF_CPU(system_cpu, view_used(job, "system_ms"))

/* The time of all its cores, used or not. */
static int64_t cpu_time_us(const struct gpuq_val *job)
{
	const double cpus = view_number(gpuq_get(job, "cpus"), 0);

	return (int64_t)((double)view_job_elapsed_us(job, cli_now_us()) * (cpus > 0 ? cpus : 1));
}

static void cpu_time_text(struct gpuq_buf *out, const void *line)
{
	slurm_elapsed(out, cpu_time_us(((const struct line *)line)->job));
}

static void cpu_time_raw_text(struct gpuq_buf *out, const void *line)
{
	gpuq_buf_printf(out, "%" PRId64,
			cpu_time_us(((const struct line *)line)->job) / GPUQ_US_PER_S);
}

static void rss_text(struct gpuq_buf *out, const void *line)
{
	const struct gpuq_val *job = ((const struct line *)line)->job;
	const int64_t bytes = view_used(job, "memory_bytes");

	if (bytes < 0)
		not_known(out, job, "0");
	else
		gpuq_buf_printf(out, "%" PRId64 "K", bytes / 1024);
}

#define OF_DISK(name, key)                                                                         \
	static void name##_text(struct gpuq_buf *out, const void *line)                            \
	{                                                                                          \
		const struct gpuq_val *job = ((const struct line *)line)->job;                     \
		const int64_t bytes = view_used(job, key);                                         \
                                                                                                   \
		if (bytes < 0)                                                                     \
			not_known(out, job, "0");                                                  \
		else                                                                               \
			gpuq_buf_printf(out, "%.2fM", (double)bytes / (1024 * 1024));              \
	}
OF_DISK(disk_read, "read_bytes")
OF_DISK(disk_write, "written_bytes")

/* "cpu=00:01:02,fs/disk=4096,mem=1024K,gres/gpumem=80M,gres/gpuutil=43", of what is known. */
static void usage_in_text(struct gpuq_buf *out, const void *line)
{
	const struct gpuq_val *job = ((const struct line *)line)->job;
	const struct gpuq_val *gpu = gpuq_get(gpuq_get(job, "used"), "gpu_percent");
	const int64_t cpu = view_used_cpu_ms(job), in = view_used(job, "read_bytes");
	const int64_t memory = view_used(job, "memory_bytes");
	const size_t from = out->len;

	if (cpu >= 0) {
		gpuq_buf_adds(out, "cpu=");
		slurm_elapsed(out, cpu * 1000);
	}
	if (in >= 0)
		gpuq_buf_printf(out, "%sfs/disk=%" PRId64, out->len > from ? "," : "", in);
	if (memory >= 0)
		gpuq_buf_printf(out, "%smem=%" PRId64 "K", out->len > from ? "," : "",
				memory / 1024);
	if (view_used(job, "gpu_memory_bytes") >= 0)
		gpuq_buf_printf(out, "%sgres/gpumem=%" PRId64 "M", out->len > from ? "," : "",
				view_used(job, "gpu_memory_bytes") >> 20);
	if (gpu && gpu->type != GPUQ_NULL)
		gpuq_buf_printf(out, "%sgres/gpuutil=%.0f", out->len > from ? "," : "",
				view_number(gpu, 0));
	if (out->len == from)
		not_known(out, job, "cpu=00:00:00,fs/disk=0,mem=0");
}

static void usage_out_text(struct gpuq_buf *out, const void *line)
{
	const struct gpuq_val *job = ((const struct line *)line)->job;
	const int64_t bytes = view_used(job, "written_bytes");

	if (bytes < 0)
		not_known(out, job, "fs/disk=0");
	else
		gpuq_buf_printf(out, "fs/disk=%" PRId64, bytes);
}

/* As sacct has them: a width below 0 is set to the left. Those without a text are not
 * measured here; scripts that request them as well get an empty cell, and a warning. */
static const struct slurm_column fields[] = {
	{ "Account", 10, account_text, NULL },
	{ "AdminComment", 19, NULL, NULL },
	{ "AllocCPUS", 10, cpus_text, NULL },
	{ "AllocNodes", 10, nodes_text, NULL },
	{ "AllocTRES", 10, alloc_text, NULL },
	{ "AssocID", 7, NULL, NULL },
	{ "AveCPU", 10, total_cpu_text, NULL },
	{ "AveCPUFreq", 10, NULL, NULL },
	{ "AveDiskRead", 14, disk_read_text, NULL },
	{ "AveDiskWrite", 14, disk_write_text, NULL },
	{ "AvePages", 10, NULL, NULL },
	{ "AveRSS", 10, rss_text, NULL },
	{ "AveVMSize", 10, NULL, NULL },
	{ "Cluster", 10, cluster_text, NULL },
	{ "Comment", 14, comment_text, NULL },
	{ "Constraints", 19, NULL, NULL },
	{ "ConsumedEnergy", 14, NULL, NULL },
	{ "ConsumedEnergyRaw", 17, NULL, NULL },
	{ "Container", 19, NULL, NULL },
	{ "CPUTime", 10, cpu_time_text, NULL },
	{ "CPUTimeRAW", 10, cpu_time_raw_text, NULL },
	{ "DBIndex", 10, NULL, NULL },
	{ "DerivedExitCode", 15, derived_text, NULL },
	{ "Elapsed", 10, elapsed_text, NULL },
	{ "ElapsedRaw", 10, elapsed_s_text, NULL },
	{ "Eligible", 19, eligible_text, NULL },
	{ "End", 19, end_text, NULL },
	{ "ExitCode", 8, exit_text, NULL },
	{ "ExtraInfo", 19, NULL, NULL },
	{ "FailedNode", 15, NULL, NULL },
	{ "Flags", 20, NULL, NULL },
	{ "GID", 6, NULL, NULL },
	{ "Group", 9, user_text, NULL },
	{ "JobID", -12, id_text, NULL },
	{ "JobIDRaw", -12, raw_text, NULL },
	{ "JobName", 10, name_text, NULL },
	{ "Layout", 9, NULL, NULL },
	{ "MaxDiskRead", 12, disk_read_text, NULL },
	{ "MaxDiskReadNode", 15, NULL, NULL },
	{ "MaxDiskReadTask", 15, NULL, NULL },
	{ "MaxDiskWrite", 12, disk_write_text, NULL },
	{ "MaxDiskWriteNode", 16, NULL, NULL },
	{ "MaxDiskWriteTask", 16, NULL, NULL },
	{ "MaxPages", 8, NULL, NULL },
	{ "MaxPagesNode", 12, NULL, NULL },
	{ "MaxPagesTask", 14, NULL, NULL },
	{ "MaxRSS", 10, rss_text, NULL },
	{ "MaxRSSNode", 10, NULL, NULL },
	{ "MaxRSSTask", 10, NULL, NULL },
	{ "MaxVMSize", 10, NULL, NULL },
	{ "MaxVMSizeNode", 14, NULL, NULL },
	{ "MaxVMSizeTask", 14, NULL, NULL },
	{ "McsLabel", 9, NULL, NULL },
	{ "MinCPU", 10, total_cpu_text, NULL },
	{ "MinCPUNode", 10, NULL, NULL },
	{ "MinCPUTask", 10, NULL, NULL },
	{ "NCPUS", 10, cpus_text, NULL },
	{ "NNodes", 8, nodes_text, NULL },
	{ "NodeList", 15, nodelist_text, NULL },
	{ "NTasks", 8, nodes_text, NULL },
	{ "Partition", 10, queue_text, NULL },
	{ "Planned", 10, planned_text, NULL },
	{ "PlannedCPU", 10, NULL, NULL },
	{ "PlannedCPURAW", 13, NULL, NULL },
	{ "Priority", 10, priority_text, NULL },
	{ "QOS", 10, qos_text, NULL },
	{ "QOSRAW", 10, NULL, NULL },
	{ "QOSREQ", 10, NULL, NULL },
	{ "Reason", 22, reason_text, NULL },
	{ "ReqCPUFreq", 10, NULL, NULL },
	{ "ReqCPUFreqGov", 13, NULL, NULL },
	{ "ReqCPUFreqMax", 13, NULL, NULL },
	{ "ReqCPUFreqMin", 13, NULL, NULL },
	{ "ReqCPUS", 8, asked_text, NULL },
	{ "ReqMem", 10, memory_text, NULL },
	{ "ReqNodes", 8, nodes_text, NULL },
	{ "ReqTRES", 10, tres_text, NULL },
	{ "Reservation", 20, NULL, NULL },
	{ "ReservationId", 15, NULL, NULL },
	{ "Reserved", 10, planned_text, NULL },
	{ "Restarts", 8, restarts_text, NULL },
	{ "ResvCPU", 10, NULL, NULL },
	{ "ResvCPURAW", 10, NULL, NULL },
	{ "SLUID", 14, NULL, NULL },
	{ "Start", 19, start_text, NULL },
	{ "State", 10, state_text, NULL },
	{ "StdErr", 20, NULL, NULL },
	{ "StdIn", 20, NULL, NULL },
	{ "StdOut", 20, NULL, NULL },
	{ "Submit", 19, submit_text, NULL },
	{ "SubmitLine", 20, NULL, NULL },
	{ "Suspended", 10, zero_text, NULL },
	{ "SystemComment", 19, NULL, NULL },
	{ "SystemCPU", 10, system_cpu_text, NULL },
	{ "Timelimit", 10, limit_text, NULL },
	{ "TimelimitRaw", 12, limit_min_text, NULL },
	{ "TotalCPU", 10, total_cpu_text, NULL },
	{ "TRESUsageInAve", 14, usage_in_text, NULL },
	{ "TRESUsageInMax", 14, usage_in_text, NULL },
	{ "TRESUsageInMaxNode", 18, NULL, NULL },
	{ "TRESUsageInMaxTask", 18, NULL, NULL },
	{ "TRESUsageInMin", 14, usage_in_text, NULL },
	{ "TRESUsageInMinNode", 18, NULL, NULL },
	{ "TRESUsageInMinTask", 18, NULL, NULL },
	{ "TRESUsageInTot", 14, usage_in_text, NULL },
	{ "TRESUsageOutAve", 15, usage_out_text, NULL },
	{ "TRESUsageOutMax", 15, usage_out_text, NULL },
	{ "TRESUsageOutMaxNode", 19, NULL, NULL },
	{ "TRESUsageOutMaxTask", 19, NULL, NULL },
	{ "TRESUsageOutMin", 15, usage_out_text, NULL },
	{ "TRESUsageOutTot", 15, usage_out_text, NULL },
	{ "UID", 6, NULL, NULL },
	{ "User", 9, user_text, NULL },
	{ "UserCPU", 10, user_cpu_text, NULL },
	{ "WCKey", 10, NULL, NULL },
	{ "WCKeyID", 8, NULL, NULL },
	{ "WorkDir", 20, workdir_text, NULL },
	{ NULL, 0, NULL, NULL },
};

#define N_FIELDS (sizeof(fields) / sizeof(fields[0]) - 1)

struct table {
	struct cli *c;
	struct slurm_table out;
	struct gpuq_val *jobs;
};

/* The keys that columns read, beside those that all lines need. */
static const struct {
	void (*text)(struct gpuq_buf *out, const void *line);
	const char *keys;
} reads[] = {
	{ account_text, "account" },
	{ alloc_text, "cpus memory_mib pod_count gpus" },
	{ asked_text, "pod_count" },
	{ comment_text, "comment" },
	{ cpu_time_raw_text, "cpus" },
	{ cpu_time_text, "cpus" },
	{ cpus_text, "cpus pod_count" },
	{ disk_read_text, "used" },
	{ disk_write_text, "used" },
	{ eligible_text, "eligible_time" },
	{ exit_text, "exit_code" },
	{ limit_min_text, "time_limit_s" },
	{ limit_text, "time_limit_s" },
	{ memory_text, "memory_mib" },
	{ name_text, "name" },
	{ nodelist_text, "pods.node" },
	{ nodes_text, "pod_count" },
	{ planned_text, "eligible_time" },
	{ priority_text, "priority" },
	{ qos_text, "qos" },
	{ queue_text, "queue" },
	{ raw_text, "element_id" },
	{ reason_text, "reason exit_code" },
	{ restarts_text, "attempt" },
	{ rss_text, "used" },
	{ state_text, "cancelled_by" },
	{ submit_text, "submit_time" },
	{ system_cpu_text, "used" },
	{ total_cpu_text, "used" },
	{ tres_text, "cpus memory_mib pod_count gpus" },
	{ usage_in_text, "used" },
	{ usage_out_text, "used" },
	{ user_cpu_text, "used" },
	{ user_text, "user" },
	{ workdir_text, "workdir" },
};

/* Return the keys that all lines, the filters and the columns shown read; NULL: no memory. */
static const char *const *keys_of(struct cli *c, const struct slurm_table *t)
{
	static const char always[] = "state array array_index id start_time end_time";
	const bool filters = opt_given(&c->args, OPT_S_NOTME) ||
			     opt_given(&c->args, OPT_S_ACCOUNTS) || opt_given(&c->args, OPT_S_QOS);
	struct gpuq_buf all = GPUQ_BUF_INIT;
	const char **keys;
	char *text, *save = NULL;
	size_t n = 0;

	gpuq_buf_printf(&all, "%s%s", always, filters ? " user account qos" : "");
	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < sizeof(reads) / sizeof(reads[0]); k++)
			if (t->shown[i]->text == reads[k].text)
				gpuq_buf_printf(&all, " %s", reads[k].keys);
	text = gpuq_arena_strdup(&c->arena, gpuq_buf_str(&all));
	gpuq_buf_done(&all);
	keys = text ? gpuq_arena_calloc(&c->arena, strlen(text) / 2 + 2, sizeof(*keys)) : NULL;
	for (char *k = keys ? strtok_r(text, " ", &save) : NULL; k;
	     k = strtok_r(NULL, " ", &save)) {
		size_t i = 0;

		while (i < n && strcmp(keys[i], k) != 0)
			i++;
		if (i == n)
			keys[n++] = k;
	}
	return keys;
}

static void take(void *arg, const struct gpuq_val *job)
{
	struct table *t = arg;
	struct gpuq_val *rest = slurm_rest(&t->c->arena, job);

	if (slurm_keep(t->c, job) && !slurm_is_spent_array(job))
		gpuq_add(&t->c->arena, t->jobs, rest ? rest : gpuq_val_copy(&t->c->arena, job));
}

struct place {
	int64_t id;
	uint64_t index; /* the pending part of an array sorts after its elements */
	struct gpuq_val *job;
};

static int by_id(const void *x, const void *y)
{
	const struct place *a = x, *b = y;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

/* Sort the jobs by their ids, which are looked up once. False: no memory. */
static bool sort(struct gpuq_val *jobs)
{
	struct place *all = calloc(jobs->n + 1u, sizeof(*all));

	for (uint32_t i = 0; all && i < jobs->n; i++) {
		struct gpuq_val *v = jobs->items[i];

		all[i] = (struct place){ gpuq_get_int(v, "id", 0),
					 (uint64_t)gpuq_get_int(v, "array_index", -1), v };
	}
	if (all)
		qsort(all, jobs->n, sizeof(*all), by_id);
	for (uint32_t i = 0; all && i < jobs->n; i++)
		jobs->items[i] = all[i].job;
	free(all);
	return all != NULL;
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
	/* As Slurm: what ran or was pending meanwhile, not only what ended. */
	gpuq_set(a, params, "overlaps", gpuq_bool(a, true));
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
	struct table t = { .c = c,
			   .out = { .cols = fields, .help = "sacct --helpformat lists them" },
			   .jobs = gpuq_list(&c->arena) };
	struct steps_list steps = { .jobs = NULL };
	const char *const *keys = NULL; /* all */
	struct gpuq_err err = GPUQ_ERR_INIT;
	bool none = false;
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
	if (!format || !slurm_table_fields(&t.out, format))
		return 1;
	slurm_table_options(&t.out, &c->args);
	if (opt_given(&c->args, OPT_JOBS)) {
		if (steps_read(&c->arena, c->args.val[OPT_JOBS], &steps) < 0)
			return cli_say("error: out of memory"), 1;
		none = *c->args.val[OPT_JOBS] && !*steps.jobs;
		c->args.val[OPT_JOBS] = steps.jobs;
	}
	rc = none ? GPUQ_ENOENT : cli_connect(c, &err);
	if (rc == 0)
		rc = fill(c, params, &err);
	if (rc == 0 && !opt_given(&c->args, OPT_JSON) && !(keys = keys_of(c, &t.out)))
		rc = gpuq_no_memory(&err);
	if (rc == 0)
		rc = slurm_each(c, "job.list", params, keys, take, &t, &err);
	if (rc < 0 && rc != GPUQ_ENOENT)
		return slurm_fail(&err);
	if (!sort(t.jobs))
		return cli_say("error: out of memory"), 1;
	if (opt_given(&c->args, OPT_JSON))
		return slurm_json_sacct(c, t.jobs);
	if (!opt_given(&c->args, OPT_NO_HEADER))
		slurm_table_head(&t.out);
	for (size_t i = 0; i < t.jobs->n; i++) {
		struct line l = { t.jobs->items[i], false };

		if (!steps.scripts_only)
			slurm_table_line(&t.out, &l);
		l.batch = true;
		if (!opt_given(&c->args, OPT_S_ALLOCATIONS) && began(l.job))
			slurm_table_line(&t.out, &l);
	}
	return EXIT_DONE;
}
