#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/utf8.h"
#include "libgpuq/val.h"

/* Characters that are written as \uXXXX although JSON would take them as they are:
 * terminals act on DEL and the C1 controls, marks without width and those that turn the
 * direction make a text look like another, JavaScript ends lines at U+2028/9, and
 * YAML (which reads our strings too) has no U+FEFF, U+FFFE and U+FFFF. */
static bool hidden(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0xad || c == 0x61c || c == 0x180e ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
	       c == 0xfffe || c == 0xffff;
}

void gpuq_json_str(struct gpuq_buf *b, const char *s, size_t n)
{
	static const char shorts[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";

	gpuq_buf_addc(b, '"');
	for (size_t i = 0; i < n;) {
		size_t run = i;
		uint32_t c = 0;

		/* Nearly all there is: what needs nothing. */
		while (run < n && s[run] >= ' ' && s[run] < 0x7f && s[run] != '"' && s[run] != '\\')
			run++;
		if (run > i) {
			gpuq_buf_add(b, s + i, run - i);
			i = run;
			continue;
		}

		size_t len = gpuq_utf8_next(s + i, n - i, &c);
		const char *p = c && c < 0x80 ? strchr(shorts, (int)c) : NULL;

		if (len == 0) {
			gpuq_buf_adds(b, "\xef\xbf\xbd");
			len = 1;
		} else if (p) {
			gpuq_buf_addc(b, '\\');
			gpuq_buf_addc(b, letters[p - shorts]);
		} else if (hidden(c)) {
			gpuq_buf_printf(b, "\\u%04x", (unsigned)c);
		} else {
			gpuq_buf_add(b, s + i, len);
		}
		i += len;
	}
	gpuq_buf_addc(b, '"');
}

/* The shortest form that reads back as the same double, marked as a real. */
static void write_real(struct gpuq_buf *b, double d)
{
	char text[40];
	bool marked = false;

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, d);
		if (strtod(text, NULL) == d)
			break;
	}
	for (char *p = text; *p; p++) {
		if (*p == 'e') {
			marked = true;
		} else if (!strchr("+-0123456789", *p)) {
			*p = '.'; /* the locale's decimal point may be another */
			marked = true;
		}
	}
	gpuq_buf_adds(b, text);
	if (!marked)
		gpuq_buf_adds(b, ".0");
}

static void write_base64(struct gpuq_buf *b, const unsigned char *p, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	gpuq_buf_addc(b, '"');
	for (size_t i = 0; i < n; i += 3) {
		uint32_t w = (uint32_t)p[i] << 16;

		if (i + 1 < n)
			w |= (uint32_t)p[i + 1] << 8;
		if (i + 2 < n)
			w |= p[i + 2];
		gpuq_buf_addc(b, digits[w >> 18]);
		gpuq_buf_addc(b, digits[w >> 12 & 63]);
		gpuq_buf_addc(b, i + 1 < n ? digits[w >> 6 & 63] : '=');
		gpuq_buf_addc(b, i + 2 < n ? digits[w & 63] : '=');
	}
	gpuq_buf_addc(b, '"');
}

static void newline(struct gpuq_buf *b, int indent, int level)
{
	if (indent <= 0)
		return;
	gpuq_buf_addc(b, '\n');
	for (int i = 0; i < indent * level; i++)
		gpuq_buf_addc(b, ' ');
}

static void write_val(struct gpuq_buf *b, const struct gpuq_val *v, int indent, int level)
{
	switch (v ? v->type : GPUQ_NULL) {
	case GPUQ_NULL:
		gpuq_buf_adds(b, "null");
		break;
	case GPUQ_BOOL:
		gpuq_buf_adds(b, v->b ? "true" : "false");
		break;
	case GPUQ_INT:
		gpuq_buf_printf(b, "%lld", (long long)v->i);
		break;
	case GPUQ_REAL:
		write_real(b, v->d);
		break;
	case GPUQ_STR:
		gpuq_json_str(b, v->s, v->n);
		break;
	case GPUQ_BIN:
		write_base64(b, (const unsigned char *)v->s, v->n);
		break;
	case GPUQ_LIST:
		gpuq_buf_addc(b, '[');
		for (uint32_t i = 0; i < v->n; i++) {
			if (i)
				gpuq_buf_addc(b, ',');
			newline(b, indent, level + 1);
			write_val(b, v->items[i], indent, level + 1);
		}
		if (v->n)
			newline(b, indent, level);
		gpuq_buf_addc(b, ']');
		break;
	case GPUQ_MAP:
		gpuq_buf_addc(b, '{');
		for (uint32_t i = 0; i < v->n; i++) {
			if (i)
				gpuq_buf_addc(b, ',');
			newline(b, indent, level + 1);
			gpuq_json_str(b, v->pairs[i].key, strlen(v->pairs[i].key));
			gpuq_buf_adds(b, indent > 0 ? ": " : ":");
			write_val(b, v->pairs[i].val, indent, level + 1);
		}
		if (v->n)
			newline(b, indent, level);
		gpuq_buf_addc(b, '}');
		break;
	}
}

void gpuq_json_write(struct gpuq_buf *b, const struct gpuq_val *v, int indent)
{
	write_val(b, v, indent, 0);
}
