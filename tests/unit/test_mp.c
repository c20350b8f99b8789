#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/wire/mp.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))
#define BYTES(s) (s), sizeof(s) - 1

static struct gpuq_arena arena = GPUQ_ARENA_INIT(0);
static const struct gpuq_mp_limits lim = { .max_bytes = 1000, .max_depth = 4, .max_items = 50 };

/* One message each: what the scanner says to all of it at once. */
static const struct {
	const char *what, *bytes;
	size_t n;
	int rc;
	size_t len;
} scans[] = {
	{ "nil", BYTES("\xc0"), 1, 1 },
	{ "fixint, then more", BYTES("\x01\x02"), 1, 1 },
	{ "negative fixint", BYTES("\xff"), 1, 1 },
	{ "int64", BYTES("\xd3\x01\x02\x03\x04\x05\x06\x07\x08"), 1, 9 },
	{ "int64 cut", BYTES("\xd3\x01\x02\x03\x04\x05\x06\x07"), 0, 0 },
	{ "double", BYTES("\xcb\x3f\xf0\0\0\0\0\0\0"), 1, 9 },
	{ "fixstr",
	  BYTES("\xa3"
		"abc"),
	  1, 4 },
	{ "fixstr cut",
	  BYTES("\xa3"
		"ab"),
	  0, 0 },
	{ "str8 without its length", BYTES("\xd9"), 0, 0 },
	{ "bin8", BYTES("\xc4\x02zz"), 1, 4 },
	{ "ext8", BYTES("\xc7\x02\x05zz"), 1, 5 },
	{ "fixext16",
	  BYTES("\xd8\x05"
		"0123456789abcdef"),
	  1, 18 },
	{ "list of two", BYTES("\x92\x01\xa1x"), 1, 4 },
	{ "list cut", BYTES("\x92\x01"), 0, 0 },
	{ "map", BYTES("\x81\xa1x\x92\x01\x02"), 1, 6 },
	{ "empty map", BYTES("\x80"), 1, 1 },
	{ "empty array32", BYTES("\xdd\0\0\0\0"), 1, 5 },
	{ "four deep", BYTES("\x91\x91\x91\x91\x01"), 1, 5 },
	{ "five deep", BYTES("\x91\x91\x91\x91\x91\x01"), GPUQ_EPROTO, 0 },
	{ "five deep and empty", BYTES("\x91\x91\x91\x91\x90"), GPUQ_EPROTO, 0 },
	{ "the byte that is none", BYTES("\xc1"), GPUQ_EPROTO, 0 },
	{ "nothing", BYTES(""), 0, 0 },
	{ "array32 bomb", BYTES("\xdd\x20\x00\x00\x00"), GPUQ_ETOOBIG, 0 },
	{ "map32 bomb", BYTES("\xdf\xff\xff\xff\xff"), GPUQ_ETOOBIG, 0 },
	{ "str32 bomb", BYTES("\xdb\xff\xff\xff\xff"), GPUQ_ETOOBIG, 0 },
	{ "ext32 bomb", BYTES("\xc9\xff\xff\xff\xff\x01"), GPUQ_ETOOBIG, 0 },
	{ "bin16 beyond the bytes allowed", BYTES("\xc5\x03\xe6"), GPUQ_ETOOBIG, 0 },
	{ "bin16 just within", BYTES("\xc5\x03\xe5"), 0, 0 },
	{ "too many members", BYTES("\xdc\x00\x32"), GPUQ_ETOOBIG, 0 },
	{ "as many as allowed", BYTES("\xdc\x00\x31"), 0, 0 },
	{ "too many pairs", BYTES("\xde\x00\x19"), GPUQ_ETOOBIG, 0 },
	{ "lists that are too many in sum",
	  BYTES("\x92\xdc\x00\x18\x01\x01\x01\x01\x01\x01\x01\x01"
		"\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"
		"\x01\x01\x01\x01\xdc\x00\x18"),
	  GPUQ_ETOOBIG, 0 },
};

