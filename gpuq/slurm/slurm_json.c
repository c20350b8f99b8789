#include "config.h"

#include "gpuq/slurm/slurm_json.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/slurm/slurm_words.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"
#include "libgpuq/schema.h"
#include "libgpuq/units.h"

#define PARSER "data_parser/v0.0.42"
#define NO_ID INT64_C(4294967294)

/* ---- values ---- */

struct maker {
	struct gpuq_arena *a;
	struct gpuq_val *v; /* the object being filled */
};

static void put_int(const struct maker *m, const char *key, int64_t i)
{
	gpuq_put(m->a, m->v, key, gpuq_int(m->a, i));
}

static void put_bool(const struct maker *m, const char *key, bool b)
{
	gpuq_put(m->a, m->v, key, gpuq_bool(m->a, b));
}

static void put_str(const struct maker *m, const char *key, const char *s)
{
	gpuq_put(m->a, m->v, key, gpuq_str(m->a, s ? s : ""));
}

/* Take what was written, as text. */
static void put_buf(const struct maker *m, const char *key, struct gpuq_buf *b)
{
	put_str(m, key, gpuq_arena_strdup(m->a, gpuq_buf_str(b)));
	gpuq_buf_clear(b);
}

static struct gpuq_val *number(struct gpuq_arena *a, bool set, bool infinite, int64_t i)
{
	struct gpuq_val *v = gpuq_map(a);

	gpuq_put(a, v, "set", gpuq_bool(a, set));
	gpuq_put(a, v, "infinite", gpuq_bool(a, infinite));
	gpuq_put(a, v, "number", gpuq_int(a, set ? i : 0));
	return v;
}

static void put_number(const struct maker *m, const char *key, bool set, int64_t i)
{
	gpuq_put(m->a, m->v, key, number(m->a, set, false, i));
}

/* A limit in minutes; without one it is infinite. */
static void put_limit(const struct maker *m, const char *key, const struct gpuq_val *job)
{
	const int64_t s = gpuq_get_int(job, "time_limit_s", -1);

	gpuq_put(m->a, m->v, key, number(m->a, s >= 0, s < 0, (s + 59) / 60));
}

static int64_t seconds(const struct gpuq_val *job, const char *key)
{
	return gpuq_get_int(job, key, 0) / GPUQ_US_PER_S;
}

static void put_seconds(const struct maker *m, const char *key, const struct gpuq_val *job,
			const char *of)
{
	put_number(m, key, true, seconds(job, of));
}

static struct gpuq_val *words(struct gpuq_arena *a, const char *word)
{
	struct gpuq_val *list = gpuq_list(a);

	if (word && *word)
		gpuq_add(a, list, gpuq_str(a, word));
	return list;
}

static void put_words(const struct maker *m, const char *key, const char *word)
{
	gpuq_put(m->a, m->v, key, words(m->a, word));
}

/* The exit code as Slurm breaks it up. */
static void put_exit(const struct maker *m, const char *key, const struct gpuq_val *job)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct gpuq_val *sig = gpuq_map(m->a);
	const struct maker in = { m->a, gpuq_map(m->a) };
	int code = 0, signo = 0;

	slurm_exit(&text, job);
	sscanf(gpuq_buf_str(&text), "%d:%d", &code, &signo);
	gpuq_buf_done(&text);
	put_words(&in, "status",
		  !view_job_ended(job) ? "PENDING"
		  : signo              ? "SIGNALED"
		  : code               ? "ERROR"
				       : "SUCCESS");
	put_number(&in, "return_code", view_job_ended(job), code);
	gpuq_put(m->a, sig, "id", number(m->a, signo != 0, false, signo));
	gpuq_put(m->a, sig, "name",
		 gpuq_str(m->a, signo && gpuq_signal_name(signo) ? gpuq_signal_name(signo) : ""));
	gpuq_put(m->a, in.v, "signal", sig);
	gpuq_put(m->a, m->v, key, in.v);
}

static int64_t cpus_of(const struct gpuq_val *job)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	int64_t n = 0;

	slurm_cpus(&text, job);
	sscanf(gpuq_buf_str(&text), "%" SCNd64, &n);
	gpuq_buf_done(&text);
	return n;
}

