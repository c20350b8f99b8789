/* loop_rig.h - a loop whose time a test passes: in place of base/loop.c, with its clocks and timers only
 *
 * Owns     the time, the timers. Touches memory only.
 * Used by  tests of gpuqd/auth/, of hours and days.
 */
#ifndef TESTS_UNIT_LOOP_RIG_H
#define TESTS_UNIT_LOOP_RIG_H

#include <stdint.h>

#include "gpuqd/base/loop.h"

#define RIG_S INT64_C(1000000)
#define RIG_HOUR (3600 * RIG_S)

extern int64_t rig_wall_us; /* a test may set it: a clock that steps */

/* Let time pass; timers run when they are due. */
void rig_pass(int64_t us);
unsigned rig_timers(void); /* that are set */

#endif
