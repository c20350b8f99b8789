/* Bytes make a cluster with queues and jobs, whatever they say; the plans for it and for what
 * follows must keep every rule, and not depend on the order in which objects were added. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/prop/any.h"

#define CYCLES 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint8_t nothing;
	struct any_source from = { .bytes = n ? data : &nothing, .n = n };
	static struct any a;

	any_make(&from, &a);
	for (int i = 0; i < CYCLES && a.n_jobs; i++) {
		struct gpuq_buf text = GPUQ_BUF_INIT, again = GPUQ_BUF_INIT;
		const char *fault = any_cycle(&a, n, i % 2 == 1, &text, &again);

		if (fault) {
			fprintf(stderr, "%s\n", fault);
			abort();
		}
		gpuq_buf_done(&text);
		gpuq_buf_done(&again);
	}
	return 0;
}
