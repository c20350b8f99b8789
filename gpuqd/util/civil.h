/* civil.h - days of the Gregorian calendar, in UTC
 *
 * Owns     nothing. Touches nothing.
 * Used by  state/accounting.c (days of what is charged), state/budget.c (periods).
 *
 * Days count from 1970-01-01. Source: H. Hinnant, "chrono-Compatible Low-Level Date
 * Algorithms", civil_from_days and days_from_civil.
 */
#ifndef GPUQD_UTIL_CIVIL_H
#define GPUQD_UTIL_CIVIL_H

#include <stdint.h>

#define CIVIL_DAY_US INT64_C(86400000000)

struct civil_date {
	int64_t year; /* negative before year 0 */
	int month, day; /* 1..12, 1..31 */
};

int64_t civil_day(int64_t us); /* that the instant belongs to */
struct civil_date civil_date(int64_t day);
int64_t civil_from_date(struct civil_date d);
int64_t civil_number(int64_t day); /* 20261121 */
int64_t civil_from_number(int64_t number);

#define CIVIL_MONTH 3 /* a period */

/* Periods as struct site_budget names them. The one that day belongs to: its first day
 * and the first of the next. Period 0 (none) has neither: INT64_MIN and INT64_MAX. */
void civil_period(int period, int64_t day, int64_t *first, int64_t *next);

#endif
