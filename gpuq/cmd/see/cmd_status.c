/* gpuq status: one job in full, or the cluster and its queues at a glance. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/cmd/see/cmd_queues.h"
#include "gpuq/command.h"
#include "gpuq/filter.h"
#include "gpuq/job.h"
#include "gpuq/lines.h"
#include "gpuq/list.h"
#include "gpuq/out.h"
#include "gpuq/cmd/see/provisioning.h"
#include "gpuq/reasons.h"
#include "gpuq/cmd/job/used.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"
#include "libgpuq/spec/resource.h"
#include "libgpuq/units.h"

/* Print what a pod has of a device that it shares: "(0.25, 4 GiB)". */
static void part_text(struct gpuq_buf *text, const struct gpuq_val *device)
{
	const int64_t milli = gpuq_get_int(device, "milli", 1000);
	char part[32];

	if (milli == 1000)
		return;
	gpuq_milli_print(milli, part, sizeof(part));
	gpuq_buf_printf(text, "(%s", part);
	if (line_says(gpuq_get(device, "memory_mib"))) {
		gpuq_buf_adds(text, ", ");
		view_mib(text, gpuq_get(device, "memory_mib"));
	}
	if (!line_says(gpuq_get(device, "cores")))
		gpuq_buf_adds(text, ", cores not limited");
	gpuq_buf_addc(text, ')');
}

/* " gpu 0 of claim mine, charged to job 17" */
static void claims_text(const struct gpuq_val *pod, struct gpuq_buf *text)
{
	const struct gpuq_val *list = gpuq_get(pod, "shared_claims");

	for (size_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		const struct gpuq_val *c = list->items[i], *devices = gpuq_get(c, "devices");
		const struct gpuq_val *jobs = gpuq_get(c, "jobs");

		gpuq_buf_adds(text, i ? ";" : line_says(gpuq_get(pod, "devices")) ? ";" : "");
		for (size_t k = 0; devices && k < devices->n; k++) {
			gpuq_buf_adds(text, k ? "," : " gpu ");
			view_cell(text, devices->items[k]);
		}
		gpuq_buf_adds(text, " of claim ");
		view_cell(text, gpuq_get(c, "claim"));
		for (size_t k = 0; jobs && k < jobs->n; k++) {
			gpuq_buf_adds(text, k ? ", " : " shared with ");
			view_cell(text, jobs->items[k]);
		}
		if (!gpuq_get_bool(c, "charged", true))
			gpuq_buf_adds(text, ", not charged");
	}
}

static void pod_lines(const struct gpuq_val *job, struct gpuq_buf *text)
{
	const struct gpuq_val *pods = gpuq_get(job, "pods");
	int64_t instances = 0;

	for (size_t i = 0; pods && pods->type == GPUQ_LIST && i < pods->n; i++) {
		const struct gpuq_val *p = pods->items[i], *devices = gpuq_get(p, "devices");

		view_cell(text, gpuq_get(p, "index"));
		gpuq_buf_printf(text, " %s %s on ", gpuq_get_str(p, "name", ""),
				gpuq_get_str(p, "state", "?"));
		view_cell(text, gpuq_get(p, "node"));
		if (devices && devices->type == GPUQ_LIST && devices->n &&
		    !line_says(gpuq_get(devices->items[0], "index"))) {
			gpuq_buf_printf(text, " %u gpu%s", devices->n, line_s(devices->n));
			part_text(text, devices->items[0]);
			devices = NULL;
		}
		for (size_t k = 0; devices && devices->type == GPUQ_LIST && k < devices->n; k++) {
			gpuq_buf_adds(text, k ? "," : " gpu ");
			view_cell(text, gpuq_get(devices->items[k], "index"));
			part_text(text, devices->items[k]);
		}
		if (line_says(gpuq_get(p, "mig"))) {
			const int64_t n = gpuq_get_int(p, "instances", 1);

			gpuq_buf_printf(text, " %lld x mig ", (long long)n);
			view_cell(text, gpuq_get(p, "mig"));
			instances += n;
		}
		claims_text(p, text);
		line_print(line_label("Pods", i), text);
	}
	if (instances > 1) {
		gpuq_buf_adds(text, "MIG instances have no peer-to-peer access to one another");
		line_print("Note", text);
	}
}

