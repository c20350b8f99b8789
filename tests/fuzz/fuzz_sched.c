/* Bytes make a cluster with queues and jobs, whatever they say; the plan for it must keep
 * every rule, and not depend on the order in which its objects were added. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/prop/any.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(const char *fault)
{
	if (!fault)
		return;
	fprintf(stderr, "%s\n", fault);
	abort();
}

static void plan(const struct snapshot *s, struct gpuq_buf *out)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct plan p;

	if (sched_cycle(s, &mem, &p, &err) < 0)
		must(err.text);
	plan_print(s, &p, out);
	must(any_check(s, &p));
	gpuq_arena_done(&mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint8_t nothing;
	struct any_source from = { .bytes = n ? data : &nothing, .n = n };
	struct gpuq_buf text = GPUQ_BUF_INIT, again = GPUQ_BUF_INIT;
	const char *fault = NULL, *other = NULL;
	struct snapshot *s, *t;
	static struct any a;

	any_make(&from, &a);
	s = any_build(&a, 0, &fault);
	t = any_build(&a, n | 1, &other);
	if (!s != !t)
		must("refused in one order, not in the other");
	if (s) {
		plan(s, &text);
		plan(t, &again);
		if (strcmp(gpuq_buf_str(&text), gpuq_buf_str(&again)) != 0)
			must("another order of storage, another plan");
	}
	snapshot_free(s);
	snapshot_free(t);
	gpuq_buf_done(&text);
	gpuq_buf_done(&again);
	return 0;
}
