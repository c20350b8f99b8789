#include "gpuqd/util/varint.h"

#include <string.h>

/* Append a head byte and a number, the most significant byte first. */
static void put_be(struct gpuq_buf *b, unsigned char head, uint64_t x, int bytes)
{
	unsigned char out[9] = { head };

	for (int i = 0; i < bytes; i++)
		out[1 + i] = (unsigned char)(x >> (8 * (bytes - 1 - i)));
	gpuq_buf_add(b, out, 1 + (size_t)bytes);
}

void varint_array(struct gpuq_buf *b, uint32_t n)
{
	if (n < 16)
		gpuq_buf_addc(b, (char)(0x90 | n));
	else if (n <= 0xffff)
		put_be(b, 0xdc, n, 2);
	else
		put_be(b, 0xdd, n, 4);
}

void varint_int(struct gpuq_buf *b, int64_t i)
{
	if (i >= 0 && i < 128)
		gpuq_buf_addc(b, (char)i);
	else if (i < 0 && i >= -32)
		gpuq_buf_addc(b, (char)i);
	else if (i >= 0 && i <= 0xffff)
		put_be(b, 0xcd, (uint64_t)i, 2);
	else if (i >= 0 && i <= 0xffffffff)
		put_be(b, 0xce, (uint64_t)i, 4);
	else
		put_be(b, 0xd3, (uint64_t)i, 8);
}

void varint_str(struct gpuq_buf *b, const char *s)
{
	size_t n;

	if (!s) {
		gpuq_buf_addc(b, (char)0xc0);
		return;
	}
	n = strlen(s);
	if (n < 32)
		gpuq_buf_addc(b, (char)(0xa0 | n));
	else if (n < 256)
		put_be(b, 0xd9, n, 1);
	else
		put_be(b, 0xdb, n, 4);
	gpuq_buf_add(b, s, n);
}

void varint_bin(struct gpuq_buf *b, const void *p, size_t n)
{
	if (n < 256)
		put_be(b, 0xc4, n, 1);
	else
		put_be(b, 0xc6, n, 4);
	gpuq_buf_add(b, p, n);
}

void varint_bool(struct gpuq_buf *b, bool v)
{
	gpuq_buf_addc(b, (char)(v ? 0xc3 : 0xc2));
}

/* Fail the record: every further read yields nothing, so callers need to check only once, at the
 * end. */
static uint64_t fail(struct rec *r)
{
	r->bad = true;
	r->p = r->end;
	return 0;
}