Test(mp, scans_or_refuses)
{
	for (size_t i = 0; i < N(scans); i++) {
		struct gpuq_mp_scan scan = { 0 };
		struct gpuq_err err = GPUQ_ERR_INIT;
		size_t len = 0;
		int rc = gpuq_mp_next(&scan, &lim, scans[i].bytes, scans[i].n, &len, &err);

		cr_expect_eq(rc, scans[i].rc, "%s: %d %s", scans[i].what, rc, err.text);
		cr_expect_eq(len, scans[i].len, "%s: %zu", scans[i].what, len);
	}
}

Test(mp, scans_the_same_byte_by_byte)
{
	for (size_t i = 0; i < N(scans); i++) {
		struct gpuq_mp_scan scan = { 0 };
		size_t len = 0;
		int rc = 0;

		for (size_t n = 0; n <= scans[i].n && rc == 0; n++) {
			/* A copy of just so many bytes, so that a look beyond is seen. */
			char *part = malloc(n + 1);

			memcpy(part, scans[i].bytes, n);
			rc = gpuq_mp_next(&scan, &lim, part, n, &len, NULL);
			free(part);
		}
		cr_expect_eq(rc, scans[i].rc, "%s", scans[i].what);
		cr_expect_eq(len, scans[i].len, "%s", scans[i].what);
	}
}

Test(mp, reads_or_refuses)
{
	static const struct {
		const char *what, *bytes;
		size_t n;
		int rc;
		const char *json;
	} cases[] = {
		{ "a map", BYTES("\x82\xa1x\x01\xa1y\x92\xc3\xc0"), 0,
		  "{\"x\":1,\"y\":[true,null]}" },
		{ "float32", BYTES("\xca\x3f\x80\0\0"), 0, "1.0" },
		{ "bin",
		  BYTES("\xc4\x03"
			"abc"),
		  0, "\"YWJj\"" },
		{ "the smallest integer", BYTES("\xd3\x80\0\0\0\0\0\0\0"), 0,
		  "-9223372036854775808" },
		{ "the largest integer", BYTES("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"), 0,
		  "9223372036854775807" },
		{ "one more", BYTES("\xcf\x80\0\0\0\0\0\0\0"), GPUQ_EPROTO, NULL },
		{ "NaN", BYTES("\xcb\x7f\xf8\0\0\0\0\0\0"), GPUQ_EPROTO, NULL },
		{ "infinity", BYTES("\xca\x7f\x80\0\0"), GPUQ_EPROTO, NULL },
		{ "ext", BYTES("\xd4\x01\x02"), GPUQ_EPROTO, NULL },
		{ "an integer as key", BYTES("\x81\x01\x02"), GPUQ_EPROTO, NULL },
		{ "bin as key", BYTES("\x81\xc4\x01x\x02"), GPUQ_EPROTO, NULL },
		{ "a key twice", BYTES("\x82\xa1x\x01\xa1x\x02"), GPUQ_EPROTO, NULL },
		{ "a NUL in a key", BYTES("\x81\xa2x\0\x02"), GPUQ_EPROTO, NULL },
		{ "bad UTF-8", BYTES("\xa2\xff\xfe"), GPUQ_EPROTO, NULL },
		{ "bytes behind", BYTES("\x01\x02"), GPUQ_EPROTO, NULL },
		{ "cut", BYTES("\x92\x01"), GPUQ_EPROTO, NULL },
		{ "nothing", BYTES(""), GPUQ_EPROTO, NULL },
		{ "too deep", BYTES("\x91\x91\x91\x91\x91\x01"), GPUQ_EPROTO, NULL },
		{ "a bomb", BYTES("\xdd\x20\0\0\0"), GPUQ_ETOOBIG, NULL },
	};
	struct gpuq_buf b = GPUQ_BUF_INIT;

	for (size_t i = 0; i < N(cases); i++) {
		struct gpuq_val *v = NULL;
		struct gpuq_err err = GPUQ_ERR_INIT;
		int rc = gpuq_mp_read(&arena, &lim, cases[i].bytes, cases[i].n, &v, &err);

		cr_expect_eq(rc, cases[i].rc, "%s: %d %s", cases[i].what, rc, err.text);
		cr_expect_eq(err.code, rc, "%s", cases[i].what);
		cr_expect((v != NULL) == (rc == 0), "%s", cases[i].what);
		if (!v)
			continue;
		gpuq_buf_clear(&b);
		gpuq_json_write(&b, v, 0);
		cr_expect_str_eq(gpuq_buf_str(&b), cases[i].json, "%s", cases[i].what);
	}
	gpuq_buf_done(&b);
	gpuq_arena_done(&arena);
}

