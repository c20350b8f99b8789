#include "tests/prop/any.h"

#include <string.h>

static void plan(const struct snapshot *s, struct gpuq_buf *out, struct any *next, bool gone,
		 const char **fault)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct plan p;

	if (sched_cycle(s, &mem, &p, &err) < 0) {
		*fault = "the cycle failed";
	} else {
		plan_print(s, &p, out);
		*fault = any_check(s, &p);
	}
	if (!*fault && next && !any_next(next, &p, gone))
		next->n_jobs = 0;
	gpuq_arena_done(&mem);
}

const char *any_cycle(struct any *a, uint64_t order, bool gone, struct gpuq_buf *text,
		      struct gpuq_buf *again)
{
	const char *fault = NULL, *other = NULL;
	struct snapshot *s = any_build(a, 0, &fault), *t = any_build(a, order | 1, &other);

	if (s && t) {
		plan(t, again, NULL, gone, &other);
		plan(s, text, a, gone, &fault);
		if (strcmp(gpuq_buf_str(text), gpuq_buf_str(again)) != 0 && !fault)
			fault = "another order of storage, another plan";
	} else if (!s != !t) {
		fault = "refused in one order, not in the other";
	} else {
		gpuq_buf_adds(text, fault);
		a->n_jobs = 0;
		fault = NULL;
	}
	snapshot_free(s);
	snapshot_free(t);
	return fault;
}
