/* Plans for random snapshots and their successors, as one number: the same on every machine, with
 * every compiler, at every level of optimisation (determinism.sh compares). Every plan is also
 * checked, and made again from the same objects added in another order.
 *
 * plan_sums [CASES [SEED]] */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpuqd/util/hash.h"
#include "tests/prop/any.h"

#define CASES 3000
#define SEED 20261121

#define CYCLES 4

/* Cases in which a mistake was found once. */
static const uint64_t found[] = {
	4023, /* planted: jobs are preempted for the share of a queue in nodes that do not exist */
	20297105, /* an element of an array had a nominated placement, all others started: no reason was given */
};

static const char *run(uint64_t seed, uint64_t *total)
{
	struct any_source from = { .state = seed };
	const char *fault = NULL;
	static struct any a;

	any_make(&from, &a);
	for (int i = 0; i < CYCLES && a.n_jobs && !fault; i++) {
		struct gpuq_buf text = GPUQ_BUF_INIT, again = GPUQ_BUF_INIT;

		fault = any_cycle(&a, seed, i % 2 == 1, &text, &again);
		*total = gpuq_fnv(*total, gpuq_buf_str(&text), text.len);
		if (fault)
			printf("%s---\n%s", gpuq_buf_str(&text), gpuq_buf_str(&again));
		gpuq_buf_done(&text);
		gpuq_buf_done(&again);
	}
	return fault;
}

static bool holds(uint64_t seed, uint64_t *total)
{
	const char *fault = run(seed, total);

	if (fault)
		printf("seed %" PRIu64 ": %s\nagain: plan_sums 1 %" PRIu64 "\n", seed, fault, seed);
	return !fault;
}

int main(int argc, char **argv)
{
	const long cases = argc > 1 ? strtol(argv[1], NULL, 10) : CASES;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : SEED;
	uint64_t total = GPUQ_FNV_START;

	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++)
		if (!holds(found[i], &total))
			return 1;
	for (long i = 0; i < cases; i++)
		if (!holds(seed + (uint64_t)i, &total))
			return 1;
	printf("%ld plans from seed %" PRIu64 ": %016" PRIx64 "\n", cases, seed, total);
	return 0;
}
