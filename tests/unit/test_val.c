#include <criterion/criterion.h>

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/utf8.h"
#include "libgpuq/val.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static struct gpuq_arena arena = GPUQ_ARENA_INIT(0);

static const char *json(const struct gpuq_val *v, int indent)
{
	static struct gpuq_buf b;

	gpuq_buf_clear(&b);
	gpuq_json_write(&b, v, indent);
	return gpuq_buf_str(&b);
}

static struct gpuq_val *sample(struct gpuq_arena *a)
{
	struct gpuq_val *m = gpuq_map(a), *l = gpuq_put(a, m, "list", gpuq_list(a));

	gpuq_put(a, m, "name", gpuq_str(a, "x"));
	gpuq_put(a, m, "none", gpuq_str(a, NULL));
	gpuq_put(a, m, "yes", gpuq_bool(a, true));
	for (int i = 0; i < 9; i++)
		gpuq_add(a, l, gpuq_int(a, i - 4));
	return m;
}

Test(val, is_built_and_looked_up)
{
	struct gpuq_val *m = sample(&arena);

	cr_assert(gpuq_val_ok(m));
	cr_expect_str_eq(json(m, 0), "{\"list\":[-4,-3,-2,-1,0,1,2,3,4],\"name\":\"x\","
				     "\"none\":null,\"yes\":true}");
	cr_expect_eq(gpuq_get(m, "list")->n, 9);
	cr_expect_null(gpuq_get(m, "other"));
	cr_expect_null(gpuq_get(NULL, "other"));
	cr_expect_null(gpuq_get(gpuq_get(m, "name"), "other"));
	cr_expect_str_eq(gpuq_get_str(m, "name", "d"), "x");
	cr_expect_str_eq(gpuq_get_str(m, "none", "d"), "d");
	cr_expect_eq(gpuq_get_int(m, "name", 7), 7);
	cr_expect(gpuq_get_bool(m, "yes", false));
	cr_expect_null(gpuq_path(m, "name", "deeper", NULL));
	gpuq_set(&arena, m, "name", gpuq_int(&arena, 5));
	cr_expect_eq(gpuq_get_int(m, "name", 0), 5);
	gpuq_unset(m, "list");
	gpuq_unset(m, "list");
	cr_expect_str_eq(json(m, 0), "{\"name\":5,\"none\":null,\"yes\":true}");
	gpuq_arena_done(&arena);
}

Test(val, copies_equal_and_differ)
{
	struct gpuq_arena other = GPUQ_ARENA_INIT(0);
	struct gpuq_val *m = sample(&arena), *c = gpuq_val_copy(&other, m);
	struct gpuq_val *swapped = gpuq_map(&arena);

	cr_assert(gpuq_val_equal(m, c));
	for (uint32_t i = m->n; i-- > 0;)
		gpuq_put(&arena, swapped, m->pairs[i].key, m->pairs[i].val);
	cr_expect(gpuq_val_equal(m, swapped), "the order of keys does not count");
	gpuq_arena_done(&arena);
	cr_expect_str_eq(gpuq_get_str(c, "name", ""), "x", "a copy lives on its own");
	gpuq_get(c, "list")->items[3]->i = 99;
	cr_expect_not(gpuq_val_equal(c, sample(&arena)));
	cr_expect_not(gpuq_val_equal(gpuq_int(&arena, 1), gpuq_real(&arena, 1)));
	gpuq_arena_done(&arena);
	gpuq_arena_done(&other);
}

Test(val, says_when_something_got_lost)
{
	for (size_t room = 0; room < 4096; room += 16) {
		struct gpuq_arena small = GPUQ_ARENA_INIT(room ? room : 1);
		struct gpuq_val *m = sample(&small);

		if (gpuq_val_ok(m))
			cr_expect(gpuq_val_equal(m, sample(&arena)), "room %zu", room);
		else
			cr_expect_lt(room, 2048);
		gpuq_arena_done(&small);
	}
	gpuq_arena_done(&arena);
}

