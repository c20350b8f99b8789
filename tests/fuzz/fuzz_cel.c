/* Selectors of devices: any text is read or refused at a column that it has, and what was read has the same
 * value twice, whatever the device tells. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuq/cel/cel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A device that has every attribute, of a type that its name tells. */
static bool look(void *arg, bool capacity, const char *domain, size_t n_domain, const char *name,
		 size_t n_name, struct gpuq_cel_value *out)
{
	const unsigned char first = n_name ? (unsigned char)name[0] : 0;

	(void)arg;
	if (n_domain == 0)
		return false;
	*out = (struct gpuq_cel_value){ .i = first, .s = domain, .n = n_domain };
	out->type = capacity ? GPUQ_CEL_QUANTITY : GPUQ_CEL_BOOL + first % 4;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct gpuq_cel_device device = { NULL, "gpu.nvidia.com", look };
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	const struct gpuq_cel *e = NULL;
	uint32_t column = 0;
	char *text = malloc(n ? n : 1);

	if (!text)
		return 0;
	memcpy(text, data, n);
	if (gpuq_cel_read(&a, text, n, &e, &column, &err) == 0) {
		if (!e || gpuq_cel_holds(e, &device) != gpuq_cel_holds(e, &device))
			abort();
	} else if (column == 0 || column > n + 1 || !err.text[0]) {
		abort();
	}
	gpuq_arena_done(&a);
	free(text);
	return 0;
}
