/* spec_help.h - what the tests of job specs share
 *
 * A case is a text and what comes of it: one line of JSON (the normalised spec), or
 * the message that refuses it.
 */
#ifndef TESTS_UNIT_SPEC_HELP_H
#define TESTS_UNIT_SPEC_HELP_H

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "libgpuq/buf.h"
#include "libgpuq/spec.h"

/* 2027-01-15T08:00:00Z, for relative times. */
#define NOW_US INT64_C(1800000000000000)

struct spec_case {
	const char *text;
	const char *want; /* JSON, or the message */
	const char *warns; /* all warnings, or NULL for "does not matter" */
	const char *argv[8]; /* options of the command line */
};

/* Criterion runs each case in a process of its own: the parameter is an index. */
#define SPEC_CASES(suite, name, cases)                                                             \
	ParameterizedTestParameters(suite, name)                                                   \
	{                                                                                          \
		static size_t ix[sizeof(cases) / sizeof((cases)[0])];                              \
		const size_t n = sizeof(ix) / sizeof(ix[0]);                                       \
                                                                                                   \
		for (size_t i = 0; i < n; i++)                                                     \
			ix[i] = i;                                                                 \
		return cr_make_param_array(size_t, ix, n);                                         \
	}                                                                                          \
	ParameterizedTest(size_t *ix, suite, name)

static inline int spec_read_text(struct gpuq_arena *a, const char *file, const char *text,
				 const char *const *argv, struct gpuq_specs *out,
				 struct gpuq_buf *warnings, struct gpuq_err *err)
{
	const struct gpuq_spec_opts opts = {
		.file = file, .default_name = "noname", .now_us = NOW_US, .argv = argv
	};

	return gpuq_specs_read(a, &opts, text, strlen(text), out, warnings, err);
}

/* All jobs of it as JSON, one a line; templates are left out, and of scripts the text and whether it
 * is told SLURM_* variables. */
static inline const char *spec_json(struct gpuq_arena *a, const struct gpuq_specs *s)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const char *text;

	for (size_t i = 0; i < s->n; i++) {
		struct gpuq_val *v = gpuq_spec_write(a, &s->items[i]);
		const struct gpuq_val *groups = gpuq_get(v, "groups");

		cr_assert_not_null(v);
		gpuq_unset(v, "template");
		for (size_t g = 0; groups && g < groups->n; g++)
			gpuq_unset(groups->items[g], "template");
		if (s->form == GPUQ_FORM_SCRIPT)
			gpuq_unset(v, "script"), gpuq_unset(v, "slurm_env");
		if (i)
			gpuq_buf_addc(&b, '\n');
		gpuq_json_write(&b, v, 0);
	}
	text = gpuq_arena_strdup(a, gpuq_buf_str(&b));
	gpuq_buf_done(&b);
	return text;
}

/* Read as the table says: accepted when want is JSON, else refused with that text. */
static inline void spec_check_case(const char *file, const struct spec_case *c)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(64 << 20);
	struct gpuq_specs specs = { .n = 77 };
	struct gpuq_buf warnings = GPUQ_BUF_INIT;
	struct gpuq_err err = GPUQ_ERR_INIT;
	int rc = spec_read_text(&a, file, c->text, c->argv, &specs, &warnings, &err);

	if (c->want[0] == '{') {
		cr_assert_eq(rc, 0, "refused: %s\n%s", err.text, c->text);
		cr_expect_str_eq(spec_json(&a, &specs), c->want, "got  %s\nwant %s\nfor\n%s",
				 spec_json(&a, &specs), c->want, c->text);
	} else {
		cr_assert_lt(rc, 0, "accepted: %s", spec_json(&a, &specs));
		cr_expect_eq(rc, err.code);
		cr_expect_eq(specs.n, 77, "the output was touched");
		cr_expect_str_eq(err.text, c->want, "got  %s\nwant %s\nfor\n%s", err.text, c->want,
				 c->text);
	}
	if (c->warns)
		cr_expect_str_eq(gpuq_buf_str(&warnings), c->warns, "for\n%s", c->text);
	gpuq_buf_done(&warnings);
	gpuq_arena_done(&a);
}

#endif