Test(val, finds_the_first_repeated_key)
{
	static const size_t sizes[] = { 2, 16, 17, 1000 };

	for (size_t i = 0; i < N(sizes); i++) {
		struct gpuq_val *m = gpuq_map(&arena);
		bool exhausted = false;
		char key[32];

		for (size_t k = 0; k < sizes[i]; k++) {
			snprintf(key, sizeof(key), "k%zu", k);
			gpuq_put(&arena, m, key, gpuq_null(&arena));
		}
		cr_expect_null(gpuq_map_repeat(&arena, m, &exhausted));
		gpuq_put(&arena, m, "k1", gpuq_null(&arena));
		gpuq_put(&arena, m, "k0", gpuq_null(&arena));
		cr_expect_eq(gpuq_map_repeat(&arena, m, &exhausted), &m->pairs[sizes[i]]);
		cr_expect_not(exhausted);
	}
	gpuq_arena_done(&arena);
}

Test(json, quotes_what_must_be)
{
	static const struct {
		const char *s;
		size_t n;
		const char *want;
	} cases[] = {
		{ "", 0, "\"\"" },
		{ "a\"b\\c/", 6, "\"a\\\"b\\\\c/\"" },
		{ "\n\t\r\b\f\x01\x1b", 7, "\"\\n\\t\\r\\b\\f\\u0001\\u001b\"" },
		{ "\0x", 2, "\"\\u0000x\"" },
		{ "\x7f\xc2\x9b", 3, "\"\\u007f\\u009b\"" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
		  "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		{ "\xe2\x80\xa8\xe2\x80\xa9", 6, "\"\\u2028\\u2029\"" },
		{ "a\xff\xc3", 3, "\"a\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	};
	struct gpuq_buf b = GPUQ_BUF_INIT;

	for (size_t i = 0; i < N(cases); i++) {
		gpuq_buf_clear(&b);
		gpuq_json_str(&b, cases[i].s, cases[i].n);
		cr_expect_str_eq(gpuq_buf_str(&b), cases[i].want, "row %zu", i);
	}
	gpuq_buf_done(&b);
}

Test(json, writes_numbers_that_read_back)
{
	static const struct {
		double d;
		const char *want;
	} cases[] = {
		{ 0.1, "0.1" },
		{ 1, "1.0" },
		{ -2.5, "-2.5" },
		{ 1e300, "1e+300" },
		{ 1e21, "1e+21" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ DBL_MAX, "1.797693134862316e+308" },
	};

	for (size_t i = 0; i < N(cases) - 1; i++)
		cr_expect_str_eq(json(gpuq_real(&arena, cases[i].d), 0), cases[i].want);
	cr_expect_eq(strtod(json(gpuq_real(&arena, DBL_MAX), 0), NULL), DBL_MAX);
	cr_expect_str_eq(json(gpuq_int(&arena, INT64_MIN), 0), "-9223372036854775808");
	cr_expect_str_eq(json(gpuq_bin(&arena, "\xff", 1), 0), "\"/w==\"");
	cr_expect_str_eq(json(gpuq_bin(&arena, "ab", 2), 0), "\"YWI=\"");
	cr_expect_str_eq(json(gpuq_bin(&arena, "abc", 3), 0), "\"YWJj\"");
	gpuq_arena_done(&arena);
}

Test(json, indents)
{
	struct gpuq_val *m = gpuq_map(&arena), *l = gpuq_put(&arena, m, "l", gpuq_list(&arena));

	gpuq_put(&arena, m, "e", gpuq_map(&arena));
	gpuq_add(&arena, l, gpuq_int(&arena, 1));
	cr_expect_str_eq(json(m, 2), "{\n  \"l\": [\n    1\n  ],\n  \"e\": {}\n}");
	gpuq_arena_done(&arena);
}

Test(utf8, tells_valid_from_not)
{
	static const struct {
		const char *s;
		size_t n, valid;
	} cases[] = {
		{ "abc", 3, 3 },
		{ "\xc3\xa9", 2, 2 },
		{ "\xf4\x8f\xbf\xbf", 4, 4 }, /* U+10FFFF */
		{ "\xf4\x90\x80\x80", 4, 0 }, /* beyond */
		{ "a\xc0\x80", 3, 1 }, /* overlong NUL */
		{ "\xe0\x9f\xbf", 3, 0 }, /* overlong */
		{ "\xed\xbf\xbf", 3, 0 }, /* surrogate */
		{ "\xe2\x82", 2, 0 }, /* cut */
		{ "\x80", 1, 0 },
	};

	for (size_t i = 0; i < N(cases); i++)
		cr_expect_eq(gpuq_utf8_check(cases[i].s, cases[i].n), cases[i].valid, "row %zu", i);
}
