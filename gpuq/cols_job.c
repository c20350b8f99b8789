#include "gpuq/cols_job.h"

#include <inttypes.h>
#include <stdio.h>

#include "gpuq/lines.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"
#include "libgpuq/units.h"

static void id_text(struct gpuq_buf *out, const struct row *r)
{
	view_job_id(out, r->obj);
}

/* By number, waiting line of an array first, then its elements. */
static double id_rank(const struct row *r)
{
	const double id = (double)gpuq_get_int(r->obj, "id", 0);

	return id + (double)(gpuq_get_int(r->obj, "array_index", -1) + 1) / 8388608.0;
}

static void short_state(struct gpuq_buf *out, const struct row *r)
{
	const int s = view_job_state(r->obj);

	gpuq_buf_adds(out, s < 0 ? "?" : gpuq_job_state_short((enum gpuq_job_state)s));
}

static double state_rank(const struct row *r)
{
	return view_job_state(r->obj);
}

static void clock_text(struct gpuq_buf *out, int64_t us)
{
	char text[48];

	gpuq_duration_clock(us, text, sizeof(text));
	gpuq_buf_adds(out, text);
}

static void elapsed_text(struct gpuq_buf *out, const struct row *r)
{
	clock_text(out, view_job_elapsed_us(r->obj, r->now_us));
}

static double elapsed_rank(const struct row *r)
{
	return (double)view_job_elapsed_us(r->obj, r->now_us);
}

/* From when it could have started to its (last) start, or to its end without one. */
static int64_t wait_us(const struct row *r)
{
	const int64_t from = gpuq_get_int(r->obj, "eligible_time", 0);
	const int64_t end = gpuq_get_int(r->obj, "end_time", r->now_us);
	const int64_t to = gpuq_get_int(r->obj, "start_time", end);

	return from > 0 && to > from ? to - from : 0;
}

static void wait_text(struct gpuq_buf *out, const struct row *r)
{
	clock_text(out, wait_us(r));
}

static double wait_rank(const struct row *r)
{
	return (double)wait_us(r);
}

static double evictions_rank(const struct row *r)
{
	const struct gpuq_val *list = gpuq_get(r->obj, "evictions");

	return list && list->type == GPUQ_LIST ? (double)list->n : 0;
}

static void evictions_text(struct gpuq_buf *out, const struct row *r)
{
	gpuq_buf_printf(out, "%.0f", evictions_rank(r));
}

static int64_t limit_us(const struct row *r)
{
	const int64_t s = gpuq_get_int(r->obj, "time_limit_s", -1);

	return s < 0 || s > GPUQ_UNLIMITED / GPUQ_US_PER_S ? GPUQ_UNLIMITED : s * GPUQ_US_PER_S;
}

static void limit_text(struct gpuq_buf *out, const struct row *r)
{
	clock_text(out, limit_us(r));
}

static double limit_rank(const struct row *r)
{
	return (double)limit_us(r);
}

static void left_text(struct gpuq_buf *out, const struct row *r)
{
	const int64_t limit = limit_us(r), used = view_job_elapsed_us(r->obj, r->now_us);

	clock_text(out, limit == GPUQ_UNLIMITED ? limit : limit > used ? limit - used : 0);
}

static void nodes_text(struct gpuq_buf *out, const struct row *r)
{
	if (view_job_nodes(out, r->obj) == 0)
		gpuq_buf_addc(out, '-');
}

static void node_count_text(struct gpuq_buf *out, const struct row *r)
{
	struct gpuq_buf names = GPUQ_BUF_INIT;

	gpuq_buf_addi(out, (int64_t)view_job_nodes(&names, r->obj));
	gpuq_buf_done(&names);
}

static double node_count_rank(const struct row *r)
{
	struct gpuq_buf names = GPUQ_BUF_INIT;
	const size_t n = view_job_nodes(&names, r->obj);

	gpuq_buf_done(&names);
	return (double)n;
}

