/* A cycle in steps equals the cycle at once: for random snapshots and their successors the plan is
 * literally the same whatever the bound of the steps, also if steps of two cycles alternate, and if
 * other cycles were abandoned half-way before.
 *
 * prop_steps [CASES [SEED]] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuqd/sched/cycle_record.h"
#include "tests/prop/any.h"
#include "tests/prop/prop.h"

#define CASES 1500
#define SEED 20261123
#define CYCLES 4

/* The smallest bound cuts wherever a cycle can be cut. */
static const uint64_t bounds[] = { 1, 17, 65, 150, 700, 5000 };

#define N_BOUNDS (sizeof(bounds) / sizeof(bounds[0]))

static void end(struct sched_run *r, const struct snapshot *s, struct gpuq_buf *text)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct plan p;

	if (sched_end(r, &p, &err) < 0)
		abort();
	cycle_text(s, &p, text);
}

static struct sched_run *begin(const struct snapshot *s, struct gpuq_arena *mem)
{
	struct gpuq_err err = GPUQ_ERR_INIT;
	struct sched_run *r = NULL;

	if (sched_begin(s, mem, &r, &err) < 0)
		abort();
	return r;
}

static bool same(struct gpuq_buf *x, struct gpuq_buf *y)
{
	return strcmp(gpuq_buf_str(x), gpuq_buf_str(y)) == 0;
}

/* Run two cycles, of s and of t, in alternating steps; want: the plan of each. */
static bool holds_at(uint64_t bound, const struct snapshot *s, const struct snapshot *t,
		     struct gpuq_buf want[2])
{
	struct gpuq_arena mem[2] = { GPUQ_ARENA_INIT(0), GPUQ_ARENA_INIT(0) };
	struct gpuq_buf text[2] = { GPUQ_BUF_INIT, GPUQ_BUF_INIT };
	struct sched_run *r[2] = { begin(s, &mem[0]), begin(t, &mem[1]) };
	bool more[2] = { true, true }, ok;

	while (more[0] || more[1])
		for (int i = 0; i < 2; i++)
			more[i] = more[i] && sched_go_on(r[i], bound);
	end(r[0], s, &text[0]);
	end(r[1], t, &text[1]);
	ok = same(&text[0], &want[0]) && same(&text[1], &want[1]);
	for (int i = 0; i < 2; i++) {
		gpuq_buf_done(&text[i]);
		gpuq_arena_done(&mem[i]);
	}
	return ok;
}

static void give_up(const struct snapshot *s, uint64_t *random)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct sched_run *r = begin(s, &mem);

	for (uint64_t n = prop_random(random) % 12; n > 0 && sched_go_on(r, 1); n--)
		;
	sched_drop(r);
	gpuq_arena_done(&mem);
}

/* Return the property that this state violates; NULL = none. Advances to the next state. */
static const char *check(struct any *a, uint64_t *random, bool gone)
{
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct gpuq_buf want[2] = { GPUQ_BUF_INIT, GPUQ_BUF_INIT };
	struct gpuq_err err = GPUQ_ERR_INIT;
	const char *fault = NULL, *refused = NULL;
	struct snapshot *s = any_build(a, 0, &refused), *t;
	struct plan p;

	if (!s) {
		a->n_jobs = 0;
		return NULL;
	}
	if (sched_cycle(s, &mem, &p, &err) < 0)
		abort();
	cycle_text(s, &p, &want[0]);
	if (!any_next(a, &p, gone))
		a->n_jobs = 0;
	t = any_build(a, 0, &refused);
	end(begin(t ? t : s, &mem), t ? t : s, &want[1]);
	give_up(s, random);
	for (size_t i = 0; i < N_BOUNDS && !fault; i++)
		if (!holds_at(bounds[i], s, t ? t : s, want))
			fault = "another bound, another plan";
	snapshot_free(s);
	snapshot_free(t);
	gpuq_buf_done(&want[0]);
	gpuq_buf_done(&want[1]);
	gpuq_arena_done(&mem);
	return fault;
}

int main(int argc, char **argv)
{
	const uint64_t cases = argc > 1 ? strtoull(argv[1], NULL, 10) : CASES;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : SEED;

	for (uint64_t i = 0; i < cases; i++) {
		struct any_source from = { .state = seed + i };
		uint64_t random = seed + i;
		static struct any a;
		const char *fault = NULL;

		any_make(&from, &a);
		for (int k = 0; k < CYCLES && a.n_jobs && !fault; k++)
			fault = check(&a, &random, k % 2 == 1);
		if (!fault)
			continue;
		printf("seed %" PRIu64 ": %s\nagain: prop_steps 1 %" PRIu64 "\n", seed + i, fault,
		       seed + i);
		return 1;
	}
	printf("%" PRIu64 " cases hold\n", cases);
	return 0;
}
