/* Numbers with units: what was parsed and printed parses to the same number. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/units.h"

#define NOW INT64_C(1795274430500000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int parse_instant(const char *text, int64_t *out, struct gpuq_err *err)
{
	return gpuq_instant_parse(text, NOW, out, err);
}

static const struct {
	int (*parse)(const char *text, int64_t *out, struct gpuq_err *err);
	void (*print)(int64_t v, char *out, size_t room);
	int64_t exact; /* printing keeps multiples of this */
	int64_t max; /* and prints what is larger as its end */
} kinds[] = {
	{ gpuq_duration_parse, gpuq_duration_print, 1, INT64_MAX },
	{ gpuq_bytes_parse, gpuq_bytes_print, 1, INT64_MAX },
	{ gpuq_milli_parse, gpuq_milli_print, 1, INT64_MAX },
	{ parse_instant, gpuq_instant_print, 1000, INT64_C(253402300799999999) },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = malloc(n + 1), printed[64];
	int64_t v, back;

	if (!text)
		return 0;
	memcpy(text, data, n);
	text[n] = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct gpuq_err err = GPUQ_ERR_INIT;
		int rc = kinds[i].parse(text, &v, &err);

		if (rc != 0 && (rc != err.code || !err.text[0]))
			abort();
		if (rc != 0)
			continue;
		if (v < 0)
			abort();
		kinds[i].print(v, printed, sizeof(printed));
		if (v > kinds[i].max)
			continue;
		if (kinds[i].parse(printed, &back, NULL) != 0 ||
		    back != v / kinds[i].exact * kinds[i].exact)
			abort();
	}
	if (gpuq_slurm_mem_parse(text, &v, NULL) == 0 && (v < 0 || v % (1 << 20)))
		abort();
	if (gpuq_signal_number(text) < 0)
		abort();
	if (gpuq_duration_parse(text, &v, NULL) == 0)
		gpuq_duration_clock(v, printed, sizeof(printed));
	free(text);
	return 0;
}
