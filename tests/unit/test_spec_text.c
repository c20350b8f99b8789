/* The small languages inside a spec, one by one. */
#include "tests/unit/spec_help.h"

#include <stdio.h>

#include "libgpuq/limits.h"
#include "libgpuq/spec/spec_int.h"
#include "libgpuq/units.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *text, *print; /* NULL: refused */
	int64_t size, throttle;
} arrays[] = {
	{ "0", "0", 1, 0 },
	{ "0-99", "0-99", 100, 0 },
	{ "0-99%10", "0-99", 100, 10 },
	{ "1,3,5-9:2", "1-9:2", 5, 0 },
	{ "5,1,3", "1-5:2", 3, 0 },
	{ "1,2,4", "1-2,4", 3, 0 },
	{ "1,4", "1,4", 2, 0 },
	{ "3-3", "3", 1, 0 },
	{ "0-9:20", "0", 1, 0 },
	{ "0-5:5", "0,5", 2, 0 },
	{ "7-8", "7-8", 2, 0 },
	{ "0-10:4", "0-8:4", 3, 0 },
	{ "1-10:2,2-10:2", "1-10", 10, 0 },
	{ "1-5,3-7,3", "1-7", 7, 0 },
	{ "0-99999", "0-99999", 100000, 0 },
	{ "4000000", "4000000", 1, 0 },
	{ "0-0%100000", "0", 1, 100000 },
	{ "0-100000", NULL, 0, 0 },
	{ "0-99999,100000", NULL, 0, 0 },
	{ "4000001", NULL, 0, 0 },
	{ "", NULL, 0, 0 },
	{ ",", NULL, 0, 0 },
	{ "1,", NULL, 0, 0 },
	{ "-1", NULL, 0, 0 },
	{ "2-1", NULL, 0, 0 },
	{ "1-5:0", NULL, 0, 0 },
	{ "1:2", NULL, 0, 0 },
	{ "1%0", NULL, 0, 0 },
	{ "1%", NULL, 0, 0 },
	{ "%5", NULL, 0, 0 },
	{ "1 ", NULL, 0, 0 },
	{ "0x10", NULL, 0, 0 },
	{ "99999999999999999999", NULL, 0, 0 },
};

SPEC_CASES(spec_text, array_sets_become_sorted_ranges, arrays)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_array got = { .size = -7 };
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = gpuq_array_parse(&a, arrays[*ix].text, &got, &err);

	if (!arrays[*ix].print) {
		cr_expect(rc == GPUQ_EINVAL || rc == GPUQ_ERANGE, "'%s'", arrays[*ix].text);
		cr_expect_eq(got.size, -7, "the output was touched");
		gpuq_arena_done(&a);
		return;
	}
	cr_assert_eq(rc, 0, "'%s': %s", arrays[*ix].text, err.text);
	gpuq_array_print(&got, &b);
	cr_expect_str_eq(gpuq_buf_str(&b), arrays[*ix].print);
	cr_expect_eq(got.size, arrays[*ix].size);
	cr_expect_eq(got.throttle, arrays[*ix].throttle);
	for (size_t i = 1; i < got.n_ranges; i++)
		cr_expect_gt(got.ranges[i].first, got.ranges[i - 1].last);
	gpuq_buf_done(&b);
	gpuq_arena_done(&a);
}

static const struct {
	const char *text, *hosts; /* joined by spaces; NULL: refused */
} hostlists[] = {
	{ "n1", "n1" },
	{ "n1,n2", "n1 n2" },
	{ "n[1-3]", "n1 n2 n3" },
	{ "n[1,3-4]x,m", "n1x n3x n4x m" },
	{ "n[08-11]", "n08 n09 n10 n11" },
	{ "r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2" },
	{ "a.b-c.example", "a.b-c.example" },
	{ "", NULL },
	{ ",", NULL },
	{ "n[", NULL },
	{ "n[1", NULL },
	{ "n[]", NULL },
	{ "n[3-1]", NULL },
	{ "n[a]", NULL },
	{ "n]1[", NULL },
	{ "n[1-4097]", NULL },
	{ "n[1-100][1-100]", NULL },
	{ "a[1][1][1][1][1][1]", NULL },
	{ "a b", NULL },
};

