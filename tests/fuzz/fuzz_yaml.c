/* Text of a user: parses or is refused with a place, and what was parsed reads back
 * after being written. The last bit of the last byte chooses the reader: of files of jobs, which
 * takes aliases and merge keys, or of all others. Text usually ends with a newline, whose bit is 0. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/limits.h"
#include "libgpuq/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void reads_back(struct gpuq_arena *a, const struct gpuq_val *v)
{
	struct gpuq_buf b = GPUQ_BUF_INIT;
	struct gpuq_val **docs = NULL;
	size_t n = 0;
	int rc;

	gpuq_yaml_write(&b, v);
	rc = b.len <= GPUQ_YAML_BYTES_MAX ? gpuq_yaml_parse(a, "f", b.data, b.len, &docs, &n, NULL)
					  : GPUQ_ENOMEM;
	if (rc != GPUQ_ENOMEM && (rc != 0 || n != 1 || !gpuq_val_equal(v, docs[0])))
		abort();
	gpuq_buf_clear(&b);
	gpuq_json_write(&b, v, (int)(v->n % 3));
	gpuq_buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct gpuq_arena arena = GPUQ_ARENA_INIT(64 << 20);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_val **docs = NULL;
	size_t n_docs = 0;
	const bool plain = n && data[n - 1] & 1;
	int rc = (plain ? gpuq_yaml_parse : gpuq_yaml_parse_jobs)(&arena, "f", (const char *)data,
								  n, &docs, &n_docs, &err);

	if (rc == GPUQ_EINVAL && strncmp(err.text, "f:", 2) != 0)
		abort();
	if (rc < 0 && (err.code != rc || docs || n_docs))
		abort();
	for (size_t i = 0; rc == 0 && i < n_docs; i++)
		reads_back(&arena, docs[i]);
	gpuq_arena_done(&arena);
	return 0;
}
