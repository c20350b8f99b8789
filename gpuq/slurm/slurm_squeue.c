/* squeue: one line a job, in Slurm's columns. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gpuq/filter.h"
#include "gpuq/list.h"
#include "gpuq/slurm/slurm_command.h"
#include "gpuq/slurm/slurm_json.h"
#include "gpuq/slurm/slurm_words.h"
#include "gpuq/view.h"
#include "libgpuq/spec.h"
#include "libgpuq/units.h"

static bool each_element; /* -r */

static void id_text(struct gpuq_buf *out, const struct row *r)
{
	view_job_id(out, r->obj);
}

static double id_rank(const struct row *r)
{
	return (double)gpuq_get_int(r->obj, "id", 0) +
	       (double)(gpuq_get_int(r->obj, "array_index", -1) + 1) / 8388608.0;
}

/* The job's own number: an element that has started has one beside its array's. */
static void number_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_printf(out, "%" PRId64, slurm_number(r->obj));
}

static void index_text(struct gpuq_buf *out, const struct row *r)
{
	const int64_t index = gpuq_get_int(r->obj, "array_index", -1);
	const struct gpuq_val *array = gpuq_get(r->obj, "array");
	const char *waiting = gpuq_get_str(array, "waiting", gpuq_get_str(array, "indices", "N/A"));

	if (index >= 0)
		gpuq_buf_printf(out, "%" PRId64, index);
	else
		gpuq_buf_adds(out, waiting);
}

static void letters_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_adds(out, slurm_state(r->obj, true));
}

static void state_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_adds(out, slurm_state(r->obj, false));
}

static double state_rank(const struct row *r)
{
	return view_job_state(r->obj);
}

static double used_us(const struct row *r)
{
	return (double)view_job_elapsed_us(r->obj, r->now_us);
}

static void used_text(struct gpuq_buf *out, const struct row *r)
{
	char text[48];

	gpuq_duration_clock(view_job_elapsed_us(r->obj, r->now_us), text, sizeof(text));
	gpuq_buf_adds(out, text);
}

static void limit_text(struct gpuq_buf *out, const struct row *r)
{
	slurm_limit(out, r->obj);
}

static void left_text(struct gpuq_buf *out, const struct row *r)
{
	const int64_t s = gpuq_get_int(r->obj, "time_limit_s", -1);
	const int64_t used = view_job_elapsed_us(r->obj, r->now_us);
	char text[48];

	gpuq_duration_clock(s < 0 ? GPUQ_UNLIMITED
				  : (s * GPUQ_US_PER_S > used ? s * GPUQ_US_PER_S - used : 0),
			    text, sizeof(text));
	gpuq_buf_adds(out, text);
}

static void nodes_text(struct gpuq_buf *out, const struct row *r)
{
	struct gpuq_buf names = GPUQ_BUF_INIT;
	const size_t n = view_job_nodes(&names, r->obj);

	/* For a pending job, the number of nodes it requests. */
	gpuq_buf_printf(out, "%zu", n ? n : (size_t)gpuq_get_int(r->obj, "pod_count", 1));
	gpuq_buf_done(&names);
}

static void nodelist_text(struct gpuq_buf *out, const struct row *r)
{
	view_job_nodes(out, r->obj);
}

static void place_text(struct gpuq_buf *out, const struct row *r)
{
	/* The reason rather than the place of a job that went wrong. */
	if (slurm_end_reason(r->obj) || view_job_nodes(out, r->obj) == 0)
		gpuq_buf_printf(out, "(%s)", slurm_reason(r->obj));
}

static void reason_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_adds(out, slurm_reason(r->obj));
}

static void gres_text(struct gpuq_buf *out, const struct row *r)
{
	slurm_gres(out, r->obj);
	if (!out->len)
		gpuq_buf_adds(out, "N/A");
}

static void account_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_adds(out, gpuq_get_str(r->obj, "account", "(null)"));
}

static void start_text(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *at = gpuq_get(r->obj, "start_time");

	slurm_time(out, at && at->type == GPUQ_INT ? at : gpuq_get(r->obj, "planned_time"), "N/A");
}

static void planned_text(struct gpuq_buf *out, const struct row *r)
{
	(void)r;
	gpuq_buf_adds(out, "(null)");
}

static void nothing_text(struct gpuq_buf *out, const struct row *r)
{
	(void)out;
	(void)r;
}

static void zero_text(struct gpuq_buf *out, const struct row *r)
{
	(void)r;
	gpuq_buf_addc(out, '0');
}

static void one_text(struct gpuq_buf *out, const struct row *r)
{
	(void)r;
	gpuq_buf_addc(out, '1');
}