SPEC_CASES(spec_text, host_lists_expand, hostlists)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_strlist got = { .n = 77 };
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = spec_hostlist(&a, hostlists[*ix].text, &got, &err);

	if (!hostlists[*ix].hosts) {
		cr_expect_lt(rc, 0, "'%s'", hostlists[*ix].text);
		cr_expect_eq(got.n, 77, "the output was touched");
		gpuq_arena_done(&a);
		return;
	}
	cr_assert_eq(rc, 0, "%s", err.text);
	for (size_t i = 0; i < got.n; i++)
		gpuq_buf_printf(&b, "%s%s", i ? " " : "", got.items[i]);
	cr_expect_str_eq(gpuq_buf_str(&b), hostlists[*ix].hosts);
	gpuq_buf_done(&b);
	gpuq_arena_done(&a);
}

/* A term as "key op values & ..."; terms joined by " | ". */
static const char *print_terms(struct gpuq_arena *a, const struct gpuq_term *t, size_t n)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const char *text;

	for (size_t i = 0; i < n; i++) {
		gpuq_buf_adds(&b, i ? " | " : "");
		for (size_t k = 0; k < t[i].n; k++) {
			const struct gpuq_require *q = &t[i].all[k];

			gpuq_buf_printf(&b, "%s%s %s", k ? " & " : "", q->key,
					spec_op_names[q->op]);
			for (size_t v = 0; v < q->values.n; v++)
				gpuq_buf_printf(&b, " %s", q->values.items[v]);
		}
	}
	text = gpuq_arena_strdup(a, gpuq_buf_str(&b));
	gpuq_buf_done(&b);
	return text;
}

static const struct {
	const char *text, *terms;
} constraints[] = {
	{ "a", "a Exists" },
	{ "!a", "a DoesNotExist" },
	{ "zone=b", "zone In b" },
	{ "!zone=b", "zone NotIn b" },
	{ "a&b", "a Exists & b Exists" },
	{ "a,b", "a Exists & b Exists" },
	{ "a|b", "a Exists | b Exists" },
	{ "a&b|c", "a Exists & b Exists | c Exists" },
	{ "a&(b|c)", "a Exists & b Exists | a Exists & c Exists" },
	{ "(a|b)&(c|d)", "a Exists & c Exists | a Exists & d Exists | b Exists & c Exists | "
			 "b Exists & d Exists" },
	{ "nvidia.com/gpu.product=A100", "nvidia.com/gpu.product In A100" },
	{ "", NULL },
	{ "&", NULL },
	{ "a&", NULL },
	{ "a|", NULL },
	{ "(a", NULL },
	{ "a)", NULL },
	{ "[a|b]", "a Exists | b Exists" }, /* of one pod; spec_opts_end() refuses more */
	{ "[a|b", NULL },
	{ "[a|b)", NULL },
	{ "a*2", NULL },
	{ "!!a", NULL },
	{ "((((((((((((((((((a))))))))))))))))))", NULL },
	{ "(a|b)&(a|b)&(a|b)&(a|b)&(a|b)&(a|b)&(a|b)", NULL }, /* 128 terms */
};

SPEC_CASES(spec_text, constraints_become_terms, constraints)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_term *t = NULL;
	struct gpuq_err err = GPUQ_ERR_INIT;
	size_t n = 0;
	int rc = spec_constraint_parse(&a, constraints[*ix].text, &t, &n, &err);

	if (!constraints[*ix].terms) {
		cr_expect_lt(rc, 0, "'%s'", constraints[*ix].text);
		cr_expect_null(t);
		gpuq_arena_done(&a);
		return;
	}
	cr_assert_eq(rc, 0, "%s", err.text);
	cr_expect_str_eq(print_terms(&a, t, n), constraints[*ix].terms);
	gpuq_arena_done(&a);
}