Test(mp, reads_what_it_wrote)
{
	static const struct gpuq_mp_limits wide = { GPUQ_MSG_BYTES_MAX, GPUQ_MSG_DEPTH_MAX,
						    GPUQ_MSG_ITEMS_MAX };
	static const int64_t ints[] = { 0,   -1,    127,   128,       -32,       -33,      255,
					256, 65535, 65536, INT32_MIN, INT64_MIN, INT64_MAX };
	struct gpuq_val *m = gpuq_map(&arena), *l = gpuq_put(&arena, m, "l", gpuq_list(&arena));
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_val *back = NULL;
	char text[70000];

	for (size_t i = 0; i < N(ints); i++)
		gpuq_add(&arena, l, gpuq_int(&arena, ints[i]));
	memset(text, 'x', sizeof(text));
	for (size_t n = 1; n <= sizeof(text); n *= 2) {
		gpuq_add(&arena, l, gpuq_strn(&arena, text, n));
		gpuq_add(&arena, l, gpuq_bin(&arena, text, n));
	}
	gpuq_add(&arena, l, gpuq_strn(&arena, "a\0b", 3));
	gpuq_add(&arena, l, gpuq_real(&arena, 0.1));
	gpuq_add(&arena, l, gpuq_bool(&arena, false));
	gpuq_add(&arena, l, gpuq_null(&arena));
	gpuq_put(&arena, m, "", gpuq_map(&arena));
	gpuq_mp_write(&b, m);
	cr_assert_not(b.failed);
	cr_assert_eq(gpuq_mp_read(&arena, &wide, b.data, b.len, &back, NULL), 0);
	cr_expect(gpuq_val_equal(m, back));
	gpuq_buf_done(&b);
	gpuq_arena_done(&arena);
}

