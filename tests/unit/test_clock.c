/* Ledger time: smooth whatever the wall clock does; what leaves is wall time. */
#include <criterion/criterion.h>
#include <string.h>

#include "gpuqd/base/clock.h"
#include "gpuqd/util/walltime.h"

#define S GPUQ_US_PER_S
#define HOUR (3600 * S)
#define WALL (INT64_C(1764547200) * S)
#define UP (5 * HOUR)

static struct clock_reading at(int64_t wall_us, int64_t boot_us)
{
	return (struct clock_reading){ wall_us, boot_us, boot_us };
}

static struct clock begun(void)
{
	const struct clock_reading r = at(WALL, UP);
	struct clock c;

	clock_init(&c, "boot-1", &r);
	return c;
}

static void read_at(struct clock *c, int64_t wall_us, int64_t boot_us)
{
	const struct clock_reading r = at(wall_us, boot_us);

	clock_read(c, &r);
}

Test(clock, begins_as_the_wall_clock)
{
	struct clock c = begun();

	cr_expect_eq(c.now_us, WALL);
	cr_expect_eq(c.ahead_us, 0);
	cr_expect_eq(clock_off_us(&c), 0);
}

Test(clock, steps_are_seen_and_do_not_move_ledger_time)
{
	struct clock c = begun();

	read_at(&c, WALL + 10 * S + HOUR, UP + 10 * S);
	cr_expect_eq(c.now_us, WALL + 10 * S);
	cr_expect_eq(clock_off_us(&c), HOUR);
	clock_step(&c, clock_off_us(&c));
	cr_expect_eq(clock_off_us(&c), 0);
	cr_expect_eq(c.n_jumps, 1);
	cr_expect_eq(c.jump_us, HOUR);
	read_at(&c, WALL + 20 * S - HOUR, UP + 20 * S);
	cr_expect_eq(c.now_us, WALL + 20 * S);
	cr_expect_eq(clock_off_us(&c), -2 * HOUR);
	clock_step(&c, clock_off_us(&c));
	cr_expect_eq(c.ahead_us, -HOUR);
	cr_expect_eq(c.n_jumps, 2);
}

Test(clock, small_steps_are_taken_over_and_are_no_jumps)
{
	struct clock c = begun();

	read_at(&c, WALL + 10 * S + S - 1, UP + 10 * S);
	cr_expect_eq(clock_off_us(&c), 0, "noise");
	read_at(&c, WALL + 10 * S - 60 * S, UP + 10 * S);
	cr_expect_eq(clock_off_us(&c), -60 * S);
	clock_step(&c, clock_off_us(&c));
	cr_expect_eq(c.ahead_us, -60 * S);
	cr_expect_eq(c.n_jumps, 0);
}

Test(clock, never_runs_backwards)
{
	struct clock c = begun();

	read_at(&c, WALL, UP - HOUR);
	cr_expect_eq(c.now_us, WALL);
}

Test(clock, time_asleep_counts)
{
	struct clock c = begun();
	const struct clock_reading r = { WALL + HOUR, UP + HOUR, UP };

	clock_read(&c, &r);
	cr_expect_eq(c.now_us, WALL + HOUR);
	cr_expect_eq(c.asleep_us, HOUR);
	cr_expect_eq(clock_off_us(&c), 0);
}

Test(clock, goes_on_after_a_restart_in_the_same_boot)
{
	const struct clock stored = begun();
	const struct clock_reading r = at(WALL + 30 * S - HOUR, UP + 30 * S);
	struct clock c;

	clock_resume(&c, &stored, WALL + S, "boot-1", &r);
	cr_expect_eq(c.now_us, WALL + 30 * S);
	cr_expect_eq(clock_off_us(&c), -HOUR, "a step while the daemon was down is seen");
}

Test(clock, after_another_boot_the_wall_clock_counts)
{
	struct clock stored = begun(), c;
	struct clock_reading r = at(WALL + HOUR, 7 * S);

	stored.ahead_us = 600 * S;
	clock_resume(&c, &stored, WALL, "boot-2", &r);
	cr_expect_eq(c.now_us, WALL + HOUR - 600 * S);
	cr_expect_eq(clock_off_us(&c), 0);
	cr_expect_str_eq(c.boot, "boot-2");
	r = at(5 * S, 7 * S); /* a machine without a clock of its own begins in 1970 */
	clock_resume(&c, &stored, WALL, "boot-3", &r);
	cr_expect_eq(c.now_us, WALL, "not before what is known");
	clock_step(&c, clock_off_us(&c));
	read_at(&c, WALL + 100 * S, 17 * S);
	cr_expect_eq(c.now_us, WALL + 10 * S);
	clock_step(&c, clock_off_us(&c));
	cr_expect_eq(c.now_us + c.ahead_us, WALL + 100 * S);
}

Test(clock, no_boot_id_is_no_same_boot)
{
	struct clock stored = begun(), c;
	const struct clock_reading r = at(WALL + HOUR, 7 * S);

	stored.boot[0] = '\0';
	clock_resume(&c, &stored, WALL, "", &r);
	cr_expect_eq(c.now_us, WALL + HOUR);
}

Test(clock, none_and_for_ever_stay_what_they_are)
{
	cr_expect_eq(walltime_of(0, HOUR), 0);
	cr_expect_eq(walltime_of(GPUQ_UNLIMITED, -HOUR), GPUQ_UNLIMITED);
	cr_expect_eq(walltime_of(HOUR, -2 * HOUR), 1, "an instant stays one");
	cr_expect_eq(walltime_of(INT64_MAX - 1, HOUR), INT64_MAX - 1);
	cr_expect_eq(walltime_to_ledger(walltime_of(WALL, HOUR), HOUR), WALL);
}

Test(clock, replies_hold_wall_time)
{
	struct gpuq_arena a = GPUQ_ARENA_INIT(0);
	struct gpuq_val *v = gpuq_map(&a), *pod = gpuq_map(&a), *pods = gpuq_list(&a);
	struct gpuq_val *spec = gpuq_map(&a);
	const struct gpuq_val *out;

	gpuq_put(&a, pod, "start_time", gpuq_int(&a, WALL));
	gpuq_put(&a, pod, "end_time", gpuq_null(&a));
	gpuq_add(&a, pods, pod);
	gpuq_put(&a, v, "pods", pods);
	gpuq_put(&a, v, "submit_time", gpuq_int(&a, WALL));
	gpuq_put(&a, v, "time_limit_s", gpuq_int(&a, 3600));
	gpuq_put(&a, spec, "time", gpuq_int(&a, HOUR));
	gpuq_put(&a, v, "spec", spec);
	cr_expect_eq(walltime_tree(&a, NULL, v, 0), v, "no copy where nothing differs");
	out = walltime_tree(&a, NULL, v, HOUR);
	cr_expect_eq(gpuq_get_int(out, "submit_time", 0), WALL + HOUR);
	cr_expect_eq(gpuq_get_int(out, "time_limit_s", 0), 3600);
	cr_expect_eq(gpuq_get_int(gpuq_get(out, "spec"), "time", 0), HOUR);
	cr_expect_eq(gpuq_get_int(gpuq_get(out, "pods")->items[0], "start_time", 0), WALL + HOUR);
	cr_expect_eq(gpuq_get(gpuq_get(out, "pods")->items[0], "end_time")->type, GPUQ_NULL);
	cr_expect_eq(gpuq_get_int(v, "submit_time", 0), WALL, "what it was made from stays");
	gpuq_arena_done(&a);
}
