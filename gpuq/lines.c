#include "gpuq/lines.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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

/* Return how many bytes of the text, which is clean, go on a line of so many columns: up to a blank;
 * all of a word that is longer than a line. */
static size_t fits(const char *text, size_t room)
{
	struct gpuq_buf start = GPUQ_BUF_INIT;
	size_t last = 0, n;

	for (n = strspn(text, " ");; n += strspn(text + n, " ")) {
		n += strcspn(text + n, " ");
		gpuq_buf_clear(&start);
		gpuq_buf_add(&start, text, n);
		if (last && term_columns(gpuq_buf_str(&start)) > room)
			break;
		last = n;
		if (!text[n])
			break;
	}
	gpuq_buf_done(&start);
	return last;
}

static void print(const char *label, struct gpuq_buf *text, int columns)
{
	struct gpuq_buf clean = GPUQ_BUF_INIT;
	FILE *f = to ? to : stdout;
	const int width = term_width(f);
	/* Only a terminal has an edge; programs read whole lines. */
	const size_t room = width > columns + 20 ? (size_t)(width - columns - 1) : SIZE_MAX;

	if (text->len > 0) {
		const char *s;

		term_clean_str(&clean, gpuq_buf_str(text));
		for (s = gpuq_buf_str(&clean); *s; label = "") {
			const size_t n = fits(s, room);

			fprintf(f, "%-*s %.*s\n", columns, label, (int)n, s);
			s += n;
			s += strspn(s, " ");
		}
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
