/* gpuq status: one job in full, or the cluster and its queues at a glance. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/filter.h"
#include "gpuq/job.h"
#include "gpuq/list.h"
#include "gpuq/out.h"
#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"
#include "libgpuq/units.h"

#define LABEL_COLUMNS 14

/* "Label         text", cleaned; nothing for an empty text. */
static void line(const char *label, struct gpuq_buf *text)
{
	struct gpuq_buf clean = GPUQ_BUF_INIT;

	if (text->len > 0) {
		term_clean_str(&clean, gpuq_buf_str(text));
		printf("%-*s %s\n", LABEL_COLUMNS, label, gpuq_buf_str(&clean));
	}
	gpuq_buf_clear(text);
	gpuq_buf_done(&clean);
}

static bool is_set(const struct gpuq_val *v)
{
	return v && v->type != GPUQ_NULL &&
	       !((v->type == GPUQ_LIST || v->type == GPUQ_MAP) && !v->n);
}

/* Numbers of a reason in the units people use: devices and CPUs come in thousandths,
 * times as instants. */
static void amount(struct gpuq_buf *text, const struct gpuq_val *reason, const char *key)
{
	const struct gpuq_val *v = gpuq_get(reason, key);
	char out[32];

	if (v && v->type == GPUQ_INT && strcmp(gpuq_get_str(reason, "unit", ""), "bytes") == 0) {
		gpuq_bytes_print(v->i, out, sizeof(out));
		gpuq_buf_adds(text, out);
		return;
	}
	view_cell(text, v);
}

static void reason_lines(const struct gpuq_val *job, int64_t now_us, struct gpuq_buf *text)
{
	const struct gpuq_val *reasons = gpuq_get(job, "reasons");

	for (size_t i = 0; reasons && reasons->type == GPUQ_LIST && i < reasons->n; i++) {
		const struct gpuq_val *r = reasons->items[i];
		const int64_t since_us = gpuq_get_int(r, "since", 0);
		char clock[48];

		gpuq_buf_adds(text, gpuq_get_str(r, "code", "?"));
		if (is_set(gpuq_get(r, "object"))) {
			gpuq_buf_addc(text, ' ');
			view_cell(text, gpuq_get(r, "object"));
		}
		if (is_set(gpuq_get(r, "have")) || is_set(gpuq_get(r, "need"))) {
			gpuq_buf_adds(text, ": have ");
			amount(text, r, "have");
			gpuq_buf_adds(text, ", need ");
			amount(text, r, "need");
		}
		if (since_us > 0 && since_us < now_us) {
			gpuq_duration_clock(now_us - since_us, clock, sizeof(clock));
			gpuq_buf_printf(text, ", for %s", clock);
		}
		if (is_set(gpuq_get(r, "who"))) {
			gpuq_buf_adds(text, ", can be changed by ");
			view_cell(text, gpuq_get(r, "who"));
		}
		line(i ? "" : "Reason", text);
	}
}

static void pod_lines(const struct gpuq_val *job, struct gpuq_buf *text)
{
	const struct gpuq_val *pods = gpuq_get(job, "pods");

	for (size_t i = 0; pods && pods->type == GPUQ_LIST && i < pods->n; i++) {
		const struct gpuq_val *p = pods->items[i], *devices = gpuq_get(p, "devices");

		view_cell(text, gpuq_get(p, "index"));
		gpuq_buf_printf(text, " %s %s on ", gpuq_get_str(p, "name", ""),
				gpuq_get_str(p, "state", "?"));
		view_cell(text, gpuq_get(p, "node"));
		for (size_t k = 0; devices && devices->type == GPUQ_LIST && k < devices->n; k++) {
			const int64_t milli = gpuq_get_int(devices->items[k], "milli", 1000);
			char part[32];

			gpuq_buf_adds(text, k ? "," : " gpu ");
			view_cell(text, gpuq_get(devices->items[k], "index"));
			if (milli == 1000)
				continue;
			gpuq_milli_print(milli, part, sizeof(part));
			gpuq_buf_printf(text, "(%s)", part);
		}
		line(i ? "" : "Pods", text);
	}
}

static void eviction_lines(const struct gpuq_val *job, struct gpuq_buf *text)
{
	const struct gpuq_val *list = gpuq_get(job, "evictions");

	for (size_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		view_time(text, gpuq_get(list->items[i], "time"));
		gpuq_buf_printf(text, " %s", gpuq_get_str(list->items[i], "cause", "?"));
		if (is_set(gpuq_get(list->items[i], "rule"))) {
			gpuq_buf_adds(text, " under ");
			view_cell(text, gpuq_get(list->items[i], "rule"));
		}
		if (is_set(gpuq_get(list->items[i], "by"))) {
			gpuq_buf_adds(text, " by ");
			view_cell(text, gpuq_get(list->items[i], "by"));
		}
		if (is_set(gpuq_get(list->items[i], "by_queue"))) {
			gpuq_buf_adds(text, " of ");
			view_cell(text, gpuq_get(list->items[i], "by_queue"));
		}
		line(i ? "" : "Evictions", text);
		if (!is_set(gpuq_get(list->items[i], "why")))
			continue;
		view_cell(text, gpuq_get(list->items[i], "why"));
		line("", text);
	}
}