static int64_t per_pod_mib(const struct gpuq_val *job)
{
	const int64_t pods = gpuq_get_int(job, "pod_count", 1);

	return gpuq_get_int(job, "memory_mib", 0) / (pods > 0 ? pods : 1);
}

static bool is_of_array(const struct gpuq_val *job)
{
	const struct gpuq_val *array = gpuq_get(job, "array");

	return array && array->type == GPUQ_MAP;
}

/* ---- the whole ---- */

static int print(struct cli *c, struct gpuq_val *v, const char *command)
{
	struct gpuq_arena *a = &c->arena;
	struct gpuq_val *meta = gpuq_map(a), *plugin = gpuq_map(a), *slurm = gpuq_map(a);
	struct gpuq_val *version = gpuq_map(a);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	int code = EXIT_DONE;

	gpuq_put(a, plugin, "type", gpuq_str(a, ""));
	gpuq_put(a, plugin, "name", gpuq_str(a, ""));
	gpuq_put(a, plugin, "data_parser", gpuq_str(a, PARSER));
	gpuq_put(a, meta, "plugin", plugin);
	gpuq_put(a, meta, "command", words(a, command));
	gpuq_put(a, version, "major", gpuq_str(a, "24"));
	gpuq_put(a, version, "minor", gpuq_str(a, "11"));
	gpuq_put(a, version, "micro", gpuq_str(a, "0"));
	gpuq_put(a, slurm, "version", version);
	gpuq_put(a, slurm, "release", gpuq_str(a, "24.11.0"));
	gpuq_put(a, slurm, "cluster", gpuq_str(a, "gpuq"));
	gpuq_put(a, meta, "slurm", slurm);
	gpuq_put(a, v, "meta", meta);
	gpuq_put(a, v, "errors", gpuq_list(a));
	gpuq_put(a, v, "warnings", gpuq_list(a));
	gpuq_json_write(&b, v, 2);
	if (b.failed || !gpuq_val_ok(v)) {
		cli_say("error: out of memory");
		code = 1;
	} else {
		puts(gpuq_buf_str(&b));
	}
	gpuq_buf_done(&b);
	return code;
}

/* ---- squeue ---- */

static void put_file(const struct maker *m, const char *key, const struct gpuq_val *job,
		     const char *of)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;

	if (!gpuq_get_str(job, of, NULL) && strcmp(of, "stdin") != 0)
		of = "stdout";
	if (gpuq_get_str(job, of, NULL))
		view_job_file(&text, job, of);
	put_buf(m, key, &text);
	gpuq_buf_done(&text);
}

static void put_array(const struct maker *m, const struct gpuq_val *job)
{
	const int64_t index = gpuq_get_int(job, "array_index", -1);
	const struct gpuq_val *array = gpuq_get(job, "array");
	const bool is_whole = is_of_array(job) && index < 0;

	put_number(m, "array_job_id", true, is_of_array(job) ? gpuq_get_int(job, "id", 0) : 0);
	put_number(m, "array_task_id", index >= 0, index);
	put_number(m, "array_max_tasks", true, gpuq_get_int(array, "throttle", 0));
	put_str(m, "array_task_string",
		is_whole ? gpuq_get_str(array, "waiting", gpuq_get_str(array, "indices", "")) : "");
}

static void put_amounts(const struct maker *m, const struct gpuq_val *job)
{
	struct gpuq_buf text = GPUQ_BUF_INIT;
	const int64_t mib = per_pod_mib(job), pods = gpuq_get_int(job, "pod_count", 1);

	put_number(m, "cpus", true, cpus_of(job));
	put_number(m, "node_count", true, pods);
	put_number(m, "tasks", true, pods);
	put_number(m, "memory_per_cpu", false, 0);
	put_number(m, "memory_per_node", mib > 0, mib);
	put_number(m, "minimum_cpus_per_node", true, pods > 0 ? cpus_of(job) / pods : 1);
	slurm_tres(&text, job);
	put_buf(m, "tres_req_str", &text);
	if (view_job_started(job))
		slurm_tres(&text, job);
	put_buf(m, "tres_alloc_str", &text);
	slurm_gres(&text, job);
	put_buf(m, "tres_per_job", &text);
	gpuq_buf_done(&text);
}

