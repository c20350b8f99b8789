#include "gpuq/lines.h"

#include <inttypes.h>
#include <stdio.h>

#include "gpuq/term.h"
#include "gpuq/view.h"
#include "libgpuq/units.h"

#define LABEL_COLUMNS 14
#define WIDE_COLUMNS 26

static FILE *to;

void line_to(FILE *f)
{
	to = f;
}

static void print(const char *label, struct gpuq_buf *text, int columns)
{
	struct gpuq_buf clean = GPUQ_BUF_INIT;

	if (text->len > 0) {
		term_clean_str(&clean, gpuq_buf_str(text));
		fprintf(to ? to : stdout, "%-*s %s\n", columns, label, gpuq_buf_str(&clean));
	}
	gpuq_buf_clear(text);
	gpuq_buf_done(&clean);
}

void line_print(const char *label, struct gpuq_buf *text)
{
	print(label, text, LABEL_COLUMNS);
}

void line_wide(const char *label, struct gpuq_buf *text)
{
	print(label, text, WIDE_COLUMNS);
}

bool line_says(const struct gpuq_val *v)
{
	return v && v->type != GPUQ_NULL &&
	       !((v->type == GPUQ_LIST || v->type == GPUQ_MAP) && !v->n);
}

void line_value(const char *label, const struct gpuq_val *map, const char *key,
		struct gpuq_buf *text)
{
	if (!line_says(gpuq_get(map, key)))
		return;
	view_cell(text, gpuq_get(map, key));
	line_print(label, text);
}

void line_clock(struct gpuq_buf *text, int64_t us)
{
	char clock[48];

	gpuq_duration_clock(us, clock, sizeof(clock));
	gpuq_buf_adds(text, clock);
}

const char *line_s(int64_t n)
{
	return n == 1 ? "" : "s";
}

void line_gpus(struct gpuq_buf *text, const struct gpuq_val *gpus)
{
	view_cell(text, gpus);
	gpuq_buf_printf(text, " GPU%s", view_number(gpus, 0) == 1 ? "" : "s");
}

void line_pods(struct gpuq_buf *text, const struct gpuq_val *gpus, int64_t pods)
{
	line_gpus(text, gpus);
	gpuq_buf_printf(text, " in %" PRId64 " pod%s", pods, line_s(pods));
}

void line_bytes(struct gpuq_buf *text, int64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double n = (double)bytes;
	size_t i = 0;

	for (; n >= 1024 && i + 1 < sizeof(units) / sizeof(units[0]); i++)
		n /= 1024;
	gpuq_buf_printf(text, n < 10 && i ? "%.1f %s" : "%.0f %s", n, units[i]);
}

const char *line_label(const char *label, size_t n)
{
	return n ? "" : label;
}
