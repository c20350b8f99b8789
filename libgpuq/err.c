#include "libgpuq/err.h"

#include <stdio.h>
#include <string.h>

#include "libgpuq/utf8.h"

static const struct row {
	int code;
	bool retry;
	const char *wire, *text;
} rows[] = {
#define ERR(name, number, retry, wire, text) { -(number), retry, wire, text },
#include "libgpuq/err.def"
#undef ERR
};

static const struct row *find(int code)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].code == code)
			return &rows[i];
	return NULL;
}

/* Texts quote what came from outside and are cut at the buffer's end: keep one line
 * of valid UTF-8 whatever happened, so that it can travel and be printed. */
static void tidy(char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n;) {
		uint32_t c = 0;
		size_t len = gpuq_utf8_next(s + i, n - i, &c);

		if (len == 0 && i + 4 > n) {
			s[i] = '\0'; /* cut inside a character */
			return;
		}
		if (len == 0)
			len = 1;
		if (c < 0x20 || (c >= 0x7f && c < 0xa0))
			memset(s + i, '?', len);
		i += len;
	}
}

int gpuq_failv(struct gpuq_err *err, int code, const char *fmt, va_list ap)
{
	if (err) {
		err->code = code;
		err->retry_ms = 0;
		err->field[0] = '\0';
		vsnprintf(err->text, sizeof(err->text), fmt, ap);
		tidy(err->text);
	}
	return code;
}

int gpuq_fail(struct gpuq_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	gpuq_failv(err, code, fmt, ap);
	va_end(ap);
	return code;
}

int gpuq_no_memory(struct gpuq_err *err)
{
	return gpuq_fail(err, GPUQ_ENOMEM, "out of memory");
}

int gpuq_fail_field(struct gpuq_err *err, int code, const char *field, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	gpuq_failv(err, code, fmt, ap);
	va_end(ap);
	if (err) {
		snprintf(err->field, sizeof(err->field), "%s", field);
		tidy(err->field);
	}
	return code;
}

int gpuq_err_prefix(struct gpuq_err *err, const char *fmt, ...)
{
	char old[sizeof(err->text)];
	size_t n;
	va_list ap;

	if (!err)
		return GPUQ_EINTERNAL;
	memcpy(old, err->text, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	n = strlen(err->text);
	snprintf(err->text + n, sizeof(err->text) - n, ": %s", old);
	tidy(err->text);
	return err->code;
}

const char *gpuq_err_name(int code)
{
	const struct row *r = find(code);

	return r ? r->wire : "unknown";
}

const char *gpuq_err_text(int code)
{
	const struct row *r = find(code);

	return r ? r->text : "unknown error";
}

bool gpuq_err_retryable(int code)
{
	const struct row *r = find(code);

	return r && r->retry;
}

int gpuq_err_number(int code)
{
	return -code;
}

int gpuq_err_from_number(int number)
{
	return number >= 0 && find(-number) ? -number : number == 0 ? 0 : GPUQ_EINTERNAL;
}
