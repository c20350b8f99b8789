#include "libgpuq/utf8.h"

#include <string.h>

/* By the lead byte: length, the bits it carries, and the least character that may
 * be written in this many bytes (a smaller one would be overlong). */
static const struct lead {
	unsigned char mask, want, bits;
	size_t len;
	uint32_t least;
} leads[] = {
	{ 0x80, 0x00, 0x7f, 1, 0 },
	{ 0xe0, 0xc0, 0x1f, 2, 0x80 },
	{ 0xf0, 0xe0, 0x0f, 3, 0x800 },
	{ 0xf8, 0xf0, 0x07, 4, 0x10000 },
};

size_t gpuq_utf8_next(const char *s, size_t n, uint32_t *code)
{
	const unsigned char *u = (const unsigned char *)s;

	for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++) {
		const struct lead *l = &leads[i];
		uint32_t c;

		if ((u[0] & l->mask) != l->want)
			continue;
		if (l->len > n)
			return 0;
		c = u[0] & l->bits;
		for (size_t k = 1; k < l->len; k++) {
			if ((u[k] & 0xc0) != 0x80)
				return 0;
			c = c << 6 | (u[k] & 0x3f);
		}
		if (c < l->least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
			return 0;
		if (code)
			*code = c;
		return l->len;
	}
	return 0;
}

size_t gpuq_utf8_check(const char *s, size_t n)
{
	size_t at = 0;
	uint64_t eight;

	/* Plain ASCII, which is nearly all there is. */
	for (; at + sizeof(eight) <= n; at += sizeof(eight)) {
		memcpy(&eight, s + at, sizeof(eight));
		if (eight & UINT64_C(0x8080808080808080))
			break;
	}
	while (at < n) {
		size_t len = (unsigned char)s[at] < 0x80 ? 1 : gpuq_utf8_next(s + at, n - at, NULL);

		if (len == 0)
			break;
		at += len;
	}
	return at;
}

bool gpuq_utf8_acts(uint32_t code)
{
	static const struct {
		uint32_t from, to;
	} ranges[] = {
		{ 0x00, 0x1f },     { 0x7f, 0x9f }, /* C0, DEL, C1 */
		{ 0xad, 0xad },     { 0x61c, 0x61c }, /* soft hyphen, Arabic letter mark */
		{ 0x180e, 0x180e }, { 0x200b, 0x200f }, /* zero width, marks */
		{ 0x2028, 0x202e }, { 0x2060, 0x206f }, /* separators, bidi, joiners */
		{ 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff }, /* variation selectors, BOM */
		{ 0xfff9, 0xfffb }, { 0xe0000, 0xe0fff }, /* annotations, tags */
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code >= ranges[i].from && code <= ranges[i].to)
			return true;
	return false;
}
