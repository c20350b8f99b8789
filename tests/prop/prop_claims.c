/* Random clusters, queues and jobs, some of which must be preempted: every plan is checked against
 * an independent version of the law of preemption. `prop_claims [CASES [SEED]]`; a failing case is
 * made smaller and printed with the seed that makes it again, and as a scenario. A third argument
 * `all` lists all failing cases and does not stop at the first. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/prop/claims.h"

#define CASES 2000
#define SEED 20261121

/* Without the belts, which bound evictions in time, about one of 100 000 random clusters may
 * exchange the same places for ever; with them none. */
static bool may_be(const struct pc_case *pc, const char *why, long *restless)
{
	if (strncmp(why, "12:", 3) != 0 && strncmp(why, "13:", 3) != 0)
		return false;
	if (!pc->belts)
		++*restless;
	return !pc->belts;
}

int main(int argc, char **argv)
{
	const long cases = argc > 1 ? strtol(argv[1], NULL, 10) : CASES;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : SEED;
	const bool all = argc > 3 && strcmp(argv[3], "all") == 0;
	long restless = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("prop_claims: %ld cases from seed %" PRIu64 "\n", cases, seed);
	for (long i = 0; i < cases; i++) {
		static struct pc_case pc;
		const char *why;

		pc_generate(seed + (uint64_t)i, &pc);
		why = pc_run(&pc);
		if (!why || (!all && may_be(&pc, why, &restless)))
			continue;
		failed++;
		if (all && cases > 1) {
			printf("%" PRIu64 " %s%s\n", pc.seed, why,
			       may_be(&pc, why, &restless) ? " (may be)" : "");
			continue;
		}
		printf("seed %" PRIu64 ": %s\n", pc.seed, why);
		pc_shrink(&pc);
		pc_show(&pc);
		printf("again: prop_claims 1 %" PRIu64 "\n", pc.seed);
		return 1;
	}
	if (restless > cases / 100000 + 1) {
		printf("%ld without belts came not to rest\n", restless);
		failed++;
	}
	if (failed)
		printf("%ld of %ld failed\n", failed, cases);
	else
		printf("all hold\n");
	return failed > 0;
}