static double use_rank(const struct row *r)
{
	return view_number(gpuq_path(r->obj, "use", "percent", NULL), -1);
}

static void use_text(struct gpuq_buf *out, const struct row *r)
{
	const double percent = use_rank(r);

	if (percent < 0)
		gpuq_buf_addc(out, '-');
	else
		gpuq_buf_printf(out, "%.0f", percent);
}

static void place_text(struct gpuq_buf *out, const struct row *r)
{
	view_job_place(out, r->obj);
}

static void labels_text(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *map = gpuq_get(r->obj, "labels");

	for (uint32_t i = 0; map && map->type == GPUQ_MAP && i < map->n; i++)
		gpuq_buf_printf(out, "%s%s=%s", i ? "," : "", map->pairs[i].key,
				gpuq_get_str(map, map->pairs[i].key, ""));
	if (out->len == 0)
		gpuq_buf_addc(out, '-');
}

static void memory_text(struct gpuq_buf *out, const struct row *r)
{
	view_mib(out, gpuq_get(r->obj, "memory_mib"));
}

static double memory_rank(const struct row *r)
{
	return view_number(gpuq_get(r->obj, "memory_mib"), 0);
}

static void stdout_text(struct gpuq_buf *out, const struct row *r)
{
	view_job_file(out, r->obj, "stdout");
}

static void stderr_text(struct gpuq_buf *out, const struct row *r)
{
	view_job_file(out, r->obj, "stderr");
}

