#ifndef _XOPEN_SOURCE /* what curses requests is enough */
#define _XOPEN_SOURCE 700 /* wcwidth */
#endif
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif
#include "gpuq/term.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "libgpuq/utf8.h"

#define MARKS_MAX 3 /* on one character */
#define RUN_MAX 4096 /* plain characters at once */

/* Bytes of the character at s, its number in *cp; 0 for what is no UTF-8, -1 when n
 * ends inside what may become a character. */
static int decode(const char *s, size_t n, uint32_t *cp)
{
	const unsigned char first = (unsigned char)s[0];
	const size_t want = first < 0xc2   ? 1
			    : first < 0xe0 ? 2
			    : first < 0xf0 ? 3
			    : first < 0xf5 ? 4
					   : 1;
	const size_t len = gpuq_utf8_next(s, n, cp);

	if (len > 0)
		return (int)len;
	for (size_t i = 1; i < n && i < want; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n < want ? -1 : 0;
}

static void escape_byte(struct gpuq_buf *out, unsigned char b)
{
	gpuq_buf_printf(out, "\\x%02x", b);
}

static void put(struct gpuq_buf *out, const char *s, int len, uint32_t cp, bool utf8)
{
	if (cp < 0x80 && gpuq_utf8_acts(cp))
		escape_byte(out, (unsigned char)cp);
	else if (gpuq_utf8_acts(cp) || (cp >= 0x80 && !utf8))
		gpuq_buf_printf(out, "\\u{%x}", (unsigned)cp);
	else
		gpuq_buf_add(out, s, (size_t)len);
}

/* Marks sit on the character before them: a few are writing, a pile of them is a smear
 * over other lines, and one without a character would sit on the neighbour. */
static bool is_mark(uint32_t c)
{
	static const struct {
		uint32_t from, to;
	} ranges[] = {
		{ 0x300, 0x36f },   { 0x483, 0x489 },   { 0x591, 0x5bd },   { 0x610, 0x61a },
		{ 0x64b, 0x65f },   { 0x6d6, 0x6dc },   { 0xe31, 0xe31 },   { 0xe34, 0xe3a },
		{ 0xe47, 0xe4e },   { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff }, { 0x20d0, 0x20ff },
		{ 0xfe20, 0xfe2f },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i].from && c <= ranges[i].to)
			return true;
	return false;
}

void term_clean(struct gpuq_buf *out, const char *text, size_t n, bool utf8)
{
	unsigned marks = MARKS_MAX; /* the text's first character is none */
	uint32_t cp = 0;
	int len;

	for (size_t i = 0; i<n; i += len> 0 ? (size_t)len : 1) {
		for (len = 0; i + (size_t)len < n && text[i + (size_t)len] >= ' ' &&
			      text[i + (size_t)len] < 0x7f && len < RUN_MAX;)
			len++;
		if (len > 0) { /* nearly all there is */
			gpuq_buf_add(out, text + i, (size_t)len);
			marks = 0;
			continue;
		}
		len = decode(text + i, n - i, &cp);
		if (len <= 0) {
			escape_byte(out, (unsigned char)text[i]);
			marks = MARKS_MAX;
			continue;
		}
		if (!is_mark(cp)) {
			marks = gpuq_utf8_acts(cp) ? MARKS_MAX : 0;
		} else if (utf8 && marks++ >= MARKS_MAX) {
			gpuq_buf_printf(out, "\\u{%x}", (unsigned)cp);
			marks = MARKS_MAX;
			continue;
		}
		put(out, text + i, len, cp, utf8);
	}
}

bool term_utf8(void)
{
	static enum { UNKNOWN, OTHER, UTF8 } known;

	/* Reading the locale costs a good part of a short command, and most need it not. Only
	 * which bytes are characters: numbers and dates are the same everywhere. */
	if (known == UNKNOWN) {
		setlocale(LC_CTYPE, "");
		known = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? UTF8 : OTHER;
	}
	return known == UTF8;
}

bool term_is_plain(const char *text, size_t n)
{
	bool plain = true;

	for (size_t i = 0; i < n; i++)
		plain &= text[i] >= ' ' && text[i] <= '~';
	return plain;
}

/* Columns of a character that has passed term_clean. */
static size_t columns(uint32_t cp)
{
	int n = 1;

	if (cp >= 0x80) {
		(void)term_utf8(); /* wcwidth needs the locale */
		n = is_mark(cp) ? 0 : wcwidth((wchar_t)cp);
	}
	return n < 0 ? 1 : (size_t)n;
}