static void eviction_lines(const struct gpuq_val *job, struct gpuq_buf *text)
{
	const struct gpuq_val *list = gpuq_get(job, "evictions");

	for (size_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		view_time(text, gpuq_get(list->items[i], "time"));
		gpuq_buf_printf(text, " %s", gpuq_get_str(list->items[i], "cause", "?"));
		if (line_says(gpuq_get(list->items[i], "rule"))) {
			gpuq_buf_adds(text, " under ");
			view_cell(text, gpuq_get(list->items[i], "rule"));
		}
		if (line_says(gpuq_get(list->items[i], "by"))) {
			gpuq_buf_adds(text, " by ");
			view_cell(text, gpuq_get(list->items[i], "by"));
		}
		if (line_says(gpuq_get(list->items[i], "by_queue"))) {
			gpuq_buf_adds(text, " of ");
			view_cell(text, gpuq_get(list->items[i], "by_queue"));
		}
		line_print(line_label("Evictions", i), text);
		if (!line_says(gpuq_get(list->items[i], "why")))
			continue;
		view_cell(text, gpuq_get(list->items[i], "why"));
		line_print("", text);
	}
}

static void avoid_lines(const struct gpuq_val *job, struct gpuq_buf *text)
{
	const struct gpuq_val *list = gpuq_get(job, "avoids");

	for (size_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		view_cell(text, gpuq_get(list->items[i], "node"));
		gpuq_buf_adds(text, " until ");
		view_time(text, gpuq_get(list->items[i], "until_time"));
		line_print(line_label("Avoids", i), text);
	}
}

/* The job's nominated placement, and the jobs that are preempted for it. */
static void promise_lines(const struct gpuq_val *job, struct gpuq_buf *text)
{
	const struct gpuq_val *p = gpuq_get(job, "promise"), *pods = gpuq_get(p, "pods");
	const struct gpuq_val *victims = gpuq_get(p, "victims");

	for (size_t i = 0; pods && pods->type == GPUQ_LIST && i < pods->n; i++) {
		const struct gpuq_val *devices = gpuq_get(pods->items[i], "devices");

		view_cell(text, gpuq_get(pods->items[i], "node"));
		for (size_t k = 0; devices && k < devices->n; k++) {
			gpuq_buf_adds(text, k ? "," : " ");
			view_cell(text, devices->items[k]);
		}
		line_print(line_label("Nominated", i), text);
	}
	for (size_t i = 0; victims && victims->type == GPUQ_LIST && i < victims->n; i++) {
		gpuq_buf_adds(text, i ? ", " : "");
		view_cell(text, victims->items[i]);
	}
	if (!text->len)
		return;
	if (line_says(gpuq_get(p, "rule"))) {
		gpuq_buf_adds(text, " under ");
		view_cell(text, gpuq_get(p, "rule"));
	}
	line_print("Victims", text);
	if (!line_says(gpuq_get(p, "why")))
		return;
	view_cell(text, gpuq_get(p, "why"));
	line_print("", text);
}

/* "35 % of its devices", "0 %, idle for 8:00 of 10:00 (queue/lab)" */
static void use_line(const struct gpuq_val *job, struct gpuq_buf *text)
{
	const struct gpuq_val *use = gpuq_get(job, "use");
	const int64_t idle_s = gpuq_get_int(use, "idle_s", 0);
	const int64_t limit_s = gpuq_get_int(use, "idle_limit_s", 0);

	if (!line_says(use))
		return;
	gpuq_buf_printf(text, "%.1f %%", view_number(gpuq_get(use, "percent"), 0));
	if (idle_s) {
		gpuq_buf_adds(text, ", idle for ");
		line_clock(text, idle_s * GPUQ_US_PER_S);
	}
	if (limit_s) {
		gpuq_buf_adds(text, ", stopped when idle for ");
		line_clock(text, limit_s * GPUQ_US_PER_S);
		gpuq_buf_printf(text, " (%s)", gpuq_get_str(use, "idle_rule", "?"));
	}
	line_print("Use", text);
}

