/* clock.h - ledger time: the time that limits and charges are counted in
 *
 * Owns     how boot time, ledger time and wall time are related.
 * Touches  /proc/sys/kernel/random/boot_id; loop.c takes the readings.
 * Used by  loop.c, which shows a turn's times; daemon.c, which stores the relation.
 *
 *   ledger time = CLOCK_BOOTTIME + base      wall time = ledger time + ahead
 *
 * Boot time counts a suspend, and a step of the wall clock does not change it; a slew of NTP
 * changes both alike. base stays the same until the machine boots again, so ledger time never
 * steps and never runs backwards: all instants of the model, of its events and of the database are
 * ledger time, and the difference of two of them is time that passed. ahead is 0 at the first
 * start and changes only when the wall clock is found CLOCK_SLACK_US or more away from where
 * it should be: then it takes over the whole step, as an event that is stored.
 *
 * Instants that people name (begin, deadline, reservations, days and periods of budgets) stay in
 * wall time and are compared with the corrected wall clock. Instants of the ledger are
 * printed as wall time by the present `ahead`: after a correction the submit, start and end times
 * of all jobs move with the clock, and no duration changes. A wall clock that was wrong since the
 * boot is thereby right for what happened before it was set, too.
 *
 * After a boot of the machine only the wall clock tells how long it was off. Ledger time
 * then goes on at the wall clock less the stored `ahead`, and not before the newest instant
 * that the database knows.
 */
#ifndef GPUQD_BASE_CLOCK_H
#define GPUQD_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_SLACK_US INT64_C(1000000)
#define CLOCK_JUMP_US                                                                              \
	INT64_C(60000000) /* a step longer than this is a jump: operators are notified */

struct clock {
	char boot[40]; /* id of the boot that base belongs to; "" not known */
	int64_t base_us, ahead_us;
	int64_t now_us; /* ledger time of the last reading */
	int64_t wall_us, asleep_us; /* of the last reading: wall clock; time spent suspended */
	/* Since the start of the daemon. */
	unsigned n_jumps;
	int64_t jump_us, jumped_at_us; /* of the last one; ledger time */
};

struct clock_reading {
	int64_t wall_us, boot_us, mono_us;
};

int64_t clock_us(clockid_t id); /* what a clock of the system shows now */
void clock_boot_id(char out[40]); /* "" when it cannot be read */

/* Begin with ledger time equal to wall time. */
void clock_init(struct clock *c, const char *boot, const struct clock_reading *r);

/* Go on from a relation that was stored (boot, base_us, ahead_us). No ledger time is before
 * newest_us. boot: the id of this boot. */
void clock_resume(struct clock *c, const struct clock *stored, int64_t newest_us, const char *boot,
		  const struct clock_reading *r);

void clock_read(struct clock *c, const struct clock_reading *r);

/* Return how far the wall clock is off what ledger time and ahead say; 0 within the slack. */
int64_t clock_off_us(const struct clock *c);

/* Make by_us part of ahead. */
void clock_step(struct clock *c, int64_t by_us);

#endif