size_t term_columns(const char *text)
{
	const size_t n = strlen(text);
	size_t used = 0;
	uint32_t cp = 0;

	for (size_t at = 0; at < n;) {
		const size_t len = gpuq_utf8_next(text + at, n - at, &cp);

		used += len ? columns(cp) : 1;
		at += len ? len : 1;
	}
	return used;
}

static void add_blanks(struct gpuq_buf *out, size_t n)
{
	static const char blanks[] = "                                ";

	for (size_t k; n; n -= k) {
		k = n < sizeof(blanks) - 1 ? n : sizeof(blanks) - 1;
		gpuq_buf_add(out, blanks, k);
	}
}

void term_fit(struct gpuq_buf *out, const char *text, size_t width, bool right)
{
	const size_t n = strlen(text);
	size_t used = 0, end = 0;
	uint32_t cp = 0;

	if (term_is_plain(text, n))
		used = end = n < width ? n : width;
	else
		while (end < n) {
			const size_t len = gpuq_utf8_next(text + end, n - end, &cp);
			const size_t wide = len ? columns(cp) : 1;

			if (used + wide > width)
				break;
			used += wide;
			end += len ? len : 1;
		}
	if (right)
		add_blanks(out, width - used);
	gpuq_buf_add(out, text, end);
	if (!right)
		add_blanks(out, width - used);
}

void term_clean_str(struct gpuq_buf *out, const char *text)
{
	const size_t n = strlen(text);

	if (term_is_plain(text, n))
		gpuq_buf_add(out, text, n);
	else
		term_clean(out, text, n, term_utf8());
}

/* Bytes of a harmless escape sequence at s; 0 = it is none, -1 = it may become one. */
static int harmless(const char *s, size_t n)
{
	size_t i = 2;

	if (n < 2)
		return -1;
	if (s[1] != '[')
		return 0;
	while (i < n && i < sizeof(((struct term_log *)0)->kept) - 1 &&
	       ((s[i] >= '0' && s[i] <= '9') || s[i] == ';'))
		i++;
	if (i == n)
		return i < sizeof(((struct term_log *)0)->kept) ? -1 : 0;
	return s[i] == 'm' || s[i] == 'K' ? (int)i + 1 : 0;
}

static void log_bytes(struct term_log *l, struct gpuq_buf *out, const char *s, size_t n, bool last)
{
	const bool utf8 = term_utf8();
	uint32_t cp = 0;
	int len;

	for (size_t i = 0; i < n; i += (size_t)len) {
		if (s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
			gpuq_buf_addc(out, s[i]);
			len = 1;
			continue;
		}
		len = s[i] == '\033' ? harmless(s + i, n - i) : decode(s + i, n - i, &cp);
		if (len < 0 && !last && n - i < sizeof(l->kept)) {
			memcpy(l->kept, s + i, n - i);
			l->n_kept = n - i;
			return;
		}
		if (len <= 0) {
			escape_byte(out, (unsigned char)s[i]);
			len = 1;
		} else if (s[i] == '\033') {
			gpuq_buf_add(out, s + i, (size_t)len);
		} else {
			put(out, s + i, len, cp, utf8);
		}
	}
}

void term_log_add(struct term_log *l, struct gpuq_buf *out, const char *bytes, size_t n)
{
	struct gpuq_buf joined = GPUQ_BUF_INIT;

	if (l->n_kept == 0) {
		log_bytes(l, out, bytes, n, false);
		return;
	}
	gpuq_buf_add(&joined, l->kept, l->n_kept);
	gpuq_buf_add(&joined, bytes, n);
	l->n_kept = 0;
	if (joined.failed)
		out->failed = true;
	else
		log_bytes(l, out, joined.data, joined.len, false);
	gpuq_buf_done(&joined);
}

void term_log_end(struct term_log *l, struct gpuq_buf *out)
{
	const size_t n = l->n_kept;
	char kept[sizeof(l->kept)];

	memcpy(kept, l->kept, n);
	l->n_kept = 0;
	log_bytes(l, out, kept, n, true);
}

bool term_colours(FILE *f)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (no && *no)
		return false;
	if (!term || !*term || strcmp(term, "dumb") == 0)
		return false;
	return isatty(fileno(f)) == 1;
}

int term_width(FILE *f)
{
	struct winsize w;
	const char *text = getenv("COLUMNS");
	int n = text ? (int)strtol(text, NULL, 10) : 0;

	if (isatty(fileno(f)) != 1)
		return 0;
	if (n > 0)
		return n;
	if (ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_col > 0)
		return w.ws_col;
	return 80;
}
