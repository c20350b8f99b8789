#include <criterion/criterion.h>
#include <locale.h>
#include <string.h>

#include "gpuq/term.h"

static const char *clean(const char *text, size_t n, bool utf8)
{
	static struct gpuq_buf out;

	gpuq_buf_clear(&out);
	term_clean(&out, text, n, utf8);
	return gpuq_buf_str(&out);
}

static const struct {
	const char *in, *utf8, *ascii;
} cases[] = {
	{ "plain [text] 100%", "plain [text] 100%", "plain [text] 100%" },
	{ "\x1b[31m", "\\x1b[31m", "\\x1b[31m" },
	{ "a\rb\nc\td", "a\\x0db\\x0ac\\x09d", "a\\x0db\\x0ac\\x09d" },
	{ "\x7f", "\\x7f", "\\x7f" },
	{ "\xc2\x9b"
	  "31m",
	  "\\u{9b}31m", "\\u{9b}31m" }, /* C1's own CSI */
	{ "gr\xc3\xb6\xc3\x9f"
	  "e",
	  "gr\xc3\xb6\xc3\x9f"
	  "e",
	  "gr\\u{f6}\\u{df}e" },
	{ "\xe2\x80\xae"
	  "abc",
	  "\\u{202e}abc", "\\u{202e}abc" }, /* right to left override */
	{ "a\xe2\x80\x8b"
	  "b",
	  "a\\u{200b}b", "a\\u{200b}b" }, /* zero width space */
	{ "\xef\xbb\xbf", "\\u{feff}", "\\u{feff}" },
	{ "\xf3\xa0\x81\x81", "\\u{e0041}", "\\u{e0041}" }, /* a tag */
	{ "\xff\xfe", "\\xff\\xfe", "\\xff\\xfe" },
	{ "\xc0\xaf", "\\xc0\\xaf", "\\xc0\\xaf" }, /* overlong */
	{ "\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80" }, /* a surrogate */
	{ "x\xe2\x82", "x\\xe2\\x82", "x\\xe2\\x82" }, /* cut short */
	{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\\u{1f600}" },
	{ "e\xcc\x81t", "e\xcc\x81t", "e\\u{301}t" }, /* an accent of its own */
	{ "\xcc\x81t", "\\u{301}t", "\\u{301}t" }, /* on the neighbour */
	{ "e\xcc\x81\xcc\x82\xcc\x83\xcc\x84\xcc\x85t",
	  "e\xcc\x81\xcc\x82\xcc\x83\\u{304}\\u{305}t",
	  "e\\u{301}\\u{302}\\u{303}\\u{304}\\u{305}t" }, /* over other lines */
	{ "\x1b\xcc\x81", "\\x1b\\u{301}", "\\x1b\\u{301}" },
	{ "", "", "" },
};

/* Columns of the terminal, not bytes: wide characters are two, marks none. */
static const struct {
	const char *in;
	size_t width;
	bool right;
	const char *out;
} fits[] = {
	{ "abc", 5, false, "abc  " },
	{ "abc", 5, true, "  abc" },
	{ "abcdef", 4, false, "abcd" },
	{ "abcdef", 4, true, "abcd" },
	{ "", 2, true, "  " },
	{ "\xc3\xa4\xc3\xb6\xc3\xbc", 4, false, "\xc3\xa4\xc3\xb6\xc3\xbc " },
	{ "\xe5\xad\x97\xe5\xad\x97\xe5\xad\x97", 5, false, "\xe5\xad\x97\xe5\xad\x97 " },
	{ "e\xcc\x81t", 2, false, "e\xcc\x81t" },
	{ "te\xcc\x81", 2, false, "te\xcc\x81" }, /* the mark stays with its letter */
};

Test(term, fits_columns_of_the_terminal)
{
	struct gpuq_buf out = GPUQ_BUF_INIT;

	cr_assert(setlocale(LC_CTYPE, "C.UTF-8"));
	for (size_t i = 0; i < sizeof(fits) / sizeof(fits[0]); i++) {
		gpuq_buf_clear(&out);
		term_fit(&out, fits[i].in, fits[i].width, fits[i].right);
		cr_expect_str_eq(gpuq_buf_str(&out), fits[i].out, "%zu", i);
	}
	gpuq_buf_done(&out);
}

Test(term, nothing_that_acts_gets_through)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_expect_str_eq(clean(cases[i].in, strlen(cases[i].in), true), cases[i].utf8);
		cr_expect_str_eq(clean(cases[i].in, strlen(cases[i].in), false), cases[i].ascii);
	}
	cr_expect_str_eq(clean("a\0b", 3, true), "a\\x00b");
}

static const struct {
	const char *in, *out;
} logs[] = {
	{ "one\ntwo\tx\r99%", "one\ntwo\tx\r99%" },
	{ "\x1b[1;31mred\x1b[0m\x1b[K", "\x1b[1;31mred\x1b[0m\x1b[K" },
	{ "\x1b[2J", "\\x1b[2J" }, /* would clear the screen */
	{ "\x1b]0;title\x07", "\\x1b]0;title\\x07" }, /* would set the title */
	{ "\x1b[6n", "\\x1b[6n" }, /* would make the terminal type */
	{ "\x1b[?25l", "\\x1b[?25l" },
	{ "\x1b\x1b[0m", "\\x1b\x1b[0m" },
	{ "caf\xc3\xa9 \xe2\x82\xac", "caf\xc3\xa9 \xe2\x82\xac" },
	{ "bad \xe2\x28\xa1", "bad \\xe2(\\xa1" },
	{ "ends in \xe2\x82", "ends in \\xe2\\x82" },
	{ "ends in \x1b[3", "ends in \\x1b[3" },
	{ "\x1b[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1m",
	  "\\x1b[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1m" },
};

/* However the stream is cut, what comes out is the same. */
Test(term, output_of_jobs_in_any_pieces)
{
	cr_assert(setlocale(LC_CTYPE, "C.UTF-8"));
	for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
		const size_t n = strlen(logs[i].in);

		for (size_t piece = 1; piece <= n; piece++) {
			struct gpuq_buf out = GPUQ_BUF_INIT;
			struct term_log l = { .n_kept = 0 };

			for (size_t at = 0; at < n; at += piece)
				term_log_add(&l, &out, logs[i].in + at,
					     at + piece < n ? piece : n - at);
			term_log_end(&l, &out);
			cr_expect_str_eq(gpuq_buf_str(&out), logs[i].out,
					 "case %zu in pieces of %zu", i, piece);
			gpuq_buf_done(&out);
		}
	}
}