static void yes_text(struct gpuq_buf *out, const struct row *r)
{
	(void)r;
	gpuq_buf_adds(out, "OK");
}

static void star_text(struct gpuq_buf *out, const struct row *r)
{
	(void)r;
	gpuq_buf_addc(out, '*');
}

/* The numbers that this machine knows for the user; else the name. */
static void put_account_number(struct gpuq_buf *out, const struct row *r, bool group)
{
	const char *user = gpuq_get_str(r->obj, "user", "");
	const struct passwd *pw = slurm_user(user);

	if (pw)
		gpuq_buf_printf(out, "%u", group ? pw->pw_gid : pw->pw_uid);
	else
		gpuq_buf_adds(out, user);
}

static void uid_text(struct gpuq_buf *out, const struct row *r)
{
	put_account_number(out, r, false);
}

static void gid_text(struct gpuq_buf *out, const struct row *r)
{
	put_account_number(out, r, true);
}

static void sockets_text(struct gpuq_buf *out, const struct row *r)
{
	(void)r;
	gpuq_buf_adds(out, "*:*:*");
}

static void cpus_text(struct gpuq_buf *out, const struct row *r)
{
	slurm_cpus(out, r->obj);
}

static void memory_text(struct gpuq_buf *out, const struct row *r)
{
	slurm_memory(out, r->obj);
}

static void dependency_text(struct gpuq_buf *out, const struct row *r)
{
	slurm_dependency(out, r->obj);
}

static void workdir_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_adds(out, gpuq_get_str(r->obj, "workdir", "(null)"));
}

static void command_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_adds(out, gpuq_get_str(r->obj, "command", "(null)"));
}

static void comment_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_adds(out, gpuq_get_str(r->obj, "comment", "(null)"));
}

/* For a running job, the end by its time limit. */
static void end_text(struct gpuq_buf *out, const struct row *r)
{
	slurm_end_time(out, r->obj, "N/A");
}

static void submit_text(struct gpuq_buf *out, const struct row *r)
{
	slurm_time(out, gpuq_get(r->obj, "submit_time"), "N/A");
}

static void exec_text(struct gpuq_buf *out, const struct row *r)
{
	const char *node = view_pods(r->obj) ? view_pod_node(r->obj, 0) : "";

	gpuq_buf_adds(out, *node ? node : "n/a");
}

static void priority_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_printf(out, "%.10f", (double)gpuq_get_int(r->obj, "priority", 0) / 4294967295.0);
}

static double priority_rank(const struct row *r)
{
	return (double)gpuq_get_int(r->obj, "priority", 0);
}

