/* site_text.h - a site file's text as the event that applies a site has it */
#ifndef TESTS_UNIT_SITE_TEXT_H
#define TESTS_UNIT_SITE_TEXT_H

#include <criterion/criterion.h>

#include <string.h>

#include "libgpuq/wire/mp.h"
#include "libgpuq/yaml.h"

/* Append the packed site to out. */
static inline void site_text_pack(const char *text, struct gpuq_buf *out)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val **docs;
	size_t n;

	cr_assert_eq(gpuq_yaml_parse(&mem, "site", text, strlen(text), &docs, &n, &err), 0, "%s",
		     err.text);
	gpuq_mp_write(out, docs[0]);
	gpuq_arena_done(&mem);
}

#endif