/* The numbers of the user where this machine has them; else those that Slurm has for an unknown one. */
static void put_ids(const struct maker *m, const char *user)
{
	const struct passwd *pw = slurm_user(user);

	put_int(m, "user_id", pw ? pw->pw_uid : NO_ID);
	put_int(m, "group_id", pw ? pw->pw_gid : NO_ID);
}

/* Members that gpuq has nothing for, as Slurm prints them where it has nothing: by the kind of their values. */
static void put_unused(const struct maker *m)
{
	static const char *const texts[] = { "admin_comment",
					     "allocating_node",
					     "batch_features",
					     "burst_buffer",
					     "burst_buffer_state",
					     "cluster_features",
					     "container",
					     "container_id",
					     "cron",
					     "excluded_nodes",
					     "extra",
					     "failed_node",
					     "licenses",
					     "licenses_allocated",
					     "mail_user",
					     "mcs_label",
					     "memory_per_tres",
					     "network",
					     "required_nodes",
					     "resv_name",
					     "scheduled_nodes",
					     "selinux_context",
					     "system_comment",
					     "tres_bind",
					     "tres_freq",
					     "tres_per_node",
					     "tres_per_socket",
					     "tres_per_task",
					     "wckey" };
	static const char *const counts[] = { "association_id",    "het_job_offset",
					      "required_switches", "core_spec",
					      "thread_spec",       "maximum_switch_wait_time" };
	static const char *const numbers[] = {
		"accrue_time",           "cores_per_socket", "deadline",        "delay_boot",
		"last_sched_evaluation", "max_cpus",         "max_nodes",       "pre_sus_time",
		"preempt_time",          "preemptable_time", "resize_time",     "sockets_per_node",
		"suspend_time",          "tasks_per_board",  "tasks_per_core",  "tasks_per_node",
		"tasks_per_socket",      "tasks_per_tres",   "threads_per_core"
	};
	static const char *const lists[] = { "flags", "gres_detail", "mail_type",
					     "power", "profile",     "shared" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		put_str(m, texts[i], "");
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		put_int(m, counts[i], 0);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		put_number(m, numbers[i], false, 0);
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		put_words(m, lists[i], NULL);
	put_bool(m, "contiguous", false);
	put_bool(m, "reboot", false);
	gpuq_put(m->a, m->v, "job_resources", gpuq_null(m->a));
}

static struct gpuq_val *queue_job(struct gpuq_arena *a, const struct gpuq_val *job)
{
	const struct maker m = { a, gpuq_map(a) };
	const struct gpuq_val *end = gpuq_get(job, "end_time");
	const int64_t start_s = seconds(job, "start_time");
	const int64_t limit_s = gpuq_get_int(job, "time_limit_s", -1);
	struct gpuq_buf text = GPUQ_BUF_INIT;

	put_str(&m, "account", gpuq_get_str(job, "account", ""));
	put_array(&m, job);
	put_str(&m, "batch_host", view_pods(job) ? view_pod_node(job, 0) : "");
	put_bool(&m, "batch_flag", gpuq_get_bool(job, "batch", true));
	put_str(&m, "cluster", "gpuq");
	put_str(&m, "command", gpuq_get_str(job, "command", ""));
	put_str(&m, "comment", gpuq_get_str(job, "comment", ""));
	put_str(&m, "current_working_directory", gpuq_get_str(job, "workdir", ""));
	if (gpuq_get(job, "depends") && gpuq_get(job, "depends")->n)
		slurm_dependency(&text, job);
	put_buf(&m, "dependency", &text);
	put_exit(&m, "derived_exit_code", job);
	put_exit(&m, "exit_code", job);
	put_seconds(&m, "submit_time", job, "submit_time");
	put_seconds(&m, "eligible_time", job, "eligible_time");
	put_number(&m, "start_time", true, start_s ? start_s : seconds(job, "planned_time"));
	/* A running job ends by its time limit. */
	put_number(&m, "end_time", true,
		   end && end->type == GPUQ_INT ? seconds(job, "end_time")
		   : start_s && limit_s >= 0    ? start_s + limit_s
						: 0);
	put_str(&m, "features", gpuq_get_str(job, "flavor", ""));
	put_int(&m, "job_id", slurm_number(job));
	put_words(&m, "job_state", slurm_state(job, false));
	put_str(&m, "name", gpuq_get_str(job, "name", ""));
	put_int(&m, "nice", gpuq_get_int(job, "nice", 0));
	view_job_nodes(&text, job);
	put_buf(&m, "nodes", &text);
	put_str(&m, "partition", gpuq_get_str(job, "queue", ""));
	put_number(&m, "priority", true, gpuq_get_int(job, "priority", 0));
	put_str(&m, "qos", gpuq_get_str(job, "qos", ""));
	put_bool(&m, "requeue", true);
	put_int(&m, "restart_cnt", gpuq_get_int(job, "attempt", 0));
	put_bool(&m, "hold", strncmp(gpuq_get_str(job, "reason", ""), "Held", 4) == 0);
	put_str(&m, "state_description", "");
	put_str(&m, "state_reason", slurm_reason(job));
	put_file(&m, "standard_input", job, "stdin");
	put_file(&m, "standard_output", job, "stdout");
	put_file(&m, "standard_error", job, "stderr");
	put_limit(&m, "time_limit", job);
	put_str(&m, "user_name", gpuq_get_str(job, "user", ""));
	put_str(&m, "group_name", gpuq_get_str(job, "user", ""));
	put_ids(&m, gpuq_get_str(job, "user", ""));
	put_number(&m, "cpus_per_task", true, cpus_of(job) / gpuq_get_int(job, "pod_count", 1));
	put_unused(&m);
	put_amounts(&m, job);
	gpuq_buf_done(&text);
	return m.v;
}

int slurm_json_squeue(struct cli *c, const struct gpuq_val *jobs)
{
	struct gpuq_val *v = gpuq_map(&c->arena), *list = gpuq_list(&c->arena);

	for (uint32_t i = 0; i < jobs->n; i++)
		gpuq_add(&c->arena, list, queue_job(&c->arena, jobs->items[i]));
	gpuq_put(&c->arena, v, "jobs", list);
	gpuq_put(&c->arena, v, "last_update",
		 number(&c->arena, true, false, cli_now_us() / GPUQ_US_PER_S));
	return print(c, v, "squeue");
}

/* ---- sacct ---- */

static void add_tres(struct gpuq_arena *a, struct gpuq_val *list, const char *type,
		     const char *name, int id, double count)
{
	const struct maker m = { a, gpuq_map(a) };

	if (count <= 0)
		return;
	put_str(&m, "type", type);
	put_str(&m, "name", name);
	put_int(&m, "id", id);
	put_int(&m, "count", (int64_t)(count + 0.999));
	gpuq_add(a, list, m.v);
}

/* Slurm's own numbers of what it counts. */
enum { TRES_CPU = 1, TRES_MEM = 2, TRES_NODE = 4, TRES_DISK = 6, TRES_GPU = 1001 };

static struct gpuq_val *tres_of(struct gpuq_arena *a, const struct gpuq_val *job)
{
	struct gpuq_val *list = gpuq_list(a);

	add_tres(a, list, "cpu", "", TRES_CPU, (double)cpus_of(job));
	add_tres(a, list, "mem", "", TRES_MEM, (double)gpuq_get_int(job, "memory_mib", 0));
	add_tres(a, list, "node", "", TRES_NODE, (double)gpuq_get_int(job, "pod_count", 1));
	add_tres(a, list, "gres", "gpu", TRES_GPU, view_number(gpuq_get(job, "gpus"), 0));
	return list;
}

/* Processor time in seconds and microseconds; 0 where it is not known, as Slurm has it. */
static void put_cpu(const struct maker *m, const char *key, int64_t ms)
{
	const struct maker in = { m->a, gpuq_map(m->a) };

	put_int(&in, "seconds", ms < 0 ? 0 : ms / 1000);
	put_int(&in, "microseconds", ms < 0 ? 0 : ms % 1000 * 1000);
	gpuq_put(m->a, m->v, key, in.v);
}

static void put_used(const struct maker *m, const struct gpuq_val *job)
{
	put_cpu(m, "system", view_used(job, "system_ms"));
	put_cpu(m, "total", view_used_cpu_ms(job));
	put_cpu(m, "user", view_used(job, "user_ms"));
}

static struct gpuq_val *times_of(struct gpuq_arena *a, const struct gpuq_val *job)
{
	const struct maker m = { a, gpuq_map(a) };
	const int64_t wait = seconds(job, "start_time") - seconds(job, "eligible_time");

	put_used(&m, job);
	put_number(&m, "planned", view_job_started(job) && wait >= 0, wait);
	put_int(&m, "elapsed", view_job_elapsed_us(job, cli_now_us()) / GPUQ_US_PER_S);
	put_int(&m, "eligible", seconds(job, "eligible_time"));
	put_int(&m, "end", seconds(job, "end_time"));
	put_int(&m, "start", seconds(job, "start_time"));
	put_int(&m, "submission", seconds(job, "submit_time"));
	put_int(&m, "suspended", 0);
	put_limit(&m, "limit", job);
	return m.v;
}

static struct gpuq_val *state_of(struct gpuq_arena *a, const struct gpuq_val *job)
{
	const struct maker m = { a, gpuq_map(a) };

	put_words(&m, "current", slurm_state(job, false));
	put_str(&m, "reason", slurm_reason(job));
	return m.v;
}

static struct gpuq_val *association_of(struct gpuq_arena *a, const struct gpuq_val *job)
{
	const struct maker m = { a, gpuq_map(a) };

	put_str(&m, "account", gpuq_get_str(job, "account", ""));
	put_str(&m, "cluster", "gpuq");
	put_str(&m, "partition", gpuq_get_str(job, "queue", ""));
	put_str(&m, "user", gpuq_get_str(job, "user", ""));
	return m.v;
}

static struct gpuq_val *array_of(struct gpuq_arena *a, const struct gpuq_val *job)
{
	const int64_t index = gpuq_get_int(job, "array_index", -1);
	const struct maker m = { a, gpuq_map(a) };

	put_int(&m, "job_id", is_of_array(job) ? gpuq_get_int(job, "id", 0) : 0);
	put_number(&m, "task_id", index >= 0, index);
	put_str(&m, "task", index < 0 ? gpuq_get_str(gpuq_get(job, "array"), "waiting", "") : "");
	return m.v;
}

/* An amount of a step: the one that used most, and all of them. */
static struct gpuq_val *used_tres(struct gpuq_arena *a, const struct gpuq_val *job, bool out)
{
	struct gpuq_val *list = gpuq_list(a);
	const int64_t cpu = view_used_cpu_ms(job);

	if (out) {
		add_tres(a, list, "fs", "disk", TRES_DISK, (double)view_used(job, "written_bytes"));
		return list;
	}
	add_tres(a, list, "cpu", "", TRES_CPU, cpu < 0 ? 0 : (double)cpu); /* in ms */
	add_tres(a, list, "mem", "", TRES_MEM, (double)view_used(job, "memory_bytes"));
	add_tres(a, list, "fs", "disk", TRES_DISK, (double)view_used(job, "read_bytes"));
	return list;
}

static struct gpuq_val *tres_range(struct gpuq_arena *a, const struct gpuq_val *job, bool out)
{
	static const char *const keys[] = { "max", "min", "average", "total" };
	struct gpuq_val *v = gpuq_map(a);

	/* Pods are not told apart. */
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		gpuq_put(a, v, keys[i], used_tres(a, job, out));
	return v;
}

/* The step of the script, which has what the job used. */
static struct gpuq_val *batch_step(struct gpuq_arena *a, const struct gpuq_val *job)
{
	const struct maker m = { a, gpuq_map(a) }, step = { a, gpuq_map(a) };
	const struct maker time = { a, gpuq_map(a) }, nodes = { a, gpuq_map(a) };
	const struct maker tasks = { a, gpuq_map(a) }, tres = { a, gpuq_map(a) };
	struct gpuq_buf text = GPUQ_BUF_INIT;

	gpuq_buf_printf(&text, "%" PRId64 ".batch", slurm_number(job));
	put_buf(&step, "id", &text);
	put_str(&step, "name", "batch");
	gpuq_put(a, m.v, "step", step.v);
	put_int(&time, "elapsed", view_job_elapsed_us(job, cli_now_us()) / GPUQ_US_PER_S);
	put_seconds(&time, "start", job, "start_time");
	put_number(&time, "end", view_job_ended(job), seconds(job, "end_time"));
	put_int(&time, "suspended", 0);
	put_used(&time, job);
	gpuq_put(a, m.v, "time", time.v);
	put_exit(&m, "exit_code", job);
	put_words(&m, "state", slurm_state(job, false));
	put_str(&m, "kill_request_user", gpuq_get_str(job, "cancelled_by", ""));
	put_int(&nodes, "count", gpuq_get_int(job, "pod_count", 1));
	view_job_nodes(&text, job);
	put_buf(&nodes, "range", &text);
	gpuq_put(a, m.v, "nodes", nodes.v);
	put_int(&tasks, "count", gpuq_get_int(job, "pod_count", 1));
	gpuq_put(a, m.v, "tasks", tasks.v);
	gpuq_put(a, tres.v, "requested", tres_range(a, job, false));
	gpuq_put(a, tres.v, "consumed", tres_range(a, job, true));
	gpuq_put(a, tres.v, "allocated", tres_of(a, job));
	gpuq_put(a, m.v, "tres", tres.v);
	gpuq_buf_done(&text);
	return m.v;
}

/* Members that gpuq has nothing for, as Slurm prints them where it has nothing. */
static void put_blank(const struct maker *m, const char *const *names)
{
	for (; *names; names++)
		put_str(m, *names, "");
}

static struct gpuq_val *past_job(struct gpuq_arena *a, const struct gpuq_val *job)
{
	static const char *const blank[] = { "block",     "constraints", "container",
					     "extra",     "failed_node", "licenses",
					     "script",    "submit_line", "system_comment",
					     "used_gres", NULL };
	struct gpuq_val *steps = gpuq_list(a);
	const struct maker m = { a, gpuq_map(a) }, tres = { a, gpuq_map(a) };
	const struct maker comment = { a, gpuq_map(a) }, need = { a, gpuq_map(a) };
	struct gpuq_buf text = GPUQ_BUF_INIT;

	put_str(&m, "account", gpuq_get_str(job, "account", ""));
	put_str(&comment, "administrator", "");
	put_str(&comment, "job", gpuq_get_str(job, "comment", ""));
	put_str(&comment, "system", "");
	gpuq_put(a, m.v, "comment", comment.v);
	put_int(&m, "allocation_nodes", gpuq_get_int(job, "pod_count", 1));
	gpuq_put(a, m.v, "array", array_of(a, job));
	gpuq_put(a, m.v, "association", association_of(a, job));
	put_str(&m, "cluster", "gpuq");
	put_exit(&m, "derived_exit_code", job);
	put_exit(&m, "exit_code", job);
	gpuq_put(a, m.v, "time", times_of(a, job));
	put_words(&m, "flags", NULL);
	put_str(&m, "group", gpuq_get_str(job, "user", ""));
	put_int(&m, "job_id", slurm_number(job));
	put_str(&m, "kill_request_user", gpuq_get_str(job, "cancelled_by", ""));
	put_str(&m, "name", gpuq_get_str(job, "name", ""));
	if (view_job_nodes(&text, job) == 0)
		gpuq_buf_adds(&text, "None assigned");
	put_buf(&m, "nodes", &text);
	put_str(&m, "partition", gpuq_get_str(job, "queue", ""));
	put_number(&m, "priority", true, gpuq_get_int(job, "priority", 0));
	put_str(&m, "qos", gpuq_get_str(job, "qos", ""));
	put_int(&m, "restart_cnt", gpuq_get_int(job, "attempt", 0));
	put_int(&need, "CPUs", cpus_of(job));
	put_number(&need, "memory_per_cpu", false, 0);
	put_number(&need, "memory_per_node", per_pod_mib(job) > 0, per_pod_mib(job));
	gpuq_put(a, m.v, "required", need.v);
	gpuq_put(a, m.v, "state", state_of(a, job));
	if (view_job_started(job) && gpuq_get_bool(job, "batch", true))
		gpuq_add(a, steps, batch_step(a, job));
	gpuq_put(a, m.v, "steps", steps);
	put_blank(&m, blank);
	put_str(&m, "qosreq", gpuq_get_str(job, "qos", ""));
	put_bool(&m, "hold", strncmp(gpuq_get_str(job, "reason", ""), "Held", 4) == 0);
	put_file(&m, "stdin_expanded", job, "stdin");
	put_file(&m, "stdout_expanded", job, "stdout");
	put_file(&m, "stderr_expanded", job, "stderr");
	gpuq_put(a, tres.v, "allocated", view_job_started(job) ? tres_of(a, job) : gpuq_list(a));
	gpuq_put(a, tres.v, "requested", tres_of(a, job));
	gpuq_put(a, m.v, "tres", tres.v);
	put_str(&m, "user", gpuq_get_str(job, "user", ""));
	put_str(&m, "working_directory", gpuq_get_str(job, "workdir", ""));
	gpuq_buf_done(&text);
	return m.v;
}

int slurm_json_sacct(struct cli *c, const struct gpuq_val *jobs)
{
	struct gpuq_val *v = gpuq_map(&c->arena), *list = gpuq_list(&c->arena);

	for (uint32_t i = 0; i < jobs->n; i++)
		gpuq_add(&c->arena, list, past_job(&c->arena, jobs->items[i]));
	gpuq_put(&c->arena, v, "jobs", list);
	return print(c, v, "sacct");
}

/* ---- sinfo ---- */

/* Return counts of allocated, idle and other ones, and their sum. */
static struct gpuq_val *four(struct gpuq_arena *a, int64_t taken, int64_t idle, int64_t other)
{
	const struct maker m = { a, gpuq_map(a) };

	put_int(&m, "allocated", taken);
	put_int(&m, "idle", idle);
	put_int(&m, "other", other);
	put_int(&m, "total", taken + idle + other);
	return m.v;
}

static struct gpuq_val *range(struct gpuq_arena *a, int64_t least, int64_t most)
{
	const struct maker m = { a, gpuq_map(a) };

	put_int(&m, "minimum", least);
	put_int(&m, "maximum", most);
	return m.v;
}

struct sums {
	int64_t cpus, free_cpus, least_mib, most_mib, least_free_mib, most_free_mib, taken_mib;
	int64_t gpus, least_cpus, most_cpus;
	double free_gpus;
};

static void add_node(struct sums *s, const struct gpuq_val *n, bool first)
{
	const int64_t mib = gpuq_get_int(n, "memory_mib", 0);
	const int64_t free_mib = gpuq_get_int(n, "free_memory_mib", 0);
	const int64_t cpus = gpuq_get_int(n, "cpu_milli", 0) / 1000;

	s->cpus += cpus;
	s->free_cpus += gpuq_get_int(n, "free_cpu_milli", 0) / 1000;
	s->taken_mib += mib - free_mib;
	s->gpus += gpuq_get_int(n, "gpus", 0);
	s->free_gpus += view_number(gpuq_get(n, "free_gpus"), 0);
	s->least_mib = first || mib < s->least_mib ? mib : s->least_mib;
	s->most_mib = first || mib > s->most_mib ? mib : s->most_mib;
	s->least_free_mib = first || free_mib < s->least_free_mib ? free_mib : s->least_free_mib;
	s->most_free_mib = first || free_mib > s->most_free_mib ? free_mib : s->most_free_mib;
	s->least_cpus = first || cpus < s->least_cpus ? cpus : s->least_cpus;
	s->most_cpus = first || cpus > s->most_cpus ? cpus : s->most_cpus;
}

static struct gpuq_val *partition_of(struct gpuq_arena *a, const struct gpuq_val *queue)
{
	const struct maker m = { a, gpuq_map(a) }, state = { a, gpuq_map(a) };
	const struct maker most = { a, gpuq_map(a) }, usual = { a, gpuq_map(a) };
	const char *word = gpuq_get_str(queue, "state", "open");
	const int64_t max_s = gpuq_get_int(queue, "max_time_s", -1);
	const int64_t default_s = gpuq_get_int(queue, "default_time_s", -1);

	put_str(&m, "name", gpuq_get_str(queue, "name", ""));
	put_str(&m, "cluster", "gpuq");
	put_words(&state, "state",
		  strcmp(word, "stopped") == 0  ? "DOWN"
		  : strcmp(word, "closed") == 0 ? "DRAIN"
		  : strchr(word, ',')           ? "INACTIVE"
						: "UP");
	gpuq_put(a, m.v, "partition", state.v);
	gpuq_put(a, most.v, "time", number(a, max_s >= 0, max_s < 0, max_s / 60));
	gpuq_put(a, m.v, "maximums", most.v);
	gpuq_put(a, usual.v, "time", number(a, default_s >= 0, default_s < 0, default_s / 60));
	gpuq_put(a, m.v, "defaults", usual.v);
	return m.v;
}

static struct gpuq_val *nodes_of(struct gpuq_arena *a, const struct gpuq_val *nodes,
				 const char *state, bool flag)
{
	const int64_t n = (int64_t)nodes->n;
	const bool idle = strcmp(state, "IDLE") == 0 && !flag;
	const bool taken =
		(strcmp(state, "ALLOCATED") == 0 || strcmp(state, "MIXED") == 0) && !flag;
	struct gpuq_val *v = four(a, taken ? n : 0, idle ? n : 0, taken || idle ? 0 : n);
	struct gpuq_val *names = gpuq_list(a);

	for (uint32_t i = 0; i < nodes->n; i++)
		gpuq_add(a, names, gpuq_str(a, gpuq_get_str(nodes->items[i], "name", "")));
	gpuq_put(a, v, "hostnames", names);
	gpuq_put(a, v, "addresses", names);
	gpuq_put(a, v, "nodes", names);
	return v;
}

void slurm_json_add_nodes(struct cli *c, struct gpuq_val *list, const struct slurm_json_nodes *n)
{
	struct gpuq_arena *a = &c->arena;
	const struct maker m = { a, gpuq_map(a) }, node = { a, gpuq_map(a) };
	const struct maker memory = { a, gpuq_map(a) }, gres = { a, gpuq_map(a) };
	const struct maker features = { a, gpuq_map(a) }, reason = { a, gpuq_map(a) };
	const struct gpuq_val *first = n->nodes->n ? n->nodes->items[0] : NULL;
	struct gpuq_val *states;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	struct sums s = { 0 };

	for (uint32_t i = 0; i < n->nodes->n; i++)
		add_node(&s, n->nodes->items[i], i == 0);
	states = words(a, n->state);
	if (n->flag)
		gpuq_add(a, states, gpuq_str(a, n->flag));
	gpuq_put(a, node.v, "state", states);
	gpuq_put(a, m.v, "node", node.v);
	gpuq_put(a, m.v, "nodes", nodes_of(a, n->nodes, n->state, n->flag != NULL));
	gpuq_put(a, m.v, "cpus", four(a, s.cpus - s.free_cpus, s.free_cpus, 0));
	gpuq_put(a, m.v, "cores", range(a, s.least_cpus, s.most_cpus));
	gpuq_put(a, memory.v, "minimum", gpuq_int(a, s.least_mib));
	gpuq_put(a, memory.v, "maximum", gpuq_int(a, s.most_mib));
	gpuq_put(a, memory.v, "free", range(a, s.least_free_mib, s.most_free_mib));
	gpuq_put(a, memory.v, "allocated", gpuq_int(a, s.taken_mib));
	gpuq_put(a, m.v, "memory", memory.v);
	if (s.gpus)
		gpuq_buf_printf(&text, "gpu:%s:%" PRId64, gpuq_get_str(first, "flavor", "default"),
				s.gpus);
	put_buf(&gres, "total", &text);
	if (s.gpus)
		gpuq_buf_printf(&text, "gpu:%s:%.0f", gpuq_get_str(first, "flavor", "default"),
				(double)s.gpus - s.free_gpus);
	put_buf(&gres, "used", &text);
	gpuq_put(a, m.v, "gres", gres.v);
	put_str(&features, "total", gpuq_get_str(first, "flavor", ""));
	put_str(&features, "active", gpuq_get_str(first, "flavor", ""));
	gpuq_put(a, m.v, "features", features.v);
	put_str(&reason, "description", gpuq_get_str(first, "note", ""));
	put_str(&reason, "user", gpuq_get_str(first, "drained_by", ""));
	put_number(&reason, "time", gpuq_get_int(first, "drained_time", 0) > 0,
		   seconds(first, "drained_time"));
	gpuq_put(a, m.v, "reason", reason.v);
	put_str(&m, "cluster", "gpuq");
	gpuq_put(a, m.v, "partition", partition_of(a, n->queue));
	gpuq_add(a, list, m.v);
	gpuq_buf_done(&text);
}

int slurm_json_sinfo(struct cli *c, struct gpuq_val *list)
{
	struct gpuq_val *v = gpuq_map(&c->arena);

	gpuq_put(&c->arena, v, "sinfo", list);
	return print(c, v, "sinfo");
}