/* Print working directory, output files and comment of a job that has them. */
static void place_lines(const struct gpuq_val *job, struct gpuq_buf *text)
{
	static const struct {
		const char *label, *key;
	} files[] = { { "Output", "stdout" }, { "Errors", "stderr" } };

	line_value("Work dir", job, "workdir", text);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (!line_says(gpuq_get(job, files[i].key)))
			continue;
		view_job_file(text, job, files[i].key);
		line_print(files[i].label, text);
	}
	line_value("Comment", job, "comment", text);
}

/* Print the owner of pods that were not submitted. */
static void origin_line(const struct gpuq_val *job, struct gpuq_buf *text)
{
	const struct gpuq_val *o = gpuq_get(job, "origin");

	if (!line_says(o))
		return;
	gpuq_buf_printf(text, "%s %s in namespace %s", gpuq_get_str(o, "kind", ""),
			gpuq_get_str(o, "name", ""), gpuq_get_str(o, "namespace", ""));
	line_print("Origin", text);
}

static void clock_line(const char *label, int64_t us, struct gpuq_buf *text)
{
	line_clock(text, us);
	line_print(label, text);
}

/* The order is that of scontrol show job. */
static void print_job(const struct gpuq_val *job, int64_t now_us)
{
	static const struct {
		const char *label, *key;
	} plain[] = {
		{ "Name", "name" },	  { "User", "user" },	  { "Account", "account" },
		{ "Queue", "queue" },	  { "QoS", "qos" },	  { "Priority", "priority" },
	}, times[] = {
		{ "Submitted", "submit_time" }, { "Eligible", "eligible_time" },
		{ "Planned", "planned_time" },	{ "Started", "start_time" },
		{ "Ended", "end_time" },
	}, sizes[] = {
		{ "GPUs", "gpus" },
		{ "Flavor", "flavor" },
		{ "Isolation", "isolation" },
		{ "GPU seconds", "gpu_seconds" },
		{ "CPUs", "cpus" },
	};
	const int64_t limit_s = gpuq_get_int(job, "time_limit_s", -1);
	struct gpuq_buf text = GPUQ_BUF_INIT;

	view_job_id(&text, job);
	line_print("Job", &text);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		line_value(plain[i].label, job, plain[i].key, &text);
	origin_line(job, &text);
	view_cell(&text, gpuq_get(job, "state"));
	line_print("State", &text);
	reason_lines(job, now_us, &text);
	provisioning_lines(job, now_us, &text);
	line_value("Depends on", job, "depends", &text);
	line_value("Message", job, "message", &text);
	line_value("End cause", job, "end_cause", &text);
	line_value("Exit code", job, "exit_code", &text);
	if (gpuq_get_int(job, "attempt", 0) > 0) {
		view_cell(&text, gpuq_get(job, "attempt"));
		line_print("Attempt", &text);
	}
	clock_line("Run time", view_job_elapsed_us(job, now_us), &text);
	clock_line("Time limit", limit_s < 0 ? GPUQ_UNLIMITED : limit_s * GPUQ_US_PER_S, &text);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (!line_says(gpuq_get(job, times[i].key)))
			continue;
		view_time(&text, gpuq_get(job, times[i].key));
		line_print(times[i].label, &text);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		line_value(sizes[i].label, job, sizes[i].key, &text);
	if (line_says(gpuq_get(job, "memory_mib"))) {
		view_mib(&text, gpuq_get(job, "memory_mib"));
		line_print("Memory", &text);
	}
	use_line(job, &text);
	used_lines(job, &text);
	view_job_nodes(&text, job);
	line_print("Nodes", &text);
	pod_lines(job, &text);
	promise_lines(job, &text);
	avoid_lines(job, &text);
	eviction_lines(job, &text);
	place_lines(job, &text);
	gpuq_buf_done(&text);
}

