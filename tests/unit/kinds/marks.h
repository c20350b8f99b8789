/* marks.h - labels and annotations that a kind puts on its pods, as its operator would
 *
 * Used by the tests of the kinds, a file each.
 */
#ifndef TESTS_UNIT_KINDS_MARKS_H
#define TESTS_UNIT_KINDS_MARKS_H

#include "tests/unit/spec_help.h"

struct mark_case {
	const char *text;
	size_t group;
	const char *map, *key; /* "labels", "job-name" */
	const char *want; /* NULL = not there */
};

static inline void mark_check(const struct mark_case *c)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(64 << 20);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs = { 0 };
	const struct gpuq_val *v;

	cr_assert_eq(spec_read_text(&a, "job.yaml", c->text, NULL, &specs, NULL, &err), 0,
		     "refused: %s\n%s", err.text, c->text);
	cr_assert_lt(c->group, specs.items[0].n_groups, "%s", c->text);
	v = gpuq_path(specs.items[0].groups[c->group].template_, "metadata", c->map, c->key, NULL);
	cr_expect_eq(v != NULL, c->want != NULL, "%s of\n%s", c->key, c->text);
	if (v && c->want)
		cr_expect_str_eq(v->s, c->want, "%s is '%s', not '%s', of\n%s", c->key, v->s,
				 c->want, c->text);
	gpuq_arena_done(&a);
}

#endif
