/* Random clusters, queues and jobs through a few rounds of scheduling; every plan is checked.
 * `prop_sched [CASES [SEED]]`; a failing case is made smaller and printed with the seed that makes
 * it again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/prop/prop.h"

#define CASES 3000
#define SEED 20261121

int main(int argc, char **argv)
{
	const long cases = argc > 1 ? strtol(argv[1], NULL, 10) : CASES;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : SEED;

	printf("prop_sched: %ld cases from seed %" PRIu64 "\n", cases, seed);
	for (long i = 0; i < cases; i++) {
		static struct prop_case pc;

		prop_generate(seed + (uint64_t)i, &pc);
		if (!prop_run(&pc))
			continue;
		prop_shrink(&pc);
		printf("seed %" PRIu64 ": %s\n", pc.seed, prop_run(&pc));
		prop_print(&pc);
		printf("again: prop_sched 1 %" PRIu64 "\n", pc.seed);
		return 1;
	}
	printf("all hold\n");
	return 0;
}