struct shown {
	bool json, more;
};

static int show_job(void *arg, const struct gpuq_val *job)
{
	struct shown *s = arg;

	if (s->json)
		return out_json(job);
	if (s->more)
		putchar('\n');
	s->more = true;
	print_job(job, cli_now_us());
	return 0;
}

/* The job file that makes such a job: of an element, of its array. */
static int print_file(struct cli *c, int64_t id, int64_t index, const char *form)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_buf text = GPUQ_BUF_INIT;
	const struct gpuq_val *job;
	struct gpuq_val *spec;
	int code = EXIT_DONE;

	job = job_with_spec(c, id, index, &err);
	if (!job)
		return cli_fail(&err, true);
	spec = gpuq_get(job, "spec");
	gpuq_unset(spec, "context");
	if (strcmp(form, "json") == 0)
		gpuq_json_write(&text, spec, 0);
	else
		gpuq_yaml_write(&text, spec);
	if (text.failed) {
		cli_say("out of memory");
		code = EXIT_REFUSED;
	} else {
		fputs(gpuq_buf_str(&text), stdout);
		if (text.len && text.data[text.len - 1] != '\n')
			putchar('\n');
	}
	gpuq_buf_done(&text);
	return code;
}

static int job_status(struct cli *c, const char *word)
{
	struct shown s = { opt_given(&c->args, OPT_JSON), false };
	const char *form = c->args.val[OPT_OUTPUT];
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *ids = gpuq_list(&c->arena);
	int64_t id = 0, index = -1;

	if (filter_ids(&c->arena, word, ids, &err) < 0 || ids->n == 0 ||
	    filter_id(ids->items[0]->s, &id, &index, &err) < 0)
		return cli_usage(c, "%s", err.code ? err.text : "expected a job");
	if (form && strcmp(form, "yaml") && strcmp(form, "json"))
		return cli_usage(c, "--output %s: expected yaml or json", form);
	if (form)
		return print_file(c, id, index, form);
	for (size_t i = 0; i < ids->n; i++)
		if (filter_id(ids->items[i]->s, &id, &index, &err) < 0 ||
		    job_for_each(c, id, index, show_job, &s, &err) < 0)
			return cli_fail(&err, true);
	return EXIT_DONE;
}

/* " (2 without a free core, 1 on suspect nodes)" */
static void stranded_words(const struct gpuq_val *status, struct gpuq_buf *text)
{
	static const struct {
		const char *cause, *words;
	} causes[] = {
		{ "cpu", "without a free core" },      { "memory", "without free memory" },
		{ "pods", "without a free pod slot" }, { "suspect", "on suspect nodes" },
		{ "frozen", "on frozen nodes" },       { "mig", "left by MIG instances" },
		{ "refused", "refused by kubelets" },
	};
	const char *sep = " (";

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		const struct gpuq_val *n = gpuq_path(status, "stranded_by", causes[i].cause, NULL);

		if (view_number(n, 0) == 0)
			continue;
		gpuq_buf_adds(text, sep);
		view_cell(text, n);
		gpuq_buf_printf(text, " %s", causes[i].words);
		sep = ", ";
	}
	if (sep[0] == ',')
		gpuq_buf_addc(text, ')');
}