/* clang-format off */
static const struct column cols[] = {
	{ "JOBID", 'i', 0, "id array_index array", id_text, id_rank, "" },
	{ "JOBID", 'A', 0, "id element_id", number_text, NULL, "" },
	{ "ARRAY_JOB_ID", 'F', 0, "id", NULL, NULL, "" },
	{ "ARRAY_TASK_ID", 'K', 0, "array_index array", index_text, NULL, "" },
	{ "PARTITION", 'P', 0, "queue", NULL, NULL, "" },
	{ "NAME", 'j', 0, "name", NULL, NULL, "" },
	{ "USER", 'u', 0, "user", NULL, NULL, "" },
	{ "ST", 't', 0, "state", letters_text, state_rank, "" },
	{ "STATE", 'T', 0, "state", state_text, state_rank, "" },
	{ "TIME", 'M', 0, "start_time end_time", used_text, used_us, "" },
	{ "TIME_LIMIT", 'l', 0, "time_limit_s", limit_text, NULL, "" },
	{ "TIME_LEFT", 'L', 0, "time_limit_s start_time end_time", left_text, NULL, "" },
	{ "NODES", 'D', 0, "pods.node pod_count", nodes_text, NULL, "" },
	{ "NODELIST(REASON)", 'R', 0, "pods.node reason", place_text, NULL, "" },
	{ "NODELIST", 'N', 0, "pods.node", nodelist_text, NULL, "" },
	{ "REASON", 'r', 0, "reason", reason_text, NULL, "" },
	{ "PRIORITY", 'Q', 0, "priority", NULL, NULL, "" },
	{ "PRIORITY", 'p', 0, "priority", priority_text, priority_rank, "" },
	{ "ACCOUNT", 'a', 0, "account", account_text, NULL, "" },
	{ "QOS", 'q', 0, "qos", NULL, NULL, "" },
	{ "TRES_PER_NODE", 'b', 0, "gpus", gres_text, NULL, "" },
	{ "SUBMIT_TIME", 'V', 0, "submit_time", submit_text, NULL, "" },
	{ "START_TIME", 'S', 0, "start_time planned_time", start_text, NULL, "" },
	{ "END_TIME", 'e', 0, "start_time time_limit_s end_time", end_text, NULL, "" },
	{ "SCHEDNODES", 'Y', 0, "id", planned_text, NULL, "" },
	{ "EXEC_HOST", 'B', 0, "pods.node", exec_text, NULL, "" },
	{ "FEATURES", 'f', 0, "flavor", NULL, NULL, "" },
	{ "RESTARTS", 'X', 0, "attempt", NULL, NULL, "" },
	/* Columns that lists do not provide, as squeue shows them for a job that requested none
	 * of it. */
	{ "CPUS", 'C', 0, "cpus pod_count", cpus_text, NULL, "" },
	{ "COMMAND", 'o', 0, "command", command_text, NULL, "" },
	{ "MIN_CPUS", 'c', 0, "id", one_text, NULL, "" },
	{ "MIN_MEMORY", 'm', 0, "memory_mib pod_count", memory_text, NULL, "" },
	{ "MIN_TMP_DISK", 'd', 0, "id", zero_text, NULL, "" },
	{ "NICE", 'y', 0, "nice", NULL, NULL, "" },
	{ "WORK_DIR", 'Z', 0, "workdir", workdir_text, NULL, "" },
	{ "COMMENT", 'k', 0, "comment", comment_text, NULL, "" },
	{ "DEPENDENCY", 'E', 0, "depends", dependency_text, NULL, "" },
	{ "EXC_NODES", 'x', 0, "id", nothing_text, NULL, "" },
	{ "GROUP", 'g', 0, "user", NULL, NULL, "" },
	{ "LICENSES", 'W', 0, "id", planned_text, NULL, "" },
	{ "OVER_SUBSCRIBE", 'h', 0, "id", yes_text, NULL, "" },
	{ "REQ_NODES", 'n', 0, "id", nothing_text, NULL, "" },
	{ "RESERVATION", 'v', 0, "id", planned_text, NULL, "" },
	{ "S:C:T", 'z', 0, "id", sockets_text, NULL, "" },
	{ "SOCKETS_PER_NODE", 'H', 0, "id", star_text, NULL, "" },
	{ "CORES_PER_SOCKET", 'I', 0, "id", star_text, NULL, "" },
	{ "THREADS_PER_CORE", 'J', 0, "id", star_text, NULL, "" },
	{ "CONTIGUOUS", 'O', 0, "id", zero_text, NULL, "" },
	{ "UID", 'U', 0, "user", uid_text, NULL, "" },
	{ "GROUP", 'G', 0, "user", gid_text, NULL, "" },
	{ "WCKEY", 'w', 0, "id", planned_text, NULL, "" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};

static const struct slurm_field fields[] = {
	{ "JobID", 'A' }, { "JobArrayID", 'i' }, { "ArrayJobID", 'F' }, { "ArrayTaskID", 'K' },
	{ "Partition", 'P' }, { "Name", 'j' }, { "UserName", 'u' }, { "State", 'T' }, { "StateCompact", 't' },
	{ "TimeUsed", 'M' }, { "TimeLimit", 'l' }, { "TimeLeft", 'L' }, { "NumNodes", 'D' }, { "ReasonList", 'R' },
	{ "NodeList", 'N' }, { "Reason", 'r' }, { "PriorityLong", 'Q' }, { "Priority", 'p' }, { "Account", 'a' },
	{ "QOS", 'q' }, { "tres-per-node", 'b' }, { "Gres", 'b' }, { "tres-alloc", 'b' }, { "SubmitTime", 'V' },
	{ "StartTime", 'S' }, { "EndTime", 'e' }, { "SchedNodes", 'Y' }, { "BatchHost", 'B' }, { "Feature", 'f' },
	{ "RestartCnt", 'X' }, { "Comment", 'k' }, { "Dependency", 'E' }, { "ExcNodes", 'x' }, { "GroupName", 'g' },
	{ "Licenses", 'W' }, { "OverSubscribe", 'h' }, { "ReqNodes", 'n' }, { "Reservation", 'v' }, { "WCKey", 'w' },
	{ "UserID", 'U' }, { "GroupID", 'G' }, { "Sockets", 'H' }, { "Cores", 'I' }, { "Threads", 'J' }, { "Contiguous", 'O' }, { "NumCPUs", 'C' }, { "Command", 'o' }, { "MinCpus", 'c' }, { "MinMemory", 'm' }, { "Nice", 'y' }, { "WorkDir", 'Z' }, { "tres-per-job", 'b' }, { NULL, 0 },
};
/* clang-format on */

/* With -r the waiting elements of an array have a line each. */
static int rows_of(struct out *o, const struct gpuq_val *job)
{
	const struct gpuq_val *of = gpuq_get(job, "array");
	const char *waiting = gpuq_get_str(of, "waiting", gpuq_get_str(of, "indices", NULL));
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_array array = { 0 };
	struct gpuq_val *one;
	int rc = 0;

	if (!each_element || !waiting || gpuq_get_int(job, "array_index", -1) >= 0 ||
	    gpuq_array_parse(&a, waiting, &array, NULL) < 0) {
		gpuq_arena_done(&a);
		return out_row(o, job, NULL);
	}
	one = gpuq_val_copy(&a, job);
	for (size_t i = 0; rc == 0 && i < array.n_ranges; i++)
		for (int64_t k = array.ranges[i].first; rc == 0 && k <= array.ranges[i].last;
		     k += array.ranges[i].step) {
			gpuq_set(&a, one, "array_index", gpuq_int(&a, k));
			rc = out_row(o, one, NULL);
		}
	gpuq_arena_done(&a);
	return rc;
}

static int rows(struct out *o, const struct gpuq_val *job)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const struct gpuq_val *rest = slurm_rest(&a, job);
	const int rc = rows_of(o, rest ? rest : job);

	gpuq_arena_done(&a);
	return rc;
}

