/* Queues that take the same places back and forth: when they are to leave one another alone. */
#include <criterion/criterion.h>

#include "gpuqd/sched/quota/cycle.h"
#include "gpuqd/sched/preempt/oscillation.h"
#include "libgpuq/units.h"

#define MINUTE (60 * GPUQ_US_PER_S)
#define NOW (INT64_C(6000) * MINUTE)

/* a and b stand side by side, a1 and a2 below a. */
enum { A, B, A1, A2, N_QUEUES };

/* A job of `from` left for job `by` of `to`. */
struct row {
	uint32_t from, job, to, by;
	int64_t minutes_ago;
};

/* Until how many minutes from now x and y rest; 0 = they do not. */
static int64_t rests(const struct row *rows, uint32_t n, uint32_t most, uint32_t x, uint32_t y,
		     bool owed)
{
	struct snap_queue queues[N_QUEUES] = { [A] = { .parent = SNAP_NONE },
					       [B] = { .parent = SNAP_NONE },
					       [A1] = { .parent = A, .depth = 1 },
					       [A2] = { .parent = A, .depth = 1 } };
	struct snap_loss losses[8];
	struct snapshot s = {
		.config = { .now_us = NOW, .claim_reversals = most, .cooldown_us = 15 * MINUTE },
		.queues = queues,
		.losses = losses,
		.n_queues = N_QUEUES,
		.n_losses = n
	};
	struct gpuq_arena mem = GPUQ_ARENA_INIT(0);
	struct cycle c = { .s = &s, .mem = &mem };
	int64_t until;

	for (uint32_t i = 0; i < n; i++)
		losses[i] = (struct snap_loss){ .queue = rows[i].from,
						.by_queue = rows[i].to,
						.job = { rows[i].job, -1 },
						.by = { rows[i].by, -1 },
						.at_us = NOW - rows[i].minutes_ago * MINUTE };
	until = oscillation_rests(&c, x, y, owed);
	gpuq_arena_done(&mem);
	return until ? (until - NOW) / MINUTE : 0;
}

#define RESTS(rows, most, x, y) rests(rows, sizeof(rows) / sizeof((rows)[0]), most, x, y, false)
#define OWED(rows, most, x, y) rests(rows, sizeof(rows) / sizeof((rows)[0]), most, x, y, true)

Test(reversal, one_that_takes_back_and_is_taken_from_again)
{
	const struct row rows[] = { { A1, 1, B, 2, 30 }, { B, 2, A1, 1, 20 }, { A1, 1, B, 2, 10 } };

	cr_expect_eq(RESTS(rows, 2, A, B), 40, "until the first of the two is an hour old");
	cr_expect_eq(RESTS(rows, 2, B, A), 40, "and both ways");
	cr_expect_eq(OWED(rows, 2, B, A), 5, "a guarantee until the last has cooled down");
	cr_expect_eq(RESTS(rows, 3, A, B), 0);
	cr_expect_eq(RESTS(rows, 1, A, B), 50);
	cr_expect_eq(RESTS(rows, 0, A, B), 0, "no bound");
	cr_expect_eq(RESTS(rows, 2, A1, A2), 0, "others");
}

Test(reversal, any_job_of_either_side_keeps_it_going)
{
	const struct row rows[] = { { A1, 1, B, 2, 30 },
				    { A2, 3, B, 2, 30 },
				    { B, 2, A1, 1, 20 },
				    { B, 4, A2, 3, 15 },
				    { B, 5, A2, 3, 15 } };

	cr_expect_eq(RESTS(rows, 2, A, B), 40, "each claim once, however many leave for it");
	cr_expect_eq(RESTS(rows, 3, A, B), 0);
}

Test(reversal, claims_that_take_nothing_back_do_not_count)
{
	const struct row rows[] = { { A1, 1, B, 2, 30 },
				    { B, 3, A1, 4, 20 },
				    { A1, 5, B, 6, 10 },
				    { A1, 7, A2, 8, 9 },
				    { B, 9, A1, 7, 8 } };

	cr_expect_eq(RESTS(rows, 1, A, B), 0, "others claim; 7 lost to its own side");
}

Test(reversal, what_is_over_an_hour_old_is_forgotten)
{
	const struct row rows[] = { { A1, 1, B, 2, 90 }, { B, 2, A1, 1, 70 }, { A1, 1, B, 2, 10 } };

	cr_expect_eq(RESTS(rows, 2, A, B), 0);
	cr_expect_eq(RESTS(rows, 1, A, B), 50);
}
