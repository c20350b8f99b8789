#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "libgpuq/buf.h"
#include "libgpuq/hostlist.h"

static const struct {
	const char *text, *names; /* joined by spaces */
} good[] = {
	{ "n1", "n1" },
	{ "n1,n2", "n1 n2" },
	{ "n[1-3]", "n1 n2 n3" },
	{ "n[1,3-4]x,m", "n1x n3x n4x m" },
	{ "n[08-11]", "n08 n09 n10 n11" },
	{ "n[999999998-999999999]", "n999999998 n999999999" },
	{ "n[1-2]r[3-4]", "n1r3 n1r4 n2r3 n2r4" },
	{ "r[1-2]n[1,3]x[07-08]",
	  "r1n1x07 r1n1x08 r1n3x07 r1n3x08 r2n1x07 r2n1x08 r2n3x07 r2n3x08" },
	{ "a[1]b[2]c[3]d[4]e,f", "a1b2c3d4e f" },
	{ "[1-2]", "1 2" },
	{ "n1,,n2,", "n1 n2" },
	{ "a.b-c_d.example", "a.b-c_d.example" },
};

Test(hostlist, expands)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_val *list = gpuq_list(&a);
		struct gpuq_err err = GPUQ_ERR_INIT;
		struct gpuq_buf b = GPUQ_BUF_INIT;

		cr_assert_eq(hostlist_expand(&a, good[i].text, HOSTLIST_NAMES, list, &err), 0,
			     "%s: %s", good[i].text, err.text);
		for (uint32_t k = 0; k < list->n; k++)
			gpuq_buf_printf(&b, "%s%s", k ? " " : "", list->items[k]->s);
		cr_expect_str_eq(gpuq_buf_str(&b), good[i].names);
		gpuq_buf_done(&b);
		gpuq_arena_done(&a);
	}
}

#define MALFORMED "expected node names such as n1,n2 or n[01-04,7], not '"

static const struct {
	const char *text, *want;
} bad[] = {
	{ "", "expected at least one node name" },
	{ ",,", "expected at least one node name" },
	{ "m,n[", MALFORMED "n['" },
	{ "n[1", MALFORMED "n[1'" },
	{ "n[1-2,x", MALFORMED "n[1-2,x'" },
	{ "n[]", MALFORMED "n[]'" },
	{ "n[,]", MALFORMED "n[,]'" },
	{ "n[1,]", MALFORMED "n[1,]'" },
	{ "n[1-]", MALFORMED "n[1-]'" },
	{ "n[-1]", MALFORMED "n[-1]'" },
	{ "n[3-1]", MALFORMED "n[3-1]'" },
	{ "n[a]", MALFORMED "n[a]'" },
	{ "n[1 2]", MALFORMED "n[1 2]'" },
	{ "n[1[2]]", MALFORMED "n[1[2]]'" },
	{ "n]1[", MALFORMED "n]1['" },
	{ "n[1-2]r[", MALFORMED "n[1-2]r['" },
	{ "n[1-2]r[3-4", MALFORMED "n[1-2]r[3-4'" },
	{ "n[1234567890]", MALFORMED "n[1234567890]'" },
	{ "n[1-99999999999999999999]", MALFORMED "n[1-99999999999999999999]'" },
	{ "n1]", "'n1]' is not a node name" },
	{ "a b", "'a b' is not a node name" },
	{ "dgx-*", "'dgx-*' is not a node name" },
	{ "n[1-4097]", "expected at most 4096 node names" },
	{ "n[0-999999999]", "expected at most 4096 node names" },
	{ "n[1-100][1-100]", "expected at most 4096 node names" },
	{ "n[1-4096],m", "expected at most 4096 node names" },
	{ "a[1][1][1][1][1]",
	  "expected at most 4 brackets in a node name, not 'a[1][1][1][1][1]'" },
};

Test(hostlist, says_what_is_wrong)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct gpuq_arena a = GPUQ_ARENA_INIT(0);
		struct gpuq_err err = GPUQ_ERR_INIT;

		cr_expect_lt(hostlist_expand(&a, bad[i].text, HOSTLIST_NAMES, gpuq_list(&a), &err),
			     0, "'%s'", bad[i].text);
		cr_expect_str_eq(err.text, bad[i].want);
		gpuq_arena_done(&a);
	}
}

Test(hostlist, passes_globs_where_asked_and_counts_over_calls)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *list = gpuq_list(&a);
	struct gpuq_err err = GPUQ_ERR_INIT;
	char name[300];

	cr_assert_eq(hostlist_expand(&a, "dgx-*,r[1-2]n?", HOSTLIST_GLOBS, list, &err), 0);
	cr_expect_eq(list->n, 3);
	cr_expect_str_eq(list->items[2]->s, "r2n?");
	cr_expect_eq(hostlist_expand(&a, "n[1-4093]", HOSTLIST_GLOBS, list, &err), 0);
	cr_expect_eq(hostlist_expand(&a, "n0", HOSTLIST_GLOBS, list, &err), GPUQ_ERANGE);
	cr_expect_eq(hostlist_expand(&a, "n0", HOSTLIST_GLOBS, NULL, &err), GPUQ_ENOMEM);
	memset(name, 'x', sizeof(name));
	name[254] = '\0';
	cr_expect_eq(hostlist_expand(&a, name, HOSTLIST_NAMES, gpuq_list(&a), &err), GPUQ_EINVAL);
	gpuq_arena_done(&a);
}