/* Read a number of this many bytes. */
static uint64_t get_be(struct rec *r, int bytes)
{
	uint64_t x = 0;

	if (r->end - r->p < bytes)
		return fail(r);
	if (bytes == 8) { /* times: the rest of most records */
		memcpy(&x, r->p, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		x = __builtin_bswap64(x);
#endif
		r->p += 8;
		return x;
	}
	for (int i = 0; i < bytes; i++)
		x = x << 8 | *r->p++;
	return x;
}

uint32_t varint_get_long_array(struct rec *r)
{
	unsigned char h = (unsigned char)get_be(r, 1);
	uint64_t n;

	if (r->bad)
		return 0;
	if ((h & 0xf0) == 0x90)
		n = h & 0x0f;
	else if (h == 0xdc)
		n = get_be(r, 2);
	else if (h == 0xdd)
		n = get_be(r, 4);
	else
		n = fail(r);
	if (n > (uint64_t)(r->end - r->p)) /* each member takes a byte at least */
		n = fail(r);
	return (uint32_t)n;
}

/* All forms of an integer are read, though only some are written; null reads as 0. */
int64_t varint_get_long_int(struct rec *r)
{
	unsigned char h = (unsigned char)get_be(r, 1);

	if (r->bad || h == 0xc0)
		return 0;
	if (h < 0x80)
		return h;
	if (h >= 0xe0)
		return (int8_t)h;
	switch (h) {
	case 0xcc:
		return (int64_t)get_be(r, 1);
	case 0xcd:
		return (int64_t)get_be(r, 2);
	case 0xce:
		return (int64_t)get_be(r, 4);
	case 0xcf:
	case 0xd3:
		return (int64_t)get_be(r, 8);
	case 0xd0:
		return (int8_t)get_be(r, 1);
	case 0xd1:
		return (int16_t)get_be(r, 2);
	case 0xd2:
		return (int32_t)get_be(r, 4);
	default:
		return (int64_t)fail(r);
	}
}

bool varint_get_bool(struct rec *r)
{
	unsigned char h = (unsigned char)get_be(r, 1);

	if (h != 0xc2 && h != 0xc3 && h != 0xc0)
		fail(r);
	return h == 0xc3;
}

const char *varint_get_long_str(struct rec *r, size_t *n)
{
	unsigned char h = (unsigned char)get_be(r, 1);
	const char *s;
	uint64_t len;

	*n = 0;
	if (r->bad || h == 0xc0)
		return NULL;
	if ((h & 0xe0) == 0xa0)
		len = h & 0x1f;
	else if (h == 0xd9 || h == 0xc4)
		len = get_be(r, 1);
	else if (h == 0xda || h == 0xc5)
		len = get_be(r, 2);
	else if (h == 0xdb || h == 0xc6)
		len = get_be(r, 4);
	else
		len = fail(r);
	if (r->bad || len > (uint64_t)(r->end - r->p)) {
		fail(r);
		return NULL;
	}
	s = (const char *)r->p;
	r->p += len;
	*n = (size_t)len;
	return s;
}

/* Bytes of one value that follow its head byte, of a kind that this gpuqd never writes. */
static uint64_t foreign_bytes(struct rec *r, unsigned char h)
{
	switch (h) {
	case 0xca: /* float */
		return 4;
	case 0xcb:
		return 8;
	case 0xd4: /* extensions: a type, and this many bytes */
	case 0xd5:
	case 0xd6:
	case 0xd7:
	case 0xd8:
		return 1 + (UINT64_C(1) << (h - 0xd4));
	case 0xc7:
		return 1 + get_be(r, 1);
	case 0xc8:
		return 1 + get_be(r, 2);
	case 0xc9:
		return 1 + get_be(r, 4);
	default:
		return fail(r);
	}
}

/* Members of a map: twice its pairs. */
static uint64_t get_map(struct rec *r)
{
	const unsigned char h = (unsigned char)get_be(r, 1);
	const uint64_t n = (h & 0xf0) == 0x80 ? h & 0x0f : get_be(r, h == 0xde ? 2 : 4);

	return n > (uint64_t)(r->end - r->p) / 2 ? fail(r) : 2 * n;
}

void varint_skip(struct rec *r)
{
	uint64_t left = 1;
	size_t n;

	while (left > 0 && !r->bad) {
		unsigned char h = r->p < r->end ? *r->p : 0;

		left--;
		if (r->p >= r->end)
			fail(r);
		else if ((h & 0xf0) == 0x90 || h == 0xdc || h == 0xdd)
			/* Members are counted instead of visited by recursion: a hostile record
			 * cannot exhaust the stack. */
			left += rec_get_array(r);
		else if ((h & 0xf0) == 0x80 || h == 0xde || h == 0xdf)
			left += get_map(r);
		else if ((h & 0xe0) == 0xa0 || (h >= 0xc4 && h <= 0xc6) || (h >= 0xd9 && h <= 0xdb))
			rec_get_str(r, &n);
		else if (h == 0xc2 || h == 0xc3)
			r->p++;
		else if (h == 0xca || h == 0xcb || (h >= 0xc7 && h <= 0xc9) ||
			 (h >= 0xd4 && h <= 0xd8)) {
			uint64_t more;

			r->p++;
			more = foreign_bytes(r, h);
			if (more > (uint64_t)(r->end - r->p))
				fail(r);
			else
				r->p += more;
		} else {
			rec_get_int(r);
		}
	}
}

void varint_skip_more(struct rec *r, uint32_t n)
{
	while (n-- > 0 && !r->bad)
		varint_skip(r);
}
