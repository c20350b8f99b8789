#include "gpuq/cmd/see/provisioning.h"

#include <inttypes.h>
#include <string.h>

#include "gpuq/lines.h"
#include "gpuq/view.h"
#include "libgpuq/units.h"

#define POOLS_SHOWN 8

void provisioning_lines(const struct gpuq_val *job, int64_t now_us, struct gpuq_buf *text)
{
	const struct gpuq_val *p = gpuq_get(job, "provisioning");
	const int64_t nodes = gpuq_get_int(p, "nodes", 0), since_us = gpuq_get_int(p, "since", 0);
	const char *state = gpuq_get_str(p, "state", "");

	if (!line_says(p))
		return;
	gpuq_buf_printf(text, "%" PRId64 " node%s of pool %s, flavor %s, ", nodes, line_s(nodes),
			gpuq_get_str(p, "pool", "?"), gpuq_get_str(p, "flavor", "?"));
	gpuq_buf_printf(text, "%s for ", state);
	line_clock(text, since_us && since_us < now_us ? now_us - since_us : 0);
	line_print("Requested", text);
	gpuq_buf_adds(text, gpuq_get_str(p, "request", "?"));
	if (line_says(gpuq_get(p, "class")))
		gpuq_buf_printf(text, ", class %s", gpuq_get_str(p, "class", "?"));
	gpuq_buf_printf(text, ", attempt %" PRId64, gpuq_get_int(p, "attempt", 1));
	if (line_says(gpuq_get(p, "owner")))
		gpuq_buf_printf(text, ", of job %s", gpuq_get_str(p, "owner", "?"));
	line_print("Request", text);
	if (line_says(gpuq_get(p, "condition"))) {
		view_cell(text, gpuq_get(p, "condition"));
		/* Autoscalers give some conditions their own names as reasons. */
		if (line_says(gpuq_get(p, "condition_reason")) &&
		    strcmp(gpuq_get_str(p, "condition_reason", ""),
			   gpuq_get_str(p, "condition", "")) != 0) {
			gpuq_buf_adds(text, ", ");
			view_cell(text, gpuq_get(p, "condition_reason"));
		}
		line_print("Condition", text);
	}
	if (line_says(gpuq_get(p, "message"))) {
		view_cell(text, gpuq_get(p, "message"));
		line_print("Cloud says", text);
	}
	if (gpuq_get_int(p, "waits", 0) > 0) {
		line_clock(text, gpuq_get_int(p, "wait_median_s", 0) * GPUQ_US_PER_S);
		gpuq_buf_adds(text, " in the median, 90 % within ");
		line_clock(text, gpuq_get_int(p, "wait_p90_s", 0) * GPUQ_US_PER_S);
		gpuq_buf_printf(text, ", of the last %" PRId64 " of the pool",
				gpuq_get_int(p, "waits", 0));
		line_print("Took before", text);
	}
	if (line_says(gpuq_get(p, "deadline_time"))) {
		view_time(text, gpuq_get(p, "deadline_time"));
		line_print(strcmp(state, "paused") == 0 ? "Next attempt" : "Until", text);
	}
}

void provisioning_pools(const struct gpuq_val *status, struct gpuq_buf *text)
{
	const struct gpuq_val *list = gpuq_get(status, "pools");
	const uint32_t n = list && list->type == GPUQ_LIST ? list->n : 0;

	for (uint32_t i = 0; i < n && i < POOLS_SHOWN; i++) {
		const struct gpuq_val *p = list->items[i];
		const int64_t asked = gpuq_get_int(p, "asked", 0);
		const char *state = gpuq_get_str(p, "state", "");

		view_cell(text, gpuq_get(p, "name"));
		gpuq_buf_printf(text, " %" PRId64 " of %" PRId64, gpuq_get_int(p, "nodes", 0),
				gpuq_get_int(p, "max_nodes", 0));
		if (asked)
			gpuq_buf_printf(text, ", asked %" PRId64, asked);
		if (strcmp(state, "failing") == 0 || strcmp(state, "off") == 0)
			gpuq_buf_printf(text, ", %s", state);
		if (i + 1 == POOLS_SHOWN && n > POOLS_SHOWN)
			gpuq_buf_printf(text, ", and %" PRIu32 " more pools (gpuq pools)",
					n - POOLS_SHOWN);
		line_print(line_label("Pools", i), text);
	}
}