/* "8 gpus: 3 allocated, 5 free" */
static void device_line(const struct gpuq_val *status, struct gpuq_buf *text)
{
	const struct gpuq_val *devices = gpuq_get(status, "devices");
	const char *sep = " (";

	view_cell(text, gpuq_get(status, "gpus"));
	for (size_t i = 0; devices && devices->type == GPUQ_MAP && i < devices->n; i++) {
		if (view_number(devices->pairs[i].val, 0) == 0)
			continue;
		gpuq_buf_adds(text, sep);
		view_cell(text, devices->pairs[i].val);
		gpuq_buf_printf(text, " %s", devices->pairs[i].key);
		if (strcmp(devices->pairs[i].key, "stranded") == 0)
			stranded_words(status, text);
		sep = ", ";
	}
	if (sep[0] == ',')
		gpuq_buf_addc(text, ')');
	line_print("GPUs", text);
}

/* "rdma/hca 3/8, example.com/nic 0/2": how many of each are free. Devices are in the line above, also those that
 * are such by a flavor of the site. */
static void resources_line(const struct gpuq_val *status, struct gpuq_buf *text)
{
	const struct gpuq_val *map = gpuq_get(status, "resources");
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);

	for (size_t i = 0; map && map->type == GPUQ_MAP && i < map->n; i++) {
		const struct gpuq_val *v = map->pairs[i].val;
		/* An earlier server has them as devices. */
		const int64_t devices = gpuq_get_int(v, "slots", gpuq_get_int(v, "devices", 0));
		struct gpuq_val *rest = gpuq_map(&a);

		if (gpuq_resource_kind(map->pairs[i].key) != GPUQ_RESOURCE_COUNTED ||
		    (devices && devices == gpuq_get_int(v, "total", 0)))
			continue;
		gpuq_put(&a, rest, "total", gpuq_int(&a, gpuq_get_int(v, "total", 0) - devices));
		gpuq_put(&a, rest, "free",
			 gpuq_int(&a, gpuq_get_int(v, "free", 0) -
					      gpuq_get_int(v, "free_slots",
							   gpuq_get_int(v, "free_devices", 0))));
		view_free(text, text->len ? ", " : "", map->pairs[i].key, rest, "total");
	}
	gpuq_arena_done(&a);
	if (text->len)
		line_print("Resources", text);
}

/* "2 rdma/hca by node r1 until 14:00" */
static void refusing_lines(const struct gpuq_val *status, struct gpuq_buf *text)
{
	const struct gpuq_val *list = gpuq_get(status, "refusing");

	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		const struct gpuq_val *one = list->items[i];

		view_cell(text, gpuq_get(one, "count"));
		gpuq_buf_printf(text, " %s by the kubelet of %s until ",
				gpuq_get_str(one, "resource", "?"), gpuq_get_str(one, "node", "?"));
		view_time(text, gpuq_get(one, "until_time"));
		line_print(line_label("Withheld", i), text);
	}
}

/* "16 idle for demo until 14:00" */
static void reserved_lines(const struct gpuq_val *status, struct gpuq_buf *text)
{
	const struct gpuq_val *list = gpuq_get(status, "reserved");

	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		view_cell(text, gpuq_get(list->items[i], "gpus"));
		gpuq_buf_adds(text, " idle for ");
		view_cell(text, gpuq_get(list->items[i], "name"));
		gpuq_buf_adds(text, " until ");
		view_time(text, gpuq_get(list->items[i], "end_time"));
		line_print(line_label("Reserved", i), text);
	}
}

/* "17 of ann in lab, for 2:13:00 (Resources)" */
static void oldest_line(const struct gpuq_val *status, struct gpuq_buf *text)
{
	const struct gpuq_val *o = gpuq_get(status, "oldest_waiting");
	const int64_t since_us = gpuq_get_int(o, "eligible_time", 0), now_us = cli_now_us();

	if (!line_says(o))
		return;
	gpuq_buf_printf(text, "%s of %s in %s, for ", gpuq_get_str(o, "job", "?"),
			gpuq_get_str(o, "user", "?"), gpuq_get_str(o, "queue", "?"));
	line_clock(text, now_us > since_us ? now_us - since_us : 0);
	if (line_says(gpuq_get(o, "reason")))
		gpuq_buf_printf(text, " (%s)", gpuq_get_str(o, "reason", ""));
	line_print("Longest wait", text);
}

