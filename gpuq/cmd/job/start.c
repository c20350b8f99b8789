#include "gpuq/cmd/job/start.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpuq/lines.h"
#include "gpuq/reasons.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"
#include "libgpuq/units.h"

static size_t count(const struct gpuq_val *list)
{
	return list && list->type == GPUQ_LIST ? list->n : 0;
}

/* "2026-11-21 15:26:29, in 1:05:00" */
void start_when(struct gpuq_buf *text, const struct gpuq_val *at, int64_t now_us)
{
	view_time(text, at);
	if (at->i > now_us) {
		gpuq_buf_adds(text, ", in ");
		line_clock(text, at->i - now_us);
	}
}

static void when_line(const struct gpuq_val *s, int64_t now_us, struct gpuq_buf *text)
{
	static const struct {
		const char *by, *words;
	} how[] = {
		{ "now", "" },
		{ "claim", ", when its victims are gone" },
		{ "reservation", " at the latest: it has a start reservation" },
		{ "simulation", ", as estimated now" },
	};
	const struct gpuq_val *at = gpuq_get(s, "start_time"), *likely = gpuq_get(s, "likely_time");
	const char *by = gpuq_get_str(s, "by", "");

	if (!at || at->type != GPUQ_INT) {
		gpuq_buf_adds(text, "unknown (beyond the estimate's horizon)");
		line_print("Starts", text);
		return;
	}
	if (strcmp(by, "now") == 0)
		gpuq_buf_adds(text, "at once");
	else
		start_when(text, at, now_us);
	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++)
		if (strcmp(by, how[i].by) == 0)
			gpuq_buf_adds(text, how[i].words);
	line_print("Starts", text);
	if (likely && likely->type == GPUQ_INT && likely->i < at->i) {
		gpuq_buf_adds(text, "likely ");
		start_when(text, likely, now_us);
		gpuq_buf_adds(text, ", from the run times of similar jobs");
		line_print("", text);
	}
}

static void place_lines(const struct gpuq_val *s, struct gpuq_buf *text)
{
	const struct gpuq_val *pods = gpuq_get(s, "pods");

	for (size_t i = 0; i < count(pods); i++) {
		const struct gpuq_val *p = pods->items[i], *of = gpuq_get(p, "devices");

		gpuq_buf_printf(text, "pod %" PRId64 " on %s", gpuq_get_int(p, "index", 0),
				gpuq_get_str(p, "node", "?"));
		if (count(of)) {
			gpuq_buf_adds(text, " gpu ");
			view_cell(text, of);
		} else if (view_number(gpuq_get(p, "gpus"), 0) > 0) {
			gpuq_buf_adds(text, " with ");
			line_gpus(text, gpuq_get(p, "gpus"));
		}
		if (i == 0 && line_says(gpuq_get(s, "flavor")))
			gpuq_buf_printf(text, " (%s)", gpuq_get_str(s, "flavor", ""));
		line_print(line_label("Where", i), text);
	}
}

double start_lost_hours(const struct gpuq_val *s)
{
	const struct gpuq_val *victims = gpuq_get(s, "victims");
	double lost = 0;

	for (size_t i = 0; i < count(victims); i++)
		lost += view_number(gpuq_get(victims->items[i], "lost_gpu_seconds"), 0) / 3600;
	return lost;
}

static void victim_lines(const struct gpuq_val *s, struct gpuq_buf *text)
{
	const struct gpuq_val *victims = gpuq_get(s, "victims");

	for (size_t i = 0; i < count(victims); i++) {
		const struct gpuq_val *v = victims->items[i];

		gpuq_buf_printf(text, "%s of %s in queue %s, ", gpuq_get_str(v, "job", "?"),
				gpuq_get_str(v, "user", "?"), gpuq_get_str(v, "queue", "?"));
		line_gpus(text, gpuq_get(v, "gpus"));
		gpuq_buf_printf(text, "%s; %.2f GPU-hours of work are lost",
				gpuq_get_bool(v, "moves", false) ? ", relocated" : "",
				view_number(gpuq_get(v, "lost_gpu_seconds"), 0) / 3600);
		line_print(line_label("Victims", i), text);
		if (!line_says(gpuq_get(v, "rule")))
			continue;
		gpuq_buf_printf(text, "  rule %s: %s", gpuq_get_str(v, "rule", ""),
				gpuq_rule_doc(gpuq_get_str(v, "rule", "")));
		line_print("", text);
	}
}

static void wait_lines(const struct gpuq_val *s, int64_t now_us, struct gpuq_buf *text)
{
	const struct gpuq_val *waits = gpuq_get(s, "waits");

	for (size_t i = 0; i < count(waits); i++) {
		const struct gpuq_val *w = waits->items[i];
		const struct gpuq_val *at = gpuq_get(w, "from_time");

		gpuq_buf_adds(text, "from ");
		if (at && at->type == GPUQ_INT && at->i <= now_us)
			gpuq_buf_adds(text, "now");
		else
			view_time(text, at);
		gpuq_buf_adds(text, " for ");
		reason_text(text, w, now_us);
		line_print(line_label("Pending", i), text);
	}
}

static void trust_lines(const struct gpuq_val *s, struct gpuq_buf *text)
{
	const struct gpuq_val *how = gpuq_get(s, "assumed"), *r = gpuq_get(s, "record");
	const int64_t endless = gpuq_get_int(how, "endless", 0), n = gpuq_get_int(r, "jobs", 0);

	if (line_says(how)) {
		const int64_t running = gpuq_get_int(how, "running", 0);

		gpuq_buf_printf(text, "no new jobs and full time limits (%" PRId64 " running job%s",
				running, line_s(running));
		if (endless)
			gpuq_buf_printf(text, ", %" PRId64 " without a limit", endless);
		gpuq_buf_addc(text, ')');
		line_print("Assumes", text);
		if (gpuq_get_bool(how, "cut_short", false)) {
			gpuq_buf_printf(text, "the estimate stopped after %" PRId64 " events",
					gpuq_get_int(how, "events", 0));
			line_print("", text);
		}
	}
	if (n == 0)
		return;
	gpuq_buf_printf(text, "error of %" PRId64 " estimates in this queue: median ", n);
	line_clock(text, gpuq_get_int(r, "half_s", 0) * GPUQ_US_PER_S);
	gpuq_buf_adds(text, ", 90th percentile ");
	line_clock(text, gpuq_get_int(r, "most_s", 0) * GPUQ_US_PER_S);
	gpuq_buf_printf(text,
			"; %" PRId64 " started later, %" PRId64 " earlier, %" PRId64
			" without estimate",
			gpuq_get_int(r, "late", 0), gpuq_get_int(r, "early", 0),
			gpuq_get_int(r, "unknown", 0));
	line_print("Accuracy", text);
}

void start_lines(const struct gpuq_val *s, int64_t now_us, struct gpuq_buf *text)
{
	if (!line_says(s))
		return;
	when_line(s, now_us, text);
	place_lines(s, text);
	victim_lines(s, text);
	wait_lines(s, now_us, text);
	trust_lines(s, text);
}
