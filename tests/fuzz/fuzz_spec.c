/* A submitted file, in any of the three forms: it is refused with a place, or becomes jobs whose
 * written form reads back as the same jobs. A sum of the bytes is the options and the memory there is, so that
 * a change of one byte tries others: with too little, nothing is lost in silence. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void reads_back(struct gpuq_arena *a, const struct gpuq_spec *spec)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_reader r = { .arena = a, .now_us = 1, .err = &err };
	struct gpuq_val *v = gpuq_spec_write(a, spec), *again;
	struct gpuq_spec back;
	int rc;

	if (!v)
		return; /* no memory */
	rc = gpuq_spec_read(&r, v, &back);
	if (rc == GPUQ_ENOMEM)
		return;
	if (rc < 0)
		abort();
	again = gpuq_spec_write(a, &back);
	if (again && !gpuq_val_equal(v, again))
		abort();
	if (gpuq_spec_pods(spec) < 1 || gpuq_spec_gpus_milli(spec) < 0)
		abort();
}

static unsigned bits_of(const uint8_t *data, size_t n)
{
	unsigned sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += data[i];
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const argv[] = { "-t", "5", NULL };
	const unsigned bits = bits_of(data, n);
	const struct gpuq_spec_opts opts = {
		.file = "f",
		.default_name = "f",
		.now_us = INT64_C(1800000000000000),
		.ignore_unknown = bits & 1,
		.ignore_other_kinds = bits & 2,
		.argv = bits & 12 ? NULL : argv,
	};
	struct gpuq_arena arena = GPUQ_ARENA_INIT((size_t)2048 << (bits % 16));
	struct gpuq_buf warnings = GPUQ_BUF_INIT_MAX(1 << 20);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct gpuq_specs specs = { 0 };
	int rc = gpuq_specs_read(&arena, &opts, (const char *)data, n, &specs, &warnings, &err);

	if (rc < 0 && (err.code != rc || !err.text[0] || specs.n))
		abort();
	if (rc == 0 && specs.n == 0)
		abort();
	for (size_t i = 0; rc == 0 && i < specs.n && i < 20; i++)
		reads_back(&arena, &specs.items[i]);
	gpuq_buf_done(&warnings);
	gpuq_arena_done(&arena);
	return 0;
}
