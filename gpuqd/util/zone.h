/* zone.h - time zones: from an instant to the time of a zone's clock, and back
 *
 * Owns     nothing. Touches memory only.
 * Used by  util/recur (repetitions that keep their wall clock), site/site_calendar,
 *          flow/admit/zones.
 *
 * A zone is its rule, as POSIX writes it in TZ: CET-1CEST,M3.5.0,M10.5.0/3. The clock
 * before the present rule is not known. Files of zones are RFC 9636 (TZif).
 */
#ifndef GPUQD_UTIL_ZONE_H
#define GPUQD_UTIL_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libgpuq/err.h"

#define ZONE_RULE_MAX 128 /* with the NUL */
#define ZONE_BYTES_MAX 65536 /* of a file; the largest there is has 3,600 */

enum zone_change_kind { ZONE_NEVER, ZONE_WEEKDAY, ZONE_DAY, ZONE_DAY_NOT_LEAP };

struct zone_change { /* when a clock is changed, each year */
	enum zone_change_kind kind;
	int month, week, weekday; /* ZONE_WEEKDAY: week 5 is the last; weekday 0 is Sunday */
	int day; /* ZONE_DAY from 0, ZONE_DAY_NOT_LEAP from 1 */
	int64_t at_s; /* on that day, by the clock before the change */
};

struct zone { /* all zero: UTC */
	int64_t standard_s, summer_s; /* of the clock from UTC, east is positive */
	struct zone_change to_summer, to_standard;
};

/* Read a rule; false: it is none. */
bool zone_read(const char *rule, struct zone *out);

/* Take the rule from the bytes of a zone's file. Returns 0; GPUQ_EINVAL; GPUQ_ERANGE: after now_us
 * its clock is not changed by the same rule each year. */
int zone_rule(const void *bytes, size_t n, int64_t now_us, char out[ZONE_RULE_MAX],
	      struct gpuq_err *err);

/* Return what its clock shows at the instant, as if that were UTC. */
int64_t zone_wall(const struct zone *z, int64_t us);
/* Return the instant at which its clock shows wall_us. It is the first of two; where the clock leaps over
 * it, as much later as the clock leaps. */
int64_t zone_instant(const struct zone *z, int64_t wall_us);

#endif
