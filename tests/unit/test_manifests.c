/* The collection of tests/manifests: each manifest is accepted as it says, or refused with the
 * place. GPUQ_UPDATE=1 writes the expectations. */
#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/buf.h"
#include "libgpuq/spec.h"

#define FOLDER SRCDIR "/tests/manifests/"
#define SUBMIT "# submit: "

static bool read_file(const char *path, struct gpuq_buf *out)
{
	FILE *f = fopen(path, "r");
	char piece[4096];
	size_t n;

	if (!f)
		return false;
	while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
		gpuq_buf_add(out, piece, n);
	fclose(f);
	return true;
}

/* Read a manifest; out is its outcome as NAME.want has it. */
static void outcome(const char *name, const struct gpuq_buf *text, struct gpuq_buf *out)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(64 << 20);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs = { 0 };
	struct gpuq_spec_opts opts = {
		.file = name,
		.default_name = name,
		.now_us = INT64_C(1800000000000000),
		.ignore_other_kinds = strncmp(text->data, SUBMIT, strlen(SUBMIT)) == 0 &&
				      strstr(text->data, "--ignore-other-kinds"),
	};

	if (gpuq_specs_read(&a, &opts, text->data, text->len, &specs, out, &err) < 0)
		gpuq_buf_printf(out, "refused: %s\n", err.text);
	for (size_t i = 0; i < specs.n; i++) {
		gpuq_json_write(out, gpuq_spec_write(&a, &specs.items[i]), 0);
		gpuq_buf_addc(out, '\n');
	}
	gpuq_arena_done(&a);
}

static void write_file(const char *path, const struct gpuq_buf *text)
{
	FILE *f = fopen(path, "w");

	cr_assert_not_null(f, "%s", path);
	fwrite(text->data, 1, text->len, f);
	fclose(f);
}

Test(manifests, are_accepted_faithfully_or_refused_with_the_place)
{
	glob_t found;

	cr_assert_eq(glob(FOLDER "*.yaml", 0, NULL, &found), 0);
	cr_expect_geq(found.gl_pathc, 60);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct gpuq_buf text = GPUQ_BUF_INIT, want = GPUQ_BUF_INIT, got = GPUQ_BUF_INIT;
		const char *path = found.gl_pathv[i], *name = strrchr(path, '/') + 1;
		char other[512];

		snprintf(other, sizeof(other), "%.*s.want", (int)(strlen(path) - 5), path);
		cr_assert(read_file(path, &text));
		outcome(name, &text, &got);
		if (getenv("GPUQ_UPDATE"))
			write_file(other, &got);
		cr_expect(read_file(other, &want), "%s is missing", other);
		cr_expect_str_eq(gpuq_buf_str(&got), gpuq_buf_str(&want), "%s", name);
		gpuq_buf_done(&text);
		gpuq_buf_done(&want);
		gpuq_buf_done(&got);
	}
	globfree(&found);
}