static void jobs_line(const struct gpuq_val *status, struct gpuq_buf *text)
{
	const struct gpuq_val *jobs = gpuq_get(status, "jobs");

	for (size_t i = 0; jobs && jobs->type == GPUQ_MAP && i < jobs->n; i++) {
		if (view_number(jobs->pairs[i].val, 0) == 0)
			continue;
		if (text->len)
			gpuq_buf_adds(text, ", ");
		view_cell(text, jobs->pairs[i].val);
		gpuq_buf_printf(text, " %s", jobs->pairs[i].key);
	}
	if (!text->len)
		gpuq_buf_adds(text, "none");
	line_print("Jobs", text);
}

/* Only where it matters: an idle rule exists but utilization is not measured. */
static void measured_line(const struct gpuq_val *status, struct gpuq_buf *text)
{
	const struct gpuq_val *m = gpuq_get(status, "measured");

	if (!gpuq_get_bool(m, "idle_rule", false) || !line_says(gpuq_get(m, "trouble")))
		return;
	gpuq_buf_adds(text,
		      line_says(gpuq_get(m, "source")) ? "not everywhere: " : "not applied: ");
	view_cell(text, gpuq_get(m, "trouble"));
	line_print("Idle rules", text);
}

static void recovering_line(const struct gpuq_val *status, struct gpuq_buf *text)
{
	const struct gpuq_val *r = gpuq_get(status, "recovering");

	if (!r || r->type != GPUQ_MAP)
		return;
	gpuq_buf_adds(text, "since ");
	view_time(text, gpuq_get(r, "since"));
	if (gpuq_get_bool(r, "listed", false))
		gpuq_buf_printf(text, ", %" PRId64 " adopted, %" PRId64 " unknown: gpuq recover",
				gpuq_get_int(r, "adopted", 0), gpuq_get_int(r, "unknown", 0));
	else
		gpuq_buf_adds(text, ", no job starts until the cluster has been listed");
	line_print("Recovering", text);
}

/* Print what an upgrade means for the queue default. */
static void default_line(const struct gpuq_val *status, struct gpuq_buf *text)
{
	const struct gpuq_val *q = gpuq_get(status, "quotas");

	if (!line_says(gpuq_get(q, "default_time")))
		return;
	gpuq_buf_printf(text, "queue default has quota 0 %s ",
			gpuq_get_bool(q, "default_spared", false) ? "from" : "since");
	view_time(text, gpuq_get(q, "default_time"));
	gpuq_buf_adds(text, ", as other queues have one: gpuq doctor");
	line_print("Quotas", text);
}

/* Print what is wrong with the copies; nothing while all is well. */
static void backup_line(const struct gpuq_val *status, struct gpuq_buf *text)
{
	const struct gpuq_val *b = gpuq_get(status, "backup");

	if (!b || b->type != GPUQ_MAP)
		return;
	if (gpuq_get_bool(b, "late", false)) {
		gpuq_buf_printf(text, "the %s has not ended since ",
				gpuq_get_str(b, "doing", "copy"));
		view_time(text, gpuq_get(b, "since"));
	} else if (gpuq_get_int(b, "failed", 0)) {
		gpuq_buf_adds(text, "failing since ");
		view_time(text, gpuq_get(b, "failed_time"));
		if (line_says(gpuq_get(b, "last_error"))) {
			gpuq_buf_adds(text, ": ");
			view_cell(text, gpuq_get(b, "last_error"));
		}
	} else if (gpuq_get_bool(b, "log_late", false) || gpuq_get_int(b, "log_failed", 0)) {
		gpuq_buf_adds(text, "changes since the last copy do not reach the target");
	} else if (gpuq_get_bool(b, "damaged", false)) {
		gpuq_buf_adds(text, "a copy is damaged: gpuq backup list");
	}
	line_print("Backup", text);
}

