#include "libgpuq/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/err.h"

static int failed(struct gpuq_buf *b, int code)
{
	b->failed = true;
	return code;
}

int gpuq_buf_reserve(struct gpuq_buf *b, size_t n)
{
	size_t want, room;
	char *p;

	if (__builtin_add_overflow(b->len, n, &want) || want > SIZE_MAX / 2)
		return failed(b, GPUQ_ETOOBIG);
	if (b->max_bytes && want > b->max_bytes)
		return failed(b, GPUQ_ETOOBIG);
	if (want <= b->room && b->data)
		return 0;
	room = b->room ? b->room : 64;
	while (room < want)
		room += room / 2 + 64;
	p = realloc(b->data, room + 1); /* one more for gpuq_buf_str()'s NUL */
	if (!p)
		return failed(b, GPUQ_ENOMEM);
	b->data = p;
	b->room = room;
	return 0;
}

/* Room is there, as it nearly always is. */
static bool has_room(const struct gpuq_buf *b, size_t n)
{
	return b->data && n <= b->room - b->len && !b->max_bytes;
}

int gpuq_buf_add(struct gpuq_buf *b, const void *bytes, size_t n)
{
	int rc;

	if (n == 0)
		return 0;
	if (has_room(b, n)) {
		memcpy(b->data + b->len, bytes, n);
		b->len += n;
		return 0;
	}
	rc = gpuq_buf_reserve(b, n);
	if (rc < 0)
		return rc;
	memcpy(b->data + b->len, bytes, n);
	b->len += n;
	return 0;
}

int gpuq_buf_adds(struct gpuq_buf *b, const char *s)
{
	return gpuq_buf_add(b, s, strlen(s));
}

int gpuq_buf_addc(struct gpuq_buf *b, char c)
{
	if (!has_room(b, 1))
		return gpuq_buf_add(b, &c, 1);
	b->data[b->len++] = c;
	return 0;
}

int gpuq_buf_addi(struct gpuq_buf *b, int64_t i)
{
	char digits[24], *p = digits + sizeof(digits);
	uint64_t u = i < 0 ? -(uint64_t)i : (uint64_t)i;

	do
		*--p = (char)('0' + u % 10);
	while (u /= 10);
	if (i < 0)
		*--p = '-';
	return gpuq_buf_add(b, p, (size_t)(digits + sizeof(digits) - p));
}

int gpuq_buf_quote(struct gpuq_buf *b, const char *s)
{
	gpuq_buf_addc(b, '\'');
	for (; *s; s++)
		if (*s == '\'')
			gpuq_buf_adds(b, "'\\''");
		else
			gpuq_buf_addc(b, *s);
	return gpuq_buf_addc(b, '\'');
}

int gpuq_buf_printf(struct gpuq_buf *b, const char *fmt, ...)
{
	const size_t most = b->max_bytes && b->max_bytes < b->room ? b->max_bytes : b->room;
	const size_t room = b->data ? most - b->len : 0;
	va_list ap;
	int n, rc;

	/* Nearly always it fits at once: room + 1 bytes are there. */
	va_start(ap, fmt);
	n = vsnprintf(room ? b->data + b->len : NULL, room ? room + 1 : 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return failed(b, GPUQ_EINVAL);
	if (!room || (size_t)n > room) {
		rc = gpuq_buf_reserve(b, (size_t)n);
		if (rc < 0)
			return rc;
		va_start(ap, fmt);
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
		va_end(ap);
	}
	b->len += (size_t)n;
	return 0;
}

void gpuq_buf_drop(struct gpuq_buf *b, size_t n)
{
	if (n > b->len)
		n = b->len;
	if (n)
		memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
}

void gpuq_buf_clear(struct gpuq_buf *b)
{
	b->len = 0;
	b->failed = false;
}

const char *gpuq_buf_str(struct gpuq_buf *b)
{
	if (!b->data && gpuq_buf_reserve(b, 0) < 0)
		return "";
	b->data[b->len] = '\0';
	return b->data;
}

void gpuq_buf_done(struct gpuq_buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->room = 0;
	b->failed = false;
}
