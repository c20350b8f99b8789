/* Plans for random snapshots, as one number: the same on every machine, with every
 * compiler, at every level of optimisation (determinism.sh compares). On the way every plan
 * is checked, and made again from the same objects added in another order.
 *
 *	plan_sums [CASES [SEED]] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/prop/any.h"

#define CASES 3000
#define SEED 20261121

/* FNV-1a, 64 bits. */
static uint64_t sum(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
	return h;
}

static const char *plan_text(const struct snapshot *s, struct gpuq_buf *out, const char **fault)
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
	gpuq_arena_done(&mem);
	return gpuq_buf_str(out);
}

static const char *run(uint64_t seed, uint64_t *total)
{
	struct any_source from = { .state = seed };
	struct gpuq_buf text = GPUQ_BUF_INIT, again = GPUQ_BUF_INIT;
	const char *fault = NULL, *other = NULL;
	struct snapshot *s, *t;
	static struct any a;

	any_make(&from, &a);
	s = any_build(&a, 0, &fault);
	t = any_build(&a, seed | 1, &other);
	if (s && t) {
		*total = sum(*total, plan_text(s, &text, &fault));
		if (strcmp(gpuq_buf_str(&text), plan_text(t, &again, &other)) != 0 && !fault)
			fault = "another order of storage, another plan";
	} else if (!s != !t) {
		fault = "refused in one order, not in the other";
	} else {
		*total = sum(*total, fault);
		fault = NULL;
	}
	if (fault)
		printf("%s---\n%s", gpuq_buf_str(&text), gpuq_buf_str(&again));
	snapshot_free(s);
	snapshot_free(t);
	gpuq_buf_done(&text);
	gpuq_buf_done(&again);
	return fault;
}

int main(int argc, char **argv)
{
	const long cases = argc > 1 ? strtol(argv[1], NULL, 10) : CASES;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : SEED;
	uint64_t total = UINT64_C(0xcbf29ce484222325);

	for (long i = 0; i < cases; i++) {
		const char *fault = run(seed + (uint64_t)i, &total);

		if (!fault)
			continue;
		printf("seed %" PRIu64 ": %s\nagain: plan_sums 1 %" PRIu64 "\n", seed + (uint64_t)i,
		       fault, seed + (uint64_t)i);
		return 1;
	}
	printf("%ld plans from seed %" PRIu64 ": %016" PRIx64 "\n", cases, seed, total);
	return 0;
}