static const struct {
	const char *text;
	bool ok;
} migs[] = {
	{ "1g.10gb", true },
	{ "1g.5gb+me", true },
	{ "1g.5gb.me", true },
	{ "1c.3g.20gb", true },
	{ "7g.141gb", true },
	{ "1g", false },
	{ "1g.10", false },
	{ "0g.5gb", false },
	{ "1g.10gb ", false },
	{ "g.5gb", false },
	{ "", false },
	{ "1g.10gb/x", false },
	{ "a100", false },
	{ "1g.5gb+you", false },
	{ "1g.5gb.shared", true },
	{ "1g.5gb+me.shared", true },
	{ "1g.5gb+shared", false },
	{ "1g.5gb.shared/4", false },
	{ "1g.5gb.shared.me", false },
	{ ".shared", false },
};

SPEC_CASES(spec_text, mig_profiles_are_known_by_their_form, migs)
{
	cr_expect_eq(spec_mig_ok(migs[*ix].text), migs[*ix].ok, "'%s'", migs[*ix].text);
}

static const struct {
	const char *text;
	bool ok;
} cards[] = { { "1g.5gb", true },     { "7g.141gb", true },   { "8g.5gb", false },
	      { "1c.7g.80gb", true }, { "1c.9g.5gb", false }, { "9c.9g.5gb", false } };

SPEC_CASES(spec_text, mig_profiles_fit_on_a_card, cards)
{
	cr_expect(spec_mig_ok(cards[*ix].text));
	cr_expect_eq(spec_mig_fits(cards[*ix].text), cards[*ix].ok, "'%s'", cards[*ix].text);
}

#define FIFTY "01234567890123456789012345678901234567890123456789"
#define HUNDRED FIFTY FIFTY

static const struct {
	const char *text, *name;
} names[] = {
	{ "train.sh", "train.sh" },
	{ "my job [1]: a/b", "my job [1]: a/b" },
	{ "--x--", "--x--" },
	{ "", "job" },
	{ "\xc3\xa9t\xc3\xa9\n\xe2\x80\xae", "\xc3\xa9t\xc3\xa9\n\xe2\x80\xae" },
	{ "a\xc3", "a-" },
	{ "\xc3(\xed\xa0\x80", "-(---" },
	{ HUNDRED HUNDRED "0123456789012345678901234567890123456789012345678901234\xc3\xa9",
	  HUNDRED HUNDRED "0123456789012345678901234567890123456789012345678901234" },
};

SPEC_CASES(spec_text, a_name_is_made_of_anything, names)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	const char *got = spec_name_from(&a, names[*ix].text);

	cr_expect_str_eq(got, names[*ix].name);
	cr_expect(spec_job_name_ok(got));
	gpuq_arena_done(&a);
}

Test(spec_text, licenses_and_retries_refuse_without_touching)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_strmap m = { .n = 77 };
	struct gpuq_retry r = { .on = 1 };

	cr_expect_lt(spec_licenses_parse(&a, "a:0", &m, NULL), 0);
	cr_expect_lt(spec_licenses_parse(&a, "a,b c", &m, NULL), 0);
	cr_expect_eq(m.n, 77);
	cr_expect_lt(spec_retry_word(&a, "exit:0", &r, NULL), 0);
	cr_expect_lt(spec_retry_word(&a, "exit:", &r, NULL), 0);
	cr_expect_lt(spec_retry_word(&a, "", &r, NULL), 0);
	cr_expect_eq(r.on, 1);
	cr_expect_eq(r.n_exits, 0);
	gpuq_arena_done(&a);
}

Test(spec_text, depends_are_bounded)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_spec s = { 0 };

	gpuq_buf_adds(&b, "afterok");
	for (unsigned i = 1; i <= GPUQ_DEPENDS_MAX; i++)
		gpuq_buf_printf(&b, ":%u", i);
	cr_expect_eq(spec_depends_parse(&a, gpuq_buf_str(&b), &s, NULL), 0);
	cr_expect_eq(s.n_depends, GPUQ_DEPENDS_MAX);
	gpuq_buf_adds(&b, ":999");
	s.n_depends = 0;
	cr_expect_eq(spec_depends_parse(&a, gpuq_buf_str(&b), &s, NULL), GPUQ_ERANGE);
	cr_expect_eq(s.n_depends, 0);
	gpuq_buf_done(&b);
	gpuq_arena_done(&a);
}