/* Where it will start, and who has to leave there first. */
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
		line(i ? "" : "Promised", text);
	}
	for (size_t i = 0; victims && victims->type == GPUQ_LIST && i < victims->n; i++) {
		gpuq_buf_adds(text, i ? ", " : "");
		view_cell(text, victims->items[i]);
	}
	if (!text->len)
		return;
	if (is_set(gpuq_get(p, "rule"))) {
		gpuq_buf_adds(text, " under ");
		view_cell(text, gpuq_get(p, "rule"));
	}
	line("Leaving", text);
	if (!is_set(gpuq_get(p, "why")))
		return;
	view_cell(text, gpuq_get(p, "why"));
	line("", text);
}

static void clock_line(const char *label, int64_t us, struct gpuq_buf *text)
{
	char clock[48];

	gpuq_duration_clock(us, clock, sizeof(clock));
	gpuq_buf_adds(text, clock);
	line(label, text);
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
		{ "GPUs", "gpus" }, { "Flavor", "flavor" }, { "GPU seconds", "gpu_seconds" },
	};
	const int64_t limit_s = gpuq_get_int(job, "time_limit_s", -1);
	struct gpuq_buf text = GPUQ_BUF_INIT;

	view_job_id(&text, job);
	line("Job", &text);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		if (!is_set(gpuq_get(job, plain[i].key)))
			continue;
		view_cell(&text, gpuq_get(job, plain[i].key));
		line(plain[i].label, &text);
	}
	view_cell(&text, gpuq_get(job, "state"));
	line("State", &text);
	reason_lines(job, now_us, &text);
	if (is_set(gpuq_get(job, "message"))) {
		view_cell(&text, gpuq_get(job, "message"));
		line("Message", &text);
	}
	if (is_set(gpuq_get(job, "exit_code"))) {
		view_cell(&text, gpuq_get(job, "exit_code"));
		line("Exit code", &text);
	}
	if (gpuq_get_int(job, "attempt", 0) > 0) {
		view_cell(&text, gpuq_get(job, "attempt"));
		line("Attempt", &text);
	}
	clock_line("Run time", view_job_elapsed_us(job, now_us), &text);
	clock_line("Time limit", limit_s < 0 ? GPUQ_UNLIMITED : limit_s * GPUQ_US_PER_S, &text);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (!is_set(gpuq_get(job, times[i].key)))
			continue;
		view_time(&text, gpuq_get(job, times[i].key));
		line(times[i].label, &text);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (!is_set(gpuq_get(job, sizes[i].key)))
			continue;
		view_cell(&text, gpuq_get(job, sizes[i].key));
		line(sizes[i].label, &text);
	}
	view_job_nodes(&text, job);
	line("Nodes", &text);
	pod_lines(job, &text);
	promise_lines(job, &text);
	eviction_lines(job, &text);
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

static int job_status(struct cli *c, const char *word)
{
	struct shown s = { opt_given(&c->args, OPT_JSON), false };
	struct gpuq_err err = GPUQ_ERR_INIT;
	int64_t id, index;

	if (filter_id(word, &id, &index, &err) < 0)
		return cli_usage(c, "%s", err.text);
	return job_each(c, id, index, show_job, &s, &err) < 0 ? cli_fail(&err, true) : EXIT_DONE;
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
		sep = ", ";
	}
	if (sep[0] == ',')
		gpuq_buf_addc(text, ')');
	line("GPUs", text);
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
	line("Jobs", text);
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
	line("Server", &text);
	view_cell(&text, gpuq_get(cluster, "kind"));
	if (is_set(gpuq_get(cluster, "stale_since"))) {
		gpuq_buf_adds(&text, ", stale since ");
		view_time(&text, gpuq_get(cluster, "stale_since"));
	}
	line("Cluster", &text);
	device_line(status, &text);
	jobs_line(status, &text);
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

int cmd_status(struct cli *c)
{
	const int64_t every_us = watch_us(c);
	int code;

	if (every_us < 0)
		return EXIT_USAGE;
	if (every_us)
		cli_signals_catch();
	for (bool first = true;; first = false) {
		if (every_us)
			watch_head(c, first);
		code = c->args.n_rest ? job_status(c, c->args.rest[0]) : cluster_once(c);
		if (code != EXIT_DONE || !every_us || !watch_pause(every_us))
			return code;
		/* Watching may last for days; nothing of the last turn is needed. */
		gpuq_arena_reset(&c->arena);
	}
}
