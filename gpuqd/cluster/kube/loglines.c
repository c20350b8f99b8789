#include "gpuqd/cluster/kube/loglines.h"

#include <string.h>

void loglines_init(struct loglines *l, bool keep_times)
{
	memset(l, 0, sizeof(*l));
	l->keep_times = keep_times;
}

/* Times of one log have one zone and one length before the fraction, whose zeros at
 * the end may be left out. */
static int compare(const char *a, const char *b)
{
	int c = strncmp(a, b, 19);

	if (c != 0 || strlen(a) < 19 || strlen(b) < 19)
		return c;
	a += a[19] == '.' ? 20 : 19;
	b += b[19] == '.' ? 20 : 19;
	for (int i = 0; i < 9; i++) {
		char x = *a >= '0' && *a <= '9' ? *a++ : '0';
		char y = *b >= '0' && *b <= '9' ? *b++ : '0';

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

/* The time of a line is complete: is the line new? */
static void begin_line(struct loglines *l, struct gpuq_buf *out)
{
	const int c = *l->last ? compare(l->time, l->last) : 1;

	l->state = LOGLINES_SKIP;
	if (c > 0) {
		memcpy(l->last, l->time, sizeof(l->last));
		l->n_last = 1;
		l->catching_up = false;
	} else if (l->catching_up) {
		if (c < 0 || ++l->repeats <= l->n_last)
			return;
		l->n_last = l->repeats;
		l->catching_up = false;
	} else if (c == 0) {
		l->n_last++;
	}
	l->state = LOGLINES_TEXT;
	if (l->keep_times) {
		gpuq_buf_add(out, l->time, l->n_time);
		gpuq_buf_addc(out, ' ');
	}
}

/* No time in front (a message of the kubelet's own): it is handed on as it is. */
static void no_time(struct loglines *l, struct gpuq_buf *out)
{
	gpuq_buf_add(out, l->time, l->n_time);
	l->state = LOGLINES_TEXT;
}

static bool time_char(char c)
{
	return (c >= '0' && c <= '9') || (c && strchr("-:.TZ+", c));
}

void loglines_feed(struct loglines *l, const char *bytes, size_t n, struct gpuq_buf *out)
{
	const char *end = bytes + n;

	while (bytes < end) {
		const char *nl;
		size_t k;

		if (l->state == LOGLINES_TIME) {
			char c = *bytes;

			if (c == ' ' && l->n_time >= 20) {
				l->time[l->n_time] = '\0';
				bytes++;
				begin_line(l, out);
			} else if (time_char(c) && l->n_time < LOGLINES_TIME_MAX) {
				l->time[l->n_time++] = c;
				bytes++;
			} else {
				no_time(l, out);
			}
			continue;
		}
		nl = memchr(bytes, '\n', (size_t)(end - bytes));
		k = (size_t)((nl ? nl + 1 : end) - bytes);
		if (l->state == LOGLINES_TEXT)
			gpuq_buf_add(out, bytes, k);
		bytes += k;
		if (nl) {
			l->state = LOGLINES_TIME;
			l->n_time = 0;
		}
	}
}

void loglines_resume(struct loglines *l)
{
	/* A line that was cut short will come again; its beginning has been handed on,
	 * and a line in two pieces is better than one that is lost. */
	if (l->state == LOGLINES_TEXT && l->n_last > 0)
		l->n_last--;
	l->state = LOGLINES_TIME;
	l->n_time = 0;
	l->repeats = 0;
	l->catching_up = *l->last != '\0';
}
