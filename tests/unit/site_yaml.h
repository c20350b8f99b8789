/* site_yaml.h - site files in tests: read from YAML, and written
 *
 * All of it is in one arena, which the test that includes this releases.
 */
#ifndef TESTS_UNIT_SITE_YAML_H
#define TESTS_UNIT_SITE_YAML_H

#include <criterion/criterion.h>

#include <string.h>

#include "gpuqd/site/site_merge.h"
#include "libgpuq/yaml.h"

static struct gpuq_arena mem;

static inline struct gpuq_val *parse(const char *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val **docs;
	size_t n;

	cr_assert_eq(gpuq_yaml_parse(&mem, "f", text, strlen(text), &docs, &n, &err), 0, "%s\n%s",
		     err.text, text);
	cr_assert_eq(n, 1);
	return docs[0];
}

static inline const char *yaml(const struct gpuq_val *v)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	const char *text;

	gpuq_yaml_write(&b, v);
	text = gpuq_arena_strdup(&mem, gpuq_buf_str(&b));
	gpuq_buf_done(&b);
	return text;
}

#endif