/* One value after the other, and a list's head by itself: as gpuq_mp_read has them. */
Test(mp, takes_what_it_reads)
{
	static const struct {
		const char *what, *bytes;
		size_t n;
		int rc;
	} cases[] = {
		{ "small numbers, nil, true and false", BYTES("\x96\x00\x7f\xe0\xff\xc0\xc3"), 0 },
		{ "false", BYTES("\x91\xc2"), 0 },
		{ "unsigned", BYTES("\x93\xcc\xff\xcd\xff\xfe\xce\xff\xff\xff\xfd"), 0 },
		{ "the largest", BYTES("\x91\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"), 0 },
		{ "one more", BYTES("\x91\xcf\x80\0\0\0\0\0\0\0"), GPUQ_EPROTO },
		{ "signed", BYTES("\x93\xd0\x80\xd1\x80\x01\xd2\x80\0\0\x02"), 0 },
		{ "positive ones", BYTES("\x92\xd0\x7f\xd1\x7f\xff"), 0 },
		{ "the least", BYTES("\x91\xd3\x80\0\0\0\0\0\0\0"), 0 },
		{ "floats", BYTES("\x92\xca\x3f\x80\0\0\xcb\x3f\xf0\0\0\0\0\0\0"), 0 },
		{ "NaN", BYTES("\x91\xcb\x7f\xf8\0\0\0\0\0\0"), GPUQ_EPROTO },
		{ "strings",
		  BYTES("\x94\xa0\xa3"
			"abc\xd9\x02"
			"de\xda\0\x01"
			"f"),
		  0 },
		{ "a long one",
		  BYTES("\x92\xdb\0\0\0\x0a"
			"0123456789\xa2\xc3\xa4"),
		  0 },
		{ "bad UTF-8", BYTES("\x91\xa2\xff\xfe"), GPUQ_EPROTO },
		{ "bad UTF-8 behind eight",
		  BYTES("\x91\xaa"
			"01234567\xff\xfe"),
		  GPUQ_EPROTO },
		{ "bin",
		  BYTES("\x91\xc4\x03"
			"abc"),
		  0 },
		{ "lists and maps", BYTES("\x95\x90\x92\x01\x91\x02\x80\x81\xa1x\x90\xdc\0\0"), 0 },
		{ "a key twice", BYTES("\x91\x82\xa1x\x01\xa1x\x02"), GPUQ_EPROTO },
		{ "ext", BYTES("\x91\xd4\x01\x02"), GPUQ_EPROTO },
		{ "cut", BYTES("\x92\x01"), GPUQ_EPROTO },
		{ "a cut string", BYTES("\x91\xa3x"), GPUQ_EPROTO },
		{ "a cut number", BYTES("\x91\xcd\x01"), GPUQ_EPROTO },
		{ "a cut list", BYTES("\x91\x92\x01"), GPUQ_EPROTO },
		{ "the byte that is none", BYTES("\x91\xc1"), GPUQ_EPROTO },
		{ "no list", BYTES("\x81\xa1x\x01"), GPUQ_EPROTO },
		{ "nothing", BYTES(""), GPUQ_EPROTO },
	};

	for (size_t i = 0; i < N(cases); i++) {
		/* A copy of just so many bytes, so that a look beyond is seen. */
		char *bytes = malloc(cases[i].n + 1);
		const char *p = bytes, *end = bytes + cases[i].n;
		struct gpuq_val v = { .type = GPUQ_NULL }, *whole;
		uint32_t n = 0;
		int rc;

		memcpy(bytes, cases[i].bytes, cases[i].n);
		rc = gpuq_mp_take_list(&p, end, &n, NULL);
		if (cases[i].rc == 0)
			cr_assert_eq(gpuq_mp_read(&arena, &lim, bytes, cases[i].n, &whole, NULL), 0,
				     "%s", cases[i].what);
		for (uint32_t k = 0; rc == 0 && k < n; k++) {
			rc = gpuq_mp_take(&arena, &lim, &p, end, &v, NULL);
			if (rc == 0 && cases[i].rc == 0)
				cr_expect(gpuq_val_equal(&v, whole->items[k]), "%s: %u",
					  cases[i].what, k);
		}
		cr_expect_eq(rc, cases[i].rc, "%s: %d", cases[i].what, rc);
		if (rc == 0)
			cr_expect_eq(p, end, "%s", cases[i].what);
		free(bytes);
	}
	gpuq_arena_done(&arena);
}

Test(mp, a_full_arena_is_an_error)
{
	static const char msg[] = "\x83\xa1x\x01\xa1y\x92\xc3\xc0\xa1z\xa3"
				  "abc";
	bool worked = false;

	for (size_t room = 16; room < 4096; room += 16) {
		struct gpuq_arena small = GPUQ_ARENA_INIT(room);
		struct gpuq_val *v = NULL;
		int rc = gpuq_mp_read(&small, &lim, msg, sizeof(msg) - 1, &v, NULL);

		cr_assert(rc == 0 || rc == GPUQ_ENOMEM, "room %zu: %d", room, rc);
		cr_assert((v != NULL) == (rc == 0));
		worked = rc == 0;
		gpuq_arena_done(&small);
	}
	cr_assert(worked);
}
