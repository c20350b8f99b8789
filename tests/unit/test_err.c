#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "libgpuq/err.h"
#include "libgpuq/utf8.h"

Test(err, has_a_number_a_name_and_a_text_for_each_code)
{
	for (int n = 1; n <= 23; n++) {
		const int code = gpuq_err_from_number(n);

		cr_expect_eq(gpuq_err_number(code), n);
		cr_expect_str_neq(gpuq_err_name(code), "unknown");
		for (int m = 1; m < n; m++)
			cr_expect_str_neq(gpuq_err_name(code),
					  gpuq_err_name(gpuq_err_from_number(m)));
	}
	cr_expect_eq(gpuq_err_from_number(0), 0);
	cr_expect_eq(gpuq_err_from_number(-1), GPUQ_EINTERNAL);
	cr_expect_eq(gpuq_err_from_number(9999), GPUQ_EINTERNAL);
	cr_expect_str_eq(gpuq_err_name(-9999), "unknown");
	cr_expect(gpuq_err_retryable(GPUQ_EBUSY));
	cr_expect_not(gpuq_err_retryable(GPUQ_EINVAL));
}

Test(err, texts_are_one_line_of_valid_utf8)
{
	static const struct {
		const char *in, *want;
	} cases[] = {
		{ "plain", "plain" },
		{ "a\nb\tc\x1b[0m\x7f", "a?b?c?[0m?" },
		{ "caf\xc3\xa9", "caf\xc3\xa9" },
		{ "\xff in front", "? in front" },
		{ "\xc2\x9b"
		  "31m red",
		  "??31m red" },
	};
	struct gpuq_err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_expect_eq(gpuq_fail_field(&err, GPUQ_EINVAL, cases[i].in, "%s", cases[i].in),
			     GPUQ_EINVAL);
		cr_expect_str_eq(err.text, cases[i].want);
		cr_expect_str_eq(err.field, cases[i].want);
	}
	cr_expect_eq(gpuq_fail(NULL, GPUQ_ENOENT, "x"), GPUQ_ENOENT);
}

Test(err, cuts_between_characters)
{
	char fill[600] = "";

	for (size_t shift = 0; shift < 3; shift++) {
		struct gpuq_err err;
		size_t n = shift;

		memset(fill, 'x', shift);
		for (; n + 3 < sizeof(fill); n += 3)
			memcpy(fill + n, "\xe2\x82\xac", 4);
		gpuq_fail(&err, GPUQ_EINVAL, "%s", fill);
		cr_expect_gt(strlen(err.text), sizeof(err.text) - 5);
		cr_expect_eq(gpuq_utf8_check(err.text, strlen(err.text)), strlen(err.text));
		gpuq_err_prefix(&err, "front");
		cr_expect_eq(strncmp(err.text, "front: x", 7), 0);
		cr_expect_eq(gpuq_utf8_check(err.text, strlen(err.text)), strlen(err.text));
	}
}