/* "serviceaccount/runner in ml: 40 jobs pending, since 10:31:02", and the cluster's words. */
static void refused_lines(const struct gpuq_val *cluster, struct gpuq_buf *text)
{
	const struct gpuq_val *list = gpuq_get(cluster, "refused");

	for (uint32_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		const struct gpuq_val *r = list->items[i];
		const int64_t n = gpuq_get_int(r, "jobs", 0);

		view_cell(text, gpuq_get(r, "object"));
		gpuq_buf_adds(text, " in ");
		view_cell(text, gpuq_get(r, "namespace"));
		gpuq_buf_printf(text, ": %" PRId64 " job%s pending, since ", n, line_s(n));
		view_time(text, gpuq_get(r, "since"));
		line_print(line_label("Refused", i), text);
		view_cell(text, gpuq_get(r, "message"));
		line_print("", text);
	}
}

static void fence_line(const struct gpuq_val *cluster, struct gpuq_buf *text)
{
	if (line_says(gpuq_get(cluster, "fenced_by"))) {
		gpuq_buf_adds(text, "no job starts: ");
		view_cell(text, gpuq_get(cluster, "fenced_by"));
		gpuq_buf_adds(text, " acts under this identity");
		line_print("Fenced", text);
	} else if (line_says(gpuq_get(cluster, "keeps_out"))) {
		gpuq_buf_adds(text, "keeps out ");
		view_cell(text, gpuq_get(cluster, "keeps_out"));
		gpuq_buf_adds(text, ", which has the same identity");
		line_print("Fence", text);
	}
}

static void print_cluster(struct cli *c, const struct gpuq_val *status)
{
	const struct gpuq_val *info = gpuq_server_info(c->conn);
	const struct gpuq_val *cluster = gpuq_get(status, "cluster");
	struct gpuq_buf text = GPUQ_BUF_INIT;

	gpuq_buf_printf(&text, "gpuqd %s", gpuq_get_str(info, "version", "?"));
	if (cli_user(c))
		gpuq_buf_printf(&text, ", you are %s (%s)", cli_user(c),
				gpuq_get_str(info, "role", "user"));
	line_print("Server", &text);
	view_cell(&text, gpuq_get(cluster, "kind"));
	if (line_says(gpuq_get(cluster, "stale_since"))) {
		gpuq_buf_adds(&text, ", stale since ");
		view_time(&text, gpuq_get(cluster, "stale_since"));
		if (line_says(gpuq_get(cluster, "stale_why"))) {
			gpuq_buf_adds(&text, ": ");
			view_cell(&text, gpuq_get(cluster, "stale_why"));
		}
	}
	if (gpuq_get_bool(cluster, "read_only", false))
		gpuq_buf_adds(&text, ", read only: no space on the server's disk");
	else if (gpuq_get_bool(cluster, "no_new_jobs", false))
		gpuq_buf_adds(&text, ", no new jobs: the server's disk is full");
	line_print("Cluster", &text);
	refused_lines(cluster, &text);
	fence_line(cluster, &text);
	recovering_line(status, &text);
	default_line(status, &text);
	backup_line(status, &text);
	device_line(status, &text);
	resources_line(status, &text);
	refusing_lines(status, &text);
	reserved_lines(status, &text);
	provisioning_pools(status, &text);
	jobs_line(status, &text);
	oldest_line(status, &text);
	measured_line(status, &text);
	gpuq_buf_done(&text);
}

static int cluster_once(struct cli *c)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val *status;

	if (cli_call(c, "status.get", NULL, "", &status, &err) < 0)
		return cli_fail(&err, false);
	if (opt_given(&c->args, OPT_JSON))
		return out_json(status) < 0 ? EXIT_REFUSED : EXIT_DONE;
	print_cluster(c, status);
	putchar('\n');
	return queues_print(c);
}

static int once(struct cli *c)
{
	return c->args.n_rest ? job_status(c, c->args.rest[0]) : cluster_once(c);
}

int cmd_status(struct cli *c)
{
	return watch_run(c, once);
}
