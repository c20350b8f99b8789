/* gpuq plan: when and where a job would start, what it would preempt or relocate, its cost. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/cli.h"
#include "gpuq/command.h"
#include "gpuq/lines.h"
#include "gpuq/out.h"
#include "gpuq/cmd/job/start.h"
#include "gpuq/cmd/job/submission.h"
#include "gpuq/view.h"
#include "libgpuq/units.h"

static void cost_lines(const struct gpuq_val *cost, struct gpuq_buf *text)
{
	const struct gpuq_val *budget = gpuq_get(cost, "budget");

	if (line_says(gpuq_get(cost, "gpu_hours"))) {
		gpuq_buf_adds(text, "at most ");
		view_cell(text, gpuq_get(cost, "gpu_hours"));
		gpuq_buf_adds(text, " GPU-hours, charged as ");
		view_cell(text, gpuq_get(cost, "gpu_minutes"));
		gpuq_buf_adds(text, " GPU-minutes");
	} else {
		gpuq_buf_adds(text, "unknown without a time limit");
	}
	if (line_says(gpuq_get(cost, "money")))
		gpuq_buf_printf(text, ", %.2f %s", view_number(gpuq_get(cost, "money"), 0),
				gpuq_get_str(cost, "currency", ""));
	line_print("Costs", text);
	if (line_says(budget)) {
		gpuq_buf_printf(text, "queue %s has ", gpuq_get_str(budget, "queue", "?"));
		view_cell(text, gpuq_get(budget, "left_gpu_minutes"));
		gpuq_buf_adds(text, " of ");
		view_cell(text, gpuq_get(budget, "gpu_minutes"));
		gpuq_buf_printf(text, " GPU-minutes left%s",
				gpuq_get_bool(budget, "hard", false) ? "; nothing starts beyond it"
								     : "");
		line_print("Budget", text);
	}
	if (view_number(gpuq_get(cost, "lost_gpu_hours"), 0) > 0) {
		gpuq_buf_printf(text, "%.2f GPU-hours of other jobs' work are lost",
				view_number(gpuq_get(cost, "lost_gpu_hours"), 0));
		line_print("", text);
	}
}

/* Print when it would start on each flavor alone, and at what cost. */
static void flavor_lines(const struct gpuq_val *list, int64_t now_us, struct gpuq_buf *text)
{
	for (size_t i = 0; list && list->type == GPUQ_LIST && i < list->n; i++) {
		const struct gpuq_val *f = list->items[i], *cost = gpuq_get(f, "cost");
		const struct gpuq_val *at = gpuq_get(gpuq_get(f, "start"), "start_time");
		const int64_t waited = gpuq_get_int(f, "waited_s", 0);

		gpuq_buf_printf(text, "%s: ", gpuq_get_str(f, "flavor", "?"));
		if (strcmp(gpuq_get_str(gpuq_get(f, "start"), "by", ""), "now") == 0)
			gpuq_buf_adds(text, "at once");
		else if (at && at->type == GPUQ_INT)
			start_when(text, at, now_us);
		else if (line_says(gpuq_get(f, "pool")))
			gpuq_buf_printf(text, "when pool %s gets nodes",
					gpuq_get_str(f, "pool", ""));
		else
			gpuq_buf_adds(text, "start unknown");
		if (line_says(gpuq_get(f, "wait_p50_s"))) {
			gpuq_buf_adds(text, ", half of its requests within ");
			line_clock(text, gpuq_get_int(f, "wait_p50_s", 0) * GPUQ_US_PER_S);
		}
		if (waited) {
			gpuq_buf_adds(text, ", not before ");
			line_clock(text, waited * GPUQ_US_PER_S);
			gpuq_buf_adds(text, " of waiting");
		}
		if (line_says(gpuq_get(cost, "gpu_minutes"))) {
			gpuq_buf_adds(text, "; at most ");
			view_cell(text, gpuq_get(cost, "gpu_minutes"));
			gpuq_buf_adds(text, " GPU-minutes");
		}
		if (line_says(gpuq_get(cost, "money")))
			gpuq_buf_printf(text, ", %.2f %s", view_number(gpuq_get(cost, "money"), 0),
					gpuq_get_str(cost, "currency", ""));
		line_print(line_label("Flavors", i), text);
	}
}

static void print_plan(const struct gpuq_val *plan)
{
	const struct gpuq_val *job = gpuq_get(plan, "job"), *w = gpuq_get(job, "warnings");
	struct gpuq_buf text = GPUQ_BUF_INIT;

	gpuq_buf_printf(&text, "%s in queue %s, ", gpuq_get_str(job, "name", "?"),
			gpuq_get_str(job, "queue", "?"));
	line_pods(&text, gpuq_get(job, "gpus"), gpuq_get_int(job, "pod_count", 1));
	gpuq_buf_printf(&text, "%s%s", line_says(gpuq_get(job, "array")) ? ", array " : "",
			gpuq_get_str(gpuq_get(job, "array"), "indices", ""));
	line_print("Job", &text);
	for (size_t i = 0; w && w->type == GPUQ_LIST && i < w->n; i++) {
		view_cell(&text, w->items[i]);
		line_print(line_label("Warning", i), &text);
	}
	start_lines(gpuq_get(plan, "start"), cli_now_us(), &text);
	cost_lines(gpuq_get(plan, "cost"), &text);
	flavor_lines(gpuq_get(plan, "flavors"), cli_now_us(), &text);
	gpuq_buf_done(&text);
}

int cmd_plan(struct cli *c)
{
	struct submission s = { .jobs = NULL };
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct gpuq_val *plans;
	struct gpuq_val *params, *reply;
	int code = submission_read(c, &s);

	if (code >= 0)
		return code;
	params = submission_params(c, &s, &err);
	if (!params || cli_call(c, "plan.get", params, "", &reply, &err) < 0)
		return cli_fail(&err, false);
	plans = gpuq_get(reply, "plans");
	for (size_t i = 0; plans && plans->type == GPUQ_LIST && i < plans->n; i++) {
		/* The context of the submission is not part of the job that is printed. */
		gpuq_unset(gpuq_get(gpuq_get(plans->items[i], "job"), "spec"), "context");
		if (opt_given(&c->args, OPT_JSON)) {
			out_json(plans->items[i]);
			continue;
		}
		if (i)
			putchar('\n');
		print_plan(plans->items[i]);
	}
	return EXIT_DONE;
}