static const struct out_def jobs = {
	.cols = cols,
	.keys = "id array_index array account qos state end_time", /* of rows and keep */
	.usual = "JOBID",
	.sort = "P,t,-Q",
	.rows = rows,
};

/* Slurm's MinJobAge: what ended longer ago is sacct's, unless it is named. */
#define MIN_JOB_AGE_US (300 * GPUQ_US_PER_S)

static bool is_old(const struct cli *c, const struct gpuq_val *job)
{
	return view_job_ended(job) && !opt_given(&c->args, OPT_JOBS) &&
	       gpuq_get_int(job, "end_time", INT64_MAX) < cli_now_us() - MIN_JOB_AGE_US;
}

static bool keep(const struct cli *c, const struct gpuq_val *job)
{
	return !is_old(c, job) && slurm_keep(c, job) && !slurm_is_spent_array(job) &&
	       (opt_given(&c->args, OPT_STATES) || !view_job_ended(job)) &&
	       (!opt_given(&c->args, OPT_START) || strcmp(slurm_state(job, true), "PD") == 0);
}

static int fill(struct cli *c, struct gpuq_val *params, struct gpuq_err *err)
{
	int rc = filter_put_jobs(c, params, err);

	if (rc == 0)
		rc = filter_check_ids(c, params, err);
	if (rc == GPUQ_ENOENT) /* programs look for these words */
		gpuq_err_prefix(err, "slurm_load_jobs error: Invalid job id specified");
	return rc;
}

struct picked {
	struct cli *c;
	struct gpuq_val *jobs;
};

static void pick(void *arg, const struct gpuq_val *job)
{
	struct picked *p = arg;
	struct gpuq_val *rest = slurm_rest(&p->c->arena, job);

	if (keep(p->c, job))
		gpuq_add(&p->c->arena, p->jobs, rest ? rest : gpuq_val_copy(&p->c->arena, job));
}

static int print_json(struct cli *c)
{
	struct gpuq_val *params = gpuq_map(&c->arena);
	struct picked p = { c, gpuq_list(&c->arena) };
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = cli_connect(c, &err);

	if (rc == 0)
		rc = fill(c, params, &err);
	if (rc == 0)
		rc = slurm_each(c, "job.list", params, NULL, pick, &p, &err);
	return rc < 0 ? slurm_fail(&err) : slurm_json_squeue(c, p.jobs);
}

int slurm_squeue(struct cli *c)
{
	const char **format = &c->args.val[OPT_FORMAT];
	int code;

	if (opt_given(&c->args, OPT_JSON))
		return print_json(c);
	if (*format && strcasecmp(*format, "%all") == 0)
		*format = slurm_all(c, cols);
	each_element = opt_given(&c->args, OPT_ARRAY);
	if (opt_given(&c->args, OPT_S_FORMAT))
		*format = slurm_format(c, fields, c->args.val[OPT_S_FORMAT]);
	else if (!*format && opt_given(&c->args, OPT_LONG))
		*format = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
	else if (!*format && opt_given(&c->args, OPT_START))
		*format = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";
	else if (!*format)
		*format = getenv("SQUEUE_FORMAT") ? getenv("SQUEUE_FORMAT")
						  : "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
	if (!*format)
		return 1;
	if (opt_given(&c->args, OPT_LONG) && !opt_given(&c->args, OPT_NO_HEADER))
		slurm_date();
	code = list_run(c, "job.list", &jobs, NULL, fill, keep);
	return code == EXIT_DONE || code == EXIT_SERVER ? code : 1;
}
