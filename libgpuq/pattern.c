#include "libgpuq/pattern.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WIDTH_MAX 10

/* The text of one mark in out (room bytes); false when there is no such mark. */
static bool mark(char letter, int width, const struct pattern_vars *v, char *out, size_t room)
{
	const int64_t element = v->array_index < 0 ? 0 : v->array_index;
	int n;

	switch (letter) {
	case 'j':
	case 'J':
		n = v->array_index >= 0 && !v->number
			    ? snprintf(out, room, "%0*" PRIu32 "_%" PRId64, width, v->job, element)
			    : snprintf(out, room, "%0*" PRIu32, width,
				       v->number ? v->number : v->job);
		if (letter == 'J')
			snprintf(out + n, room - (size_t)n, ".batch");
		return true;
	case 'A':
		snprintf(out, room, "%0*" PRIu32, width, v->job);
		return true;
	case 'a':
		snprintf(out, room, "%0*" PRId64, width, element);
		return true;
	case 'b':
		snprintf(out, room, "%0*" PRId64, width, element % 10);
		return true;
	case 'n':
	case 't':
		snprintf(out, room, "%0*" PRIu32, width, v->index);
		return true;
	case 'x':
		snprintf(out, room, "%s", v->name);
		return true;
	case 'u':
		snprintf(out, room, "%s", v->user);
		return true;
	case 'N':
		snprintf(out, room, "%s", v->node);
		return true;
	case 's':
		snprintf(out, room, "batch");
		return true;
	case '%':
		snprintf(out, room, "%%");
		return true;
	default:
		return false;
	}
}

void pattern_expand(const char *pattern, const struct pattern_vars *v, struct gpuq_buf *out)
{
	const bool literal = strchr(pattern, '\\') != NULL;

	for (const char *p = pattern; *p; p++) {
		char text[256];
		const char *q = p + 1;
		int width = 0;

		if (literal || *p != '%') {
			if (*p != '\\')
				gpuq_buf_addc(out, *p);
			continue;
		}
		while (*q >= '0' && *q <= '9' && q < p + 3)
			width = width * 10 + (*q++ - '0');
		if (width > WIDTH_MAX)
			width = WIDTH_MAX;
		if (mark(*q, width, v, text, sizeof(text))) {
			gpuq_buf_adds(out, text);
			p = q;
		} else {
			gpuq_buf_addc(out, *p);
		}
	}
}