#define FILE_KEYS "id array_index element_id array name user pods.node "
#define TIME_COLUMN(key)                                                                           \
	static void key##_text(struct gpuq_buf *out, const struct row *r)                          \
	{                                                                                          \
		view_time(out, gpuq_get(r->obj, #key));                                            \
	}
TIME_COLUMN(submit_time)
TIME_COLUMN(eligible_time)
TIME_COLUMN(start_time)
TIME_COLUMN(end_time)
TIME_COLUMN(planned_time)

/* ---- what it used; - where that is not known ---- */

static double cpu_time_rank(const struct row *r)
{
	return (double)view_used_cpu_ms(r->obj);
}

static void cpu_time_text(struct gpuq_buf *out, const struct row *r)
{
	const int64_t ms = view_used_cpu_ms(r->obj);

	if (ms < 0)
		gpuq_buf_addc(out, '-');
	else
		clock_text(out, ms * 1000);
}

double cols_max_memory_rank(const struct row *r)
{
	return (double)view_used(r->obj, "memory_bytes");
}

void cols_max_memory_text(struct gpuq_buf *out, const struct row *r)
{
	const int64_t bytes = view_used(r->obj, "memory_bytes");

	if (bytes < 0)
		gpuq_buf_addc(out, '-');
	else
		line_bytes(out, bytes);
}

double cols_gpu_busy_rank(const struct row *r)
{
	return view_number(gpuq_get(gpuq_get(r->obj, "used"), "gpu_percent"), -1);
}

void cols_gpu_busy_text(struct gpuq_buf *out, const struct row *r)
{
	if (cols_gpu_busy_rank(r) < 0)
		gpuq_buf_addc(out, '-');
	else
		gpuq_buf_printf(out, "%.0f", cols_gpu_busy_rank(r));
}

static double gpu_memory_rank(const struct row *r)
{
	return (double)view_used(r->obj, "gpu_memory_bytes");
}

static void gpu_memory_text(struct gpuq_buf *out, const struct row *r)
{
	const int64_t bytes = view_used(r->obj, "gpu_memory_bytes");

	if (bytes < 0)
		gpuq_buf_addc(out, '-');
	else
		line_bytes(out, bytes);
}

/* The owner of pods that were not submitted: "Deployment/web". */
static void origin_text(struct gpuq_buf *out, const struct row *r)
{
	const struct gpuq_val *o = gpuq_get(r->obj, "origin");

	if (!line_says(o))
		gpuq_buf_addc(out, '-');
	else
		gpuq_buf_printf(out, "%s/%s", gpuq_get_str(o, "kind", ""),
				gpuq_get_str(o, "name", ""));
}

static void name_text(struct gpuq_buf *out, const struct row *r)
{
	if (line_says(gpuq_get(r->obj, "origin")))
		origin_text(out, r);
	else
		view_cell(out, gpuq_get(r->obj, "name"));
}

/* clang-format off */
static const struct column cols[] = {
	{ "JOBID", 'i', COL_RIGHT | COL_ORDER, "id array_index array", id_text, id_rank, "17, 17_3 or 17_[4-99%10]" },
	{ "QUEUE", 'P', COL_CUT, "queue", NULL, NULL, "queue" },
	{ "NAME", 'j', COL_CUT, "name origin", name_text, NULL, "name; of adopted pods their owner" },
	{ "USER", 'u', COL_CUT, "user", NULL, NULL, "owner" },
	{ "ST", 't', COL_STATE | COL_ORDER, "state", short_state, state_rank, "state, short form" },
	{ "STATE", 'T', COL_STATE | COL_ORDER, "state", NULL, state_rank, "state, long form" },
	{ "TIME", 'M', COL_RIGHT, "start_time end_time", elapsed_text, elapsed_rank, "run time" },
	{ "ELAPSED", 0, COL_RIGHT, "start_time end_time", elapsed_text, elapsed_rank, "same as TIME" },
	{ "WAIT", 0, COL_RIGHT, "eligible_time end_time start_time", wait_text, wait_rank, "pending time before the last start" },
	{ "TIME_LIMIT", 'l', COL_RIGHT | COL_ORDER, "time_limit_s", limit_text, limit_rank, "time limit" },
	{ "TIME_LEFT", 'L', COL_RIGHT, "time_limit_s start_time end_time", left_text, NULL, "remaining time limit" },
	{ "GPUS", 'b', COL_RIGHT, "gpus", NULL, NULL, "devices of all pods" },
	{ "CPUS", 'C', COL_RIGHT, "cpus", NULL, NULL, "cores of all pods" },
	{ "MEMORY", 'm', COL_RIGHT, "memory_mib", memory_text, memory_rank, "memory of all pods" },
	{ "PODS", 0, COL_RIGHT, "pod_count", NULL, NULL, "number of pods" },
	{ "NODES", 'D', COL_RIGHT, "pods.node", node_count_text, node_count_rank, "number of nodes" },
	{ "NODELIST(REASON)", 'R', COL_CUT, "state reason pods.node reasons.object", place_text, NULL, "nodes, or the reason why it is pending" },
	{ "NODELIST", 'N', COL_CUT, "pods.node", nodes_text, NULL, "nodes" },
	{ "REASON", 'r', 0, "reason", NULL, NULL, "reason why it is pending" },
	{ "PRIORITY", 'Q', COL_RIGHT | COL_ORDER, "priority", NULL, NULL, "priority; larger is sooner" },
	{ "ACCOUNT", 'a', COL_CUT, "account", NULL, NULL, "account that is charged" },
	{ "FLAVOR", 'f', COL_CUT, "flavor", NULL, NULL, "flavor" },
	{ "ISOLATION", 0, 0, "isolation", NULL, NULL, "isolation of its devices from other pods" },
	{ "ATTEMPT", 0, COL_RIGHT | COL_ORDER, "attempt", NULL, NULL, "number of restarts" },
	{ "EVICTIONS", 0, COL_RIGHT, "evictions", evictions_text, evictions_rank, "number of times it was preempted" },
	{ "QOS", 'q', COL_CUT, "qos", NULL, NULL, "quality of service" },
	{ "LABELS", 0, COL_CUT, "labels", labels_text, NULL, "labels" },
	{ "MESSAGE", 0, COL_CUT, "message", NULL, NULL, "cause of the end, in words" },
	{ "END_CAUSE", 0, 0, "end_cause", NULL, NULL, "cause of the end: limit, idle, reclaim, ..." },
	{ "USE", 0, COL_RIGHT, "use", use_text, use_rank, "recent utilization of its devices, in percent" },
	{ "EXIT_CODE", 'X', COL_RIGHT, "exit_code", NULL, NULL, "exit code of an ended job" },
	{ "SUBMIT_TIME", 'V', COL_ORDER, "submit_time", submit_time_text, NULL, "submit time" },
	{ "ELIGIBLE_TIME", 'E', COL_ORDER, "eligible_time", eligible_time_text, NULL, "time since which it could start" },
	{ "PLANNED", 0, COL_ORDER, "planned_time", planned_time_text, NULL, "planned start of a pending job" },
	{ "START_TIME", 'S', COL_ORDER, "start_time", start_time_text, NULL, "start time" },
	{ "END_TIME", 'e', 0, "end_time", end_time_text, NULL, "end time" },
	{ "GPU_SECONDS", 0, COL_RIGHT, "gpu_seconds", NULL, NULL, "GPU-seconds used" },
	{ "CPU_TIME", 0, COL_RIGHT, "used", cpu_time_text, cpu_time_rank, "CPU time used, user and system" },
	{ "MAX_MEMORY", 0, COL_RIGHT, "used", cols_max_memory_text, cols_max_memory_rank, "memory high-water of a pod" },
	{ "GPU_BUSY", 0, COL_RIGHT, "used", cols_gpu_busy_text, cols_gpu_busy_rank, "average use of its devices, in percent" },
	{ "GPU_MEMORY", 0, COL_RIGHT, "used", gpu_memory_text, gpu_memory_rank, "memory high-water of the devices of a pod" },
	{ "NICE", 'y', COL_RIGHT, "nice", NULL, NULL, "nice value; larger lowers the priority" },
	{ "DEPENDS", 0, COL_CUT, "depends", NULL, NULL, "dependencies" },
	{ "WORKDIR", 'Z', COL_CUT, "workdir", NULL, NULL, "working directory" },
	{ "STDOUT", 0, COL_CUT, FILE_KEYS "stdout", stdout_text, NULL, "output file" },
	{ "STDERR", 0, COL_CUT, FILE_KEYS "stderr", stderr_text, NULL, "error file" },
	{ "ORIGIN", 0, COL_CUT, "origin", origin_text, NULL, "owner of pods that were not submitted" },
	{ "COMMENT", 'k', COL_CUT, "comment", NULL, NULL, "comment of its owner" },
	{ NULL, 0, 0, NULL, NULL, NULL, NULL },
};
/* clang-format on */

const struct out_def job_list = {
	.cols = cols,
	.keys = "",
	.usual = "JOBID,QUEUE,NAME,USER,ST,TIME,GPUS,NODES,NODELIST(REASON)",
	.spare = "NODES,GPUS,QUEUE",
	.sort = "STATE,-PRIORITY,JOBID",
};

const struct out_def job_history = {
	.cols = cols,
	.keys = "",
	.usual = "JOBID,QUEUE,NAME,USER,STATE,EXIT_CODE,GPUS,WAIT,ELAPSED,GPU_SECONDS,END_TIME",
	.spare = "GPU_SECONDS,WAIT,USER,EXIT_CODE",
	.sort = NULL,
};

const char job_history_long[] =
	"JOBID,QUEUE,NAME,USER,ACCOUNT,STATE,EXIT_CODE,GPUS,PODS,NODES,"
	"ATTEMPT,EVICTIONS,WAIT,ELAPSED,TIME_LIMIT,GPU_SECONDS,CPU_TIME,MAX_MEMORY,"
	"SUBMIT_TIME,START_TIME,END_TIME,NODELIST";

const char job_list_long[] = "JOBID,QUEUE,NAME,USER,STATE,TIME,TIME_LIMIT,GPUS,PODS,NODES,PRIORITY,"
			     "SUBMIT_TIME,NODELIST(REASON)";
