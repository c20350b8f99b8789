#include "gpuqd/flow/logs/kept_lines.h"

#include <string.h>

#include "libgpuq/units.h"

void kept_lines_init(struct kept_lines *l, int64_t since_us, bool timestamps)
{
	*l = (struct kept_lines){ .since_us = since_us,
				  .timestamps = timestamps,
				  .skip = since_us > 0 };
}

/* The bytes that were taken for a time are text. */
static void no_time(struct kept_lines *l, struct gpuq_buf *out)
{
	l->in_text = true;
	if (!l->skip)
		gpuq_buf_add(out, l->time, l->n_time);
}

static void begin_line(struct kept_lines *l, struct gpuq_buf *out)
{
	int64_t at_us = 0;

	l->time[l->n_time] = '\0';
	if (gpuq_instant_parse(l->time, 0, &at_us, NULL) < 0) {
		no_time(l, out);
		if (!l->skip)
			gpuq_buf_addc(out, ' ');
		return;
	}
	l->in_text = true;
	l->skip = at_us < l->since_us;
	if (!l->skip && l->timestamps) {
		gpuq_buf_add(out, l->time, l->n_time);
		gpuq_buf_addc(out, ' ');
	}
}

static bool time_char(char c)
{
	return (c >= '0' && c <= '9') || (c && strchr("-:.TZ+", c));
}

void kept_lines_feed(struct kept_lines *l, const char *bytes, size_t n, struct gpuq_buf *out)
{
	const char *end = bytes + n;

	while (bytes < end) {
		const char *nl;
		size_t k;

		if (!l->in_text) {
			if (*bytes == ' ' && l->n_time >= strlen("2026-12-01T09:00:00Z")) {
				begin_line(l, out);
				bytes++;
			} else if (time_char(*bytes) && l->n_time < KEPT_TIME_BYTES) {
				l->time[l->n_time++] = *bytes++;
			} else {
				no_time(l, out);
			}
			continue;
		}
		nl = memchr(bytes, '\n', (size_t)(end - bytes));
		k = (size_t)((nl ? nl + 1 : end) - bytes);
		if (!l->skip)
			gpuq_buf_add(out, bytes, k);
		bytes += k;
		if (nl) {
			l->in_text = false;
			l->n_time = 0;
		}
	}
}

void kept_lines_end(struct kept_lines *l, struct gpuq_buf *out)
{
	if (!l->in_text)
		no_time(l, out);
}
