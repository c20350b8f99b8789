#include "gpuq/reasons.h"

#include <string.h>

#include "gpuq/lines.h"
#include "gpuq/view.h"
#include "libgpuq/names.h"
#include "libgpuq/units.h"

void reason_amount(struct gpuq_buf *text, const struct gpuq_val *reason, const char *key)
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

/* Read the instant of an amount; false: it has none. */
static bool read_instant(const struct gpuq_val *amount, int64_t now_us, struct gpuq_val *at)
{
	*at = (struct gpuq_val){ .type = GPUQ_INT };
	return amount && amount->type == GPUQ_STR &&
	       gpuq_instant_parse(amount->s, now_us, &at->i, NULL) == 0;
}

/* Add until when another flavor is not used, with the clock running. */
static void flavor_wait(struct gpuq_buf *text, const struct gpuq_val *until, int64_t now_us)
{
	struct gpuq_val at;

	if (!read_instant(until, now_us, &at)) {
		gpuq_buf_adds(text, ": until requests for it are refused");
		return;
	}
	gpuq_buf_adds(text, ": until ");
	view_time(text, &at);
	if (at.i > now_us) {
		gpuq_buf_adds(text, ", ");
		line_clock(text, at.i - now_us);
		gpuq_buf_adds(text, " left");
	}
}

/* until: when a node is cut that was given the layout not long ago. */
static void mig_layout(struct gpuq_buf *out, const struct gpuq_val *until, int64_t now_us)
{
	struct gpuq_val at;

	if (!read_instant(until, now_us, &at)) {
		gpuq_buf_adds(out, " is being cut");
		return;
	}
	gpuq_buf_adds(out, " is not cut again before ");
	view_time(out, &at);
}

/* Behind the class of its claims an object has a key of the daemon's own, which distinguishes requests. */
static void put_object(struct gpuq_buf *out, const struct gpuq_val *reason)
{
	static const char claims[] = "claims/";
	const char *object = gpuq_get_str(reason, "object", "");
	const size_t n = sizeof(claims) - 1;

	if (strncmp(object, claims, n) == 0)
		gpuq_buf_add(out, object, n + strcspn(object + n, "/"));
	else
		view_cell(out, gpuq_get(reason, "object"));
}

void reason_text(struct gpuq_buf *out, const struct gpuq_val *reason, int64_t now_us)
{
	const int64_t since_us = gpuq_get_int(reason, "since", 0);
	const char *code = gpuq_get_str(reason, "code", "?");
	const char *unit = gpuq_get_str(reason, "unit", "");
	const struct gpuq_val *have = gpuq_get(reason, "have");

	if (strcmp(code, gpuq_reason_word(GPUQ_R_MIG_LAYOUT)) == 0) {
		gpuq_buf_adds(out, "MIG layout: node ");
		view_cell(out, gpuq_get(reason, "object"));
		mig_layout(out, gpuq_get(reason, "need"), now_us);
		return;
	}
	gpuq_buf_adds(out, code);
	/* "gpus" says nothing beside a number of GPUs; but where no node could have them, all other objects are named. */
	if (line_says(gpuq_get(reason, "object")) &&
	    (strcmp(gpuq_get_str(reason, "object", ""), "gpus") != 0 ||
	     strcmp(code, gpuq_reason_word(GPUQ_R_UNSATISFIABLE)) == 0)) {
		gpuq_buf_addc(out, ' ');
		put_object(out, reason);
	}
	if (strcmp(code, gpuq_reason_word(GPUQ_R_RESOURCES)) == 0 && line_says(have) &&
	    line_says(gpuq_get(reason, "need")) && strcmp(unit, "gpus") == 0) {
		gpuq_buf_adds(out, ": ");
		reason_amount(out, reason, "have");
		gpuq_buf_adds(out, " of ");
		reason_amount(out, reason, "need");
		gpuq_buf_adds(out, " GPUs free");
	} else if (strcmp(code, gpuq_reason_word(GPUQ_R_FLAVOR_WAIT)) == 0) {
		flavor_wait(out, gpuq_get(reason, "need"), now_us);
	} else if (line_says(have) || line_says(gpuq_get(reason, "need"))) {
		gpuq_buf_adds(out, ": have ");
		reason_amount(out, reason, "have");
		gpuq_buf_adds(out, ", need ");
		reason_amount(out, reason, "need");
	}
	if (since_us > 0 && since_us < now_us) {
		gpuq_buf_adds(out, ", for ");
		line_clock(out, now_us - since_us);
	}
	if (line_says(gpuq_get(reason, "who")) &&
	    strcmp(gpuq_get_str(reason, "who", ""), "nobody") != 0) {
		gpuq_buf_adds(out, ", can be changed by ");
		view_cell(out, gpuq_get(reason, "who"));
	}
}

void reason_lines(const struct gpuq_val *job, int64_t now_us, struct gpuq_buf *text)
{
	const struct gpuq_val *reasons = gpuq_get(job, "reasons");

	for (size_t i = 0; reasons && reasons->type == GPUQ_LIST && i < reasons->n; i++) {
		reason_text(text, reasons->items[i], now_us);
		line_print(line_label("Reason", i), text);
		if (!line_says(gpuq_get(reasons->items[i], "message")))
			continue;
		view_cell(text, gpuq_get(reasons->items[i], "message"));
		line_print("", text);
	}
}
